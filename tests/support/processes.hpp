#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "base/subprocess.hpp"

namespace remote::test {

// These read /proc. If a process is gone or belongs to another user, its command line and environment are
// empty, even if it exits between open and read.

// Whether it exists and is not a zombie.
bool lives(pid_t pid);
// Its command line; each word ends in '\0'.
std::string command_line(pid_t pid);
// Its initial environment: "NAME=VALUE", each ending in '\0'.
std::string environment_of(pid_t pid);
// A file of /proc/PID: "comm", "stat".
std::string read_proc(pid_t pid, const std::string& name);
// Other running processes that were started with this variable ("NAME=VALUE") in their environment.
std::vector<pid_t> processes_with(const std::string& variable);
// Like processes_with(), but matches only the beginning of the variable's text.
std::vector<pid_t> processes_with_variable_like(const std::string& beginning);

// Starts a program in its own session and waits until it has printed something.
Subprocess started(std::vector<std::string> argv);

// Shell code that starts a daemon which other processes may not inspect, like ssh-agent. python3 leaves it
// behind in its own session, without a parent. It sleeps, and writes its pid to this file in the current
// folder.
std::string undumpable_daemon(const std::string& pid_file);

}  // namespace remote::test
