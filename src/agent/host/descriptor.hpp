#pragma once

#include <utility>

#include <unistd.h>

namespace remote::agent {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    reset();
    fd_ = std::exchange(other.fd_, -1);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { reset(); }

  explicit operator bool() const { return fd_ >= 0; }
  int get() const { return fd_; }
  void reset() {
    if (fd_ >= 0) {
      ::close(std::exchange(fd_, -1));
    }
  }

 private:
  int fd_ = -1;
};

struct Pipe {
  Descriptor read_end;
  Descriptor write_end;

  explicit operator bool() const { return static_cast<bool>(read_end); }
};

// Opens a pipe that is closed on exec, with additional flags (O_NONBLOCK). Returns an empty one on failure.
Pipe open_pipe(int flags = 0);

// Closes all descriptors from `first` on, except `keep`. Safe in a forked process: it only uses system calls.
void close_descriptors(int first, int keep = -1);

}  // namespace remote::agent
