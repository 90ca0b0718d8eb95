#include "servers/fanout.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

namespace remote::servers {

void need_open_files(std::size_t servers) {
  // Each connection is a socket. This many are enough for the rest of the program, and for a command that
  // runs on this side (rsync, ssh-agent).
  constexpr std::size_t others = 40;
  rlimit limit{};
  const std::size_t needed = servers + others;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) {
    return;
  }
  throw Error(fmt::format("cannot connect to {} servers at once", servers),
              fmt::format("this machine allows {} open files, and {} are needed", limit.rlim_cur, needed),
              "raise the hard limit (ulimit -Hn, /etc/security/limits.conf), or name fewer servers")
      .because(Cause::no_resources);
}

}  // namespace remote::servers
