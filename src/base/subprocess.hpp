#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <remote/cancel.hpp>
#include <remote/exit_status.hpp>
#include <sys/types.h>

#include "base/files.hpp"

namespace remote {

// How a program ended, here or on a server, and what it printed.
struct ExecResult {
  ExitStatus status = ExitStatus::exited(0);
  std::string out;
  std::string err;

  // The status, and the last lines of `err`: "exit 1: no space left".
  std::string describe() const;
};

// What to start: an argument vector, never a shell line.
struct SubprocessSpec {
  std::vector<std::string> argv;                   // argv[0] is looked up in PATH
  std::optional<std::filesystem::path> directory;  // where it runs; default: here
  std::map<std::string, std::string> set_env;      // added to this process's environment
  std::string unset_env;                           // variables whose names begin so are left out; "": none
  std::vector<std::pair<int, int>> pass_fds;       // {ours, number in the child}
  bool pipe_stdin = false;                         // else /dev/null
  bool pipe_stdout = false;                        // else inherited
  bool pipe_stderr = false;                        // else inherited
  bool new_session = false;                        // setsid(2): no terminal signal reaches it
};

// A local child process. Its destructor closes the pipes, kills it if it still runs, and reaps it. One
// thread.
class Subprocess {
 public:
  // Throws Error when the program cannot be started (not found, not executable).
  explicit Subprocess(const SubprocessSpec& spec);
  ~Subprocess();
  Subprocess(Subprocess&& other) noexcept;
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  pid_t pid() const { return pid_; }
  UniqueFd stdin_fd;   // ours to write, when piped
  UniqueFd stdout_fd;  // ours to read, when piped
  UniqueFd stderr_fd;

  void kill(int signal) const;
  ExitStatus wait();                 // blocks until it ended
  std::optional<ExitStatus> poll();  // nullopt while it runs
  pid_t release();                   // let it run on without us

 private:
  pid_t pid_ = -1;
  std::optional<ExitStatus> status_;
};

// Runs a program to its end, gives it `input`, collects both outputs side by side (no deadlock on a full
// pipe). On cancel the child gets SIGTERM and Interrupted is thrown.
ExecResult run_subprocess(SubprocessSpec spec, std::string_view input = {}, const Cancel& cancel = Cancel());

// Where PATH has a program of this name; nullopt when nowhere.
std::optional<std::filesystem::path> find_program(const std::string& name);

}  // namespace remote
