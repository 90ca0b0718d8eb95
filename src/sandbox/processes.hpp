#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

// The processes of this machine, for those that the sandbox starts and must end. Linux is asked through
// /proc, other systems through ps(1).

namespace remote::sandbox {

struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  bool zombie = false;  // dead already, only not yet collected by its parent
  // When it started, in a form that is only good for comparing: a pid together with it names a process for
  // good (on Linux it contains the boot id). ps(1) only knows whole seconds.
  std::string start;
  std::string command;  // the command line, words joined by spaces, or the title that the process chose
  bool marked = false;  // see list_processes
};

// Every process that can be seen. `mark` is "NAME=value": `marked` then tells whether the process has it in
// its environment (Linux only; never marked elsewhere).
std::vector<Process> list_processes(std::string_view mark = {});

// nullopt when there is no such process, or only its zombie.
std::optional<Process> find_process(pid_t pid);

// The output of `ps -o pid=,ppid=,stat=,lstart=,command=`.
std::vector<Process> parse_ps(std::string_view text);

// The processes that `roots` names and all that descend from them, of one list.
std::vector<Process> with_descendants(const std::vector<Process>& all, const std::vector<pid_t>& roots);

// Ends the processes that `find` returns: CONT and TERM, after `grace` KILL. Looks again until `find` returns
// none, so that what they start meanwhile is ended too. Throws Error that names what could not be ended.
void end_processes(const std::function<std::vector<Process>()>& find, std::chrono::milliseconds grace);

}  // namespace remote::sandbox
