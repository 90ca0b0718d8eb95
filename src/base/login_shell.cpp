#include "base/login_shell.hpp"

namespace remote {

Error login_shell_ended(const std::string& detail) {
  return {"nothing was run on the server",
          "its login shell ended before the script began" + (detail.empty() ? "" : ": " + detail),
          "one of the shell's start files there (~/.bashrc, ~/.zshenv, config.fish, ~/.tcshrc) ends it when "
          "there is "
          "no terminal: mend that until `ssh HOST true` ends with 0"};
}

}  // namespace remote
