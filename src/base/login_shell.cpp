#include "base/login_shell.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "base/strings.hpp"

namespace remote {
namespace {

// The last lines of a text, in one.
std::string join_last_lines(std::string_view text) {
  std::vector<std::string> lines;
  for (const std::string& line : split(last_lines(trim(text), 3), '\n')) {
    if (!trim(line).empty()) {
      lines.emplace_back(trim(line));
    }
  }
  return join(lines, "; ");
}

bool speaks_of_terminal(std::string_view text) {
  constexpr std::array words{"PTY", " pty", "without a terminal", "requires a terminal", "needs a terminal"};
  return std::ranges::any_of(words,
                             [&](const char* word) { return text.find(word) != std::string_view::npos; });
}

}  // namespace

Error login_shell_ended(const std::string& ended, std::string_view printed) {
  const std::string said = join_last_lines(printed);
  const std::string detail = join_last_lines(ended);
  if (speaks_of_terminal(said) || speaks_of_terminal(detail)) {
    return {"nothing was run on the server", speaks_of_terminal(said) ? said : detail,
            "a gateway that takes no commands, as some providers have it: use the machine's own address and "
            "port, which "
            "the provider's page shows too (SSH over TCP)"};
  }
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
