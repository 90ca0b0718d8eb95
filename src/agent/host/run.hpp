#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "agent/host/host.hpp"

// Runs programs on the server for the agent.

namespace remote::agent {

// The descriptor that holds a job's lease in all of its processes.
constexpr int lease_fd = 7;

struct RunRequest {
  std::vector<std::string> argv;  // argv[0] is looked up on the host's PATH, unless it has a '/'
  Path program{};                 // executed instead of argv[0], unless it is empty
  Path folder{};                  // its working directory; "": the agent's own
  std::chrono::milliseconds limit = std::chrono::seconds(30);
  bool with_stderr = false;  // add its stderr to `out`; otherwise it is discarded
  int errors = -1;           // an open descriptor that the program gets as stderr; -1: see with_stderr
  std::function<void(std::string_view)> on_output{};  // gets the output as it arrives, instead of `out`
  std::function<void(std::string_view)> on_errors{};  // gets the stderr as it arrives
  std::size_t max_output = std::size_t{4} << 20U;     // more is discarded
  int lease = -1;                // an open descriptor that the program gets as lease_fd; -1: none
  int input = -1;                // an open descriptor that the program gets as stdin; -1: empty stdin
  bool awaits_children = false;  // wait until its output is closed, even by background children
  bool ends_group = false;       // kill the rest of its process group when it exits
  // Time between TERM and KILL for its process group, at the limit or when the agent is cancelled.
  std::chrono::milliseconds grace{0};
  bool is_job = false;  // use the environment of Host::list_job_variables()
};

struct RunResult {
  std::string out;
  // The exit status, 128+N for signal N, or 127 if it could not be started, as in a shell.
  int code = 127;
  bool timed_out = false;  // it and its process group were killed

  bool succeeded() const { return code == 0 && !timed_out; }
};

// Returns a null-terminated array of these texts for exec(3).
std::vector<char*> pointers_to(std::vector<std::string>& texts);

// No process can be started at the moment.
class CannotStart : public std::runtime_error {
 public:
  CannotStart();
};

// Runs a program in its own session and waits until it exits. Does not wait beyond the limit for background
// children that keep stdout open. Throws CannotStart. Any thread.
RunResult run(const Host& host, const RunRequest& request);

}  // namespace remote::agent
