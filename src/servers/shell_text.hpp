#pragma once

#include <string>

#include "servers/action.hpp"

namespace remote::servers {

// The steps of a script as sh text, for a file on a server or for a variable. It needs $remote_program, the
// folder of the server's program.
std::string shell_text(const Script& script);
// Adds the steps of another script.
void append_steps(Script& script, const Script& more);

}  // namespace remote::servers
