#include "agent/host/start.hpp"

#include <csignal>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host/descriptor.hpp"
#include "agent/host/run.hpp"

namespace remote::agent {
namespace {

// The code below runs in a child of a multithreaded process, so it may only use system calls.

bool open_as(int fd, const char* path, int flags) {
  const int opened = ::open(path, flags);
  return opened >= 0 && (opened == fd || ::dup2(opened, fd) == fd);
}

void reset_signals() {
  for (int signal = 1; signal < NSIG; ++signal) {
    ::signal(signal, SIG_DFL);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void execute(const char* folder, int descriptor, const char* input, char** argv,
                          char** environment) {
  reset_signals();
  const bool has_input =
      descriptor >= 0 ? ::dup2(descriptor, 0) == 0 : open_as(0, input, O_RDONLY | O_NOFOLLOW);
  if (has_input && ::chdir(folder) == 0 && open_as(1, "/dev/null", O_WRONLY) &&
      open_as(2, "/dev/null", O_WRONLY)) {
    close_descriptors(3);
    ::execve(argv[0], argv, environment);
  }
  ::_exit(127);
}

}  // namespace

bool start_apart(const Host& host, const StartRequest& request) {
  std::vector<std::string> argv = request.argv;
  std::vector<std::string> environment = host.list_variables();
  std::vector<char*> arguments = pointers_to(argv);
  std::vector<char*> variables = pointers_to(environment);
  const pid_t child = ::fork();
  if (child < 0) {
    return false;
  }
  if (child == 0) {
    // The program is a grandchild, so that the agent does not have to wait for it.
    ::setsid();
    const pid_t program = ::fork();
    if (program == 0) {
      execute(request.folder.c_str(), request.input_descriptor, request.input.c_str(), arguments.data(),
              variables.data());
    }
    ::_exit(program < 0 ? 1 : 0);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace remote::agent
