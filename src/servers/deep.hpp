#pragma once

#include <string>
#include <string_view>

#include <remote/facts.hpp>

// What torch is once it is imported, as src/server/python/deep.py prints it (src/wire/deep.hpp).

namespace remote::servers {

// Reads the output of deep_command(). Throws Error if it is incomplete or not understood.
ImportFacts read_import(std::string_view output);

// The line for the server's shell that runs the script, given the text of it in the variable REMOTE_DEEP.
std::string deep_command();
// That text.
std::string deep_program();

}  // namespace remote::servers
