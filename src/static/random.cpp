// libstdc++'s std::random_device calls arc4random(), which glibc has since 2.36. The static program brings
// its own version based on getrandom(2), which glibc has since 2.25. So it also starts on Ubuntu 22.04 and
// RHEL 9, which have glibc 2.35 and 2.34.

#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include <sys/random.h>

extern "C" std::uint32_t arc4random() noexcept {
  std::uint32_t value = 0;
  // For so few bytes, getrandom(2) returns all or none.
  while (::getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) {
    if (errno != EINTR) {
      std::abort();  // every kernel since 3.17 has it, and no safe fallback exists
    }
  }
  return value;
}
