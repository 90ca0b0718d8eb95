#include "base/login_shell.hpp"

#include "base/strings.hpp"

namespace remote {

Error login_shell_ended(const std::string& detail, std::string_view printed) {
  const std::string said = last_lines(trim(printed), 3);
  const std::string quoted = said.empty() ? "" : "; it printed: " + said;
  // What nologin(8) prints.
  for (const std::string_view text : {std::string_view(said), std::string_view(detail)}) {
    if (text.find("account is currently not available") != std::string_view::npos) {
      return {"nothing was run on the server", "the account has no login shell: " + std::string(text),
              "log in as another user, or have its administrator give it a shell: chsh -s /bin/sh USER"};
    }
  }
  if (detail.empty()) {
    return {"no answer from the server",
            "its login shell ended without an error, but nothing of the script's output came" + quoted,
            "one of the shell's start files there sends the output elsewhere (exec >FILE), or ends the shell "
            "when "
            "there is no terminal: fix that until `ssh HOST echo hello` prints hello"};
  }
  if (said.empty() &&
      detail.find(": ") == std::string::npos) {  // it may have run, and its output gone elsewhere
    return {
        "no answer from the server", "its login shell ended and printed nothing: " + detail,
        "one of the shell's start files there (~/.bashrc, ~/.zshenv, config.fish, ~/.tcshrc) ends it when "
        "there is no terminal, or sends the output elsewhere, or the account has no shell: fix that until "
        "`ssh HOST echo hello` prints hello"};
  }
  return {"nothing was run on the server",
          "its login shell ended before the script began: " + detail + quoted,
          "one of the shell's start files there (~/.bashrc, ~/.zshenv, config.fish, ~/.tcshrc) ends it when "
          "there is no terminal: fix that until `ssh HOST true` ends with 0"};
}

std::string_view Greeting::strip(std::string_view data,
                                 const std::function<bool(std::string_view)>& is_last) {
  constexpr std::size_t most = std::size_t{1} << 20U;
  while (!over_ && !data.empty()) {
    const std::size_t end = data.find('\n');
    text_ += data.substr(0, end);
    data.remove_prefix(end == std::string_view::npos ? data.size() : end + 1);
    if (text_.size() > most) {
      throw Error("nothing was run on the server", "its login shell prints without end",
                  "look at what the shell's start files there print");
    }
    if (end == std::string_view::npos) {
      break;
    }
    over_ = is_last(std::string_view(text_).substr(line_at_));
    if (over_) {
      text_.resize(line_at_);
    } else {
      text_ += '\n';
      line_at_ = text_.size();
    }
  }
  return over_ ? data : std::string_view();
}

}  // namespace remote
