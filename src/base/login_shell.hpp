#pragma once

#include <string>

#include <remote/error.hpp>

namespace remote {

// The error for a server whose login shell ended before a script of ours began. `detail`: how it ended, or
// the last lines of what it printed; may be "".
Error login_shell_ended(const std::string& detail = {});

}  // namespace remote
