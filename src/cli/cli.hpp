#pragma once

#include <string>
#include <vector>

#include "cli/context.hpp"

namespace remote::cli {

// Parses the words after the program's name, runs the subcommand, prints any error, and returns the exit
// code: 0 success, 1 the operation failed on a server or a job, 2 wrong usage or configuration, 130
// interrupted. May be called repeatedly; tests pass their own environment.
int run(const std::vector<std::string>& words, Environment environment);

// The program: the above function in the environment of this process. Installs handlers for SIGINT, SIGTERM
// and SIGHUP, and ignores SIGPIPE. Call it once, from the main thread, before starting other threads.
int run(int argc, char** argv);

}  // namespace remote::cli
