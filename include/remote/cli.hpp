#pragma once

// The public C++ API of remote: the whole program as one call, for main.cpp and for programs that embed it.
// What is below (src/) is private: its headers may change at any time.

namespace remote::cli {

// Parses the command line, runs the subcommand, prints what went wrong, and returns the exit code: 0 all
// well, 1 the operation failed on a server or a job, 2 wrong usage or configuration, 130 interrupted.
// Installs handlers for SIGINT and SIGTERM and ignores SIGPIPE; call it once, from the main thread, before
// other threads are started.
int run(int argc, char** argv);

}  // namespace remote::cli
