#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "base/subprocess.hpp"

namespace remote::test {

// All of these read /proc. A process that is gone or belongs to somebody else has an empty command line and
// environment, also when it goes between open and read.

// Whether it exists and is no zombie.
bool lives(pid_t pid);
// The words of its command line, each with a '\0' behind it.
std::string command_line(pid_t pid);
// Its environment when it was started: "NAME=VALUE", each with a '\0' behind it.
std::string environment_of(pid_t pid);
// A file of /proc/PID: "comm", "stat".
std::string read_proc(pid_t pid, const std::string& name);
// Other processes that live and were started with this variable ("NAME=VALUE") in their environment.
std::vector<pid_t> processes_with(const std::string& variable);
// The same where `beginning` is only how the variable's text begins.
std::vector<pid_t> processes_with_variable_like(const std::string& beginning);

// Starts a program in a session of its own, and waits until it has printed something.
Subprocess started(std::vector<std::string> argv);

// sh text of a daemon that nobody may look into, as ssh-agent makes itself: python3 leaves it behind, in a
// session of its own and without a parent. It sleeps, and has its pid in a file of this name in the current
// folder.
std::string undumpable_daemon(const std::string& pid_file);

}  // namespace remote::test
