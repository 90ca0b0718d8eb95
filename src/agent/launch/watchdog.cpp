#include "agent/launch/watchdog.hpp"

#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace remote::agent {

void Watchdog::keep() {
  if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == 0) {
    return;
  }
  pid_ = -1;
  Pipe pipe = open_pipe();
  if (!pipe) {
    return;
  }
  Descriptor alive = std::move(pipe.read_end);
  pipe_ = std::move(pipe.write_end);
  pid_ = ::fork();
  if (pid_ == 0) {
    wait(std::move(alive));
  }
}

void Watchdog::dismiss() {
  if (pid_ > 0) {
    [[maybe_unused]] const ssize_t count = ::write(pipe_.get(), "bye\n", 4);
  }
  pipe_.reset();
  pid_ = -1;
}

void Watchdog::wait(Descriptor alive) const {
  ::setsid();  // this process must not receive signals to the process group of the supervisor
  ::prctl(PR_SET_NAME, "remote-watchdog");
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) {
    std::signal(signal, SIG_IGN);
  }
  close_descriptors(STDERR_FILENO + 1, alive.get());
  char byte = 0;
  ssize_t count = 0;
  do {
    count = ::read(alive.get(), &byte, 1);
  } while (count < 0 && errno == EINTR);
  if (count == 0) {
    alive.reset();
    take_over_();
  }
  ::_exit(0);
}

}  // namespace remote::agent
