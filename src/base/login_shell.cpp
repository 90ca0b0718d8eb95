#include "base/login_shell.hpp"

namespace remote {

Error login_shell_ended(const std::string& detail) {
  return {"nothing was run on the server",
          "its login shell ended before the script began" + (detail.empty() ? "" : ": " + detail),
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
