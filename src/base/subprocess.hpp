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

// How a program ended, here or on a server, and its output.
struct ExecResult {
  ExitStatus status = ExitStatus::exited(0);
  std::string out;
  std::string err;

  // The status, and the last lines of `err`: "exit 1: no space left".
  std::string describe() const;
};

// The program to start: an argument vector, never a shell command line.
struct SubprocessSpec {
  std::vector<std::string> argv;                   // argv[0] is looked up on PATH
  std::optional<std::filesystem::path> directory;  // its working directory; default: the current one
  std::map<std::string, std::string> set_env;      // added to this process's environment
  std::string unset_env;                           // prefix of variables to remove; "": none
  std::vector<std::pair<int, int>> pass_fds;       // {ours, number in the child}
  bool pipe_stdin = false;                         // otherwise /dev/null
  bool pipe_stdout = false;                        // otherwise inherited
  bool pipe_stderr = false;                        // otherwise inherited
  bool new_session = false;  // setsid(2), so that it receives no signals from the terminal
};

// A local child process. The destructor closes the pipes, kills it if it is still running, and reaps it. Not
// thread-safe.
class Subprocess {
 public:
  // Throws Error if the program cannot be started (not found, not executable).
  explicit Subprocess(const SubprocessSpec& spec);
  ~Subprocess();
  Subprocess(Subprocess&& other) noexcept;
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  pid_t pid() const { return pid_; }
  UniqueFd stdin_fd;   // to write to the child, if piped
  UniqueFd stdout_fd;  // to read from the child, if piped
  UniqueFd stderr_fd;

  void kill(int signal) const;
  ExitStatus wait();                 // blocks until it has ended
  std::optional<ExitStatus> poll();  // nullopt while it is running
  pid_t release();                   // lets it continue without this object

 private:
  pid_t pid_ = -1;
  std::optional<ExitStatus> status_;
};

// Runs a program to its end, passes `input` to it, and collects both outputs concurrently, so a full pipe
// causes no deadlock. On cancel, sends SIGTERM to the child and throws Interrupted.
ExecResult run_subprocess(SubprocessSpec spec, std::string_view input = {}, const Cancel& cancel = Cancel());

// The path of a program on PATH; nullopt if it is not found.
std::optional<std::filesystem::path> find_program(const std::string& name);

}  // namespace remote
