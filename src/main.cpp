#include <algorithm>
#include <climits>
#include <string_view>

#include <sys/resource.h>

#include "cli/cli.hpp"
#include "ssh/rsync_tunnel.hpp"

namespace {

// Every server needs some descriptors, and many systems allow 256 or 1024 unless a program asks for more.
void allow_open_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
#ifdef __APPLE__
    limit.rlim_cur = std::min<rlim_t>(OPEN_MAX, limit.rlim_max);  // more is refused there
#else
    limit.rlim_cur = limit.rlim_max;
#endif
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == remote::ssh::rsync_pipe_command) {
    // rsync's words must not meet our options, and nothing of the rest is needed.
    return remote::ssh::serve_rsync_pipe({argv + 2, argv + argc});
  }
  allow_open_files();
  return remote::cli::run(argc, argv);
}
