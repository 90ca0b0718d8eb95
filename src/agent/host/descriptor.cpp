#include "agent/host/descriptor.hpp"

#include <array>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

namespace remote::agent {
namespace {

void close_range(int first, int last) {
  if (first > last || ::syscall(SYS_close_range, first, last, 0) == 0) {
    return;
  }
  rlimit most{};  // before Linux 5.9
  ::getrlimit(RLIMIT_NOFILE, &most);
  for (int fd = first; fd <= last && fd < 65536 && static_cast<rlim_t>(fd) < most.rlim_cur; ++fd) {
    ::close(fd);
  }
}

}  // namespace

Pipe open_pipe(int flags) {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC | flags) != 0) {
    return {};
  }
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

void close_descriptors(int first, int keep) {
  constexpr int last = 0x7fffffff;
  if (keep < first) {
    close_range(first, last);
    return;
  }
  close_range(first, keep - 1);
  close_range(keep + 1, last);
}

}  // namespace remote::agent
