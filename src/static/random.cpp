// libstdc++'s std::random_device calls arc4random(), which glibc has since 2.36. The static program brings
// its own over getrandom(2), which glibc has since 2.25, and so starts on Ubuntu 22.04 and RHEL 9 as
// well, which have glibc 2.35 and 2.34.

#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include <sys/random.h>

extern "C" std::uint32_t arc4random() noexcept {
  std::uint32_t value = 0;
  // So few bytes come whole, or not at all (getrandom(2)).
  while (::getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) {
    if (errno != EINTR) {
      std::abort();  // no kernel since 3.17 lacks it, and there is no answer that would be safe
    }
  }
  return value;
}
