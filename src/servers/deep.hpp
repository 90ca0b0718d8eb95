#pragma once

#include <string>
#include <string_view>

#include <remote/facts.hpp>

// Facts about an imported torch, as printed by src/server/python/deep.py (src/wire/deep.hpp).

namespace remote::servers {

// Parses the output of deep_command(). Throws Error if it is incomplete or invalid.
ImportFacts read_import(std::string_view output);

// The command line that runs the script in the server's shell. The variable REMOTE_DEEP must contain the
// script.
std::string deep_command();
// The script for REMOTE_DEEP.
std::string deep_program();

}  // namespace remote::servers
