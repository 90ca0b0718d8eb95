#include "agent/mpi/child.hpp"

#include <cerrno>
#include <cstring>

#include <sys/wait.h>
#include <unistd.h>

#include "agent/host/run.hpp"
#include "agent/job/job_files.hpp"
#include "base/format.hpp"

namespace remote::agent {

void exit_with_error(std::string_view text) {
  print_error(text);
  _exit(1);
}

GroupSignals::GroupSignals() {
  for (std::size_t i = 0; i < signals.size(); ++i) {
    before_[i] = std::signal(signals[i], SIG_IGN);
  }
}

void GroupSignals::restore() const {
  for (std::size_t i = 0; i < signals.size(); ++i) {
    std::signal(signals[i], before_[i]);
  }
}

pid_t start_child(const ChildRequest& request) {
  std::signal(SIGCHLD, SIG_DFL);  // if it is ignored, exit statuses are lost
  const pid_t child = ::fork();
  if (child < 0) {
    throw CannotStart();
  }
  if (child > 0) {
    return child;
  }
  if (request.signals != nullptr) {
    request.signals->restore();
  }
  for (int stream = 0; stream < 3; ++stream) {
    if (const int fd = request.streams[static_cast<std::size_t>(stream)]; fd >= 0) {
      ::dup2(fd, stream);
    }
  }
  const char* program = request.folder;
  if (::chdir(program) == 0) {
    program = request.argv[0];
    ::execvp(program, const_cast<char* const*>(request.argv));
    if (errno == ENOENT && request.fallback != nullptr) {
      program = request.fallback[0];
      ::execvp(program, const_cast<char* const*>(request.fallback));
    }
  }
  const int error = errno;
  print_error(text::format("cannot run {}: {}", program, ::strerror(error)));
  _exit(127);
}

wire::ProcessEnd wait_for_child(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? wire::ProcessEnd::signalled(WTERMSIG(status))
                             : wire::ProcessEnd::exited(WEXITSTATUS(status));
}

int to_exit_code(const wire::ProcessEnd& end) {
  return end.signal != 0 ? 128 + end.signal : end.code;
}

}  // namespace remote::agent
