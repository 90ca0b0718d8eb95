#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

// The processes of this machine, for finding and stopping those of the sandbox. Uses /proc on Linux, and
// ps(1) elsewhere.

namespace remote::sandbox {

struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  bool zombie = false;  // already dead, but not yet reaped by its parent
  // Its start time, in a form that is only suitable for comparison. Together with the pid, it identifies a
  // process permanently (on Linux, it contains the boot id). ps(1) only reports whole seconds.
  std::string start;
  std::string
      command;  // the command line, with words joined by spaces, or the title that the process has set
  bool marked = false;  // see list_processes
};

// All visible processes. `mark` is "NAME=value": `marked` is set if the process has it in its environment
// (Linux only).
std::vector<Process> list_processes(std::string_view mark = {});

// nullopt if there is no such process, or it is a zombie.
std::optional<Process> find_process(pid_t pid);

// Parses the output of `ps -o pid=,ppid=,stat=,lstart=,command=`.
std::vector<Process> parse_ps(std::string_view text);

// The processes in `roots` and all their descendants, from a list.
std::vector<Process> with_descendants(const std::vector<Process>& all, const std::vector<pid_t>& roots);

// Stops the processes that `find` returns: sends CONT and TERM, and KILL after `grace`. Repeats this until
// `find` returns none, so that processes started in the meantime are stopped too. Throws Error that names
// processes it could not stop.
void end_processes(const std::function<std::vector<Process>()>& find, std::chrono::milliseconds grace);

}  // namespace remote::sandbox
