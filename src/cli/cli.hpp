#pragma once

#include <string>
#include <vector>

#include "cli/context.hpp"

namespace remote::cli {

// Parses the words behind the program's name, runs the subcommand, prints what went wrong, and returns the
// exit code: 0 all well, 1 the operation failed on a server or a job, 2 wrong usage or configuration, 130
// interrupted. May be called more than once; tests give an environment of their own.
int run(const std::vector<std::string>& words, Environment environment);

// The program: as above in the environment of this process. Installs handlers for SIGINT, SIGTERM and SIGHUP
// and ignores SIGPIPE; call it once, from the main thread, before other threads are started.
int run(int argc, char** argv);

}  // namespace remote::cli
