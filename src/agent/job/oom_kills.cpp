#include "agent/job/oom_kills.hpp"

#include <string>

#include "agent/host/files.hpp"
#include "base/strings.hpp"

namespace remote::agent {

std::optional<std::uint64_t> count_oom_kills(const Host& host) {
  Path file = host.system("/proc/vmstat");
  for (const std::string& line : read_lines(host.system("/proc/self/cgroup"))) {
    if (line.starts_with("0::")) {
      const Path events = host.system("/sys/fs/cgroup" + line.substr(3) + "/memory.events");
      file = exists(events) ? events : file;
    }
  }
  constexpr std::string_view key = "oom_kill ";
  for (const std::string& line : read_lines(file)) {
    if (line.starts_with(key)) {
      return parse_number<std::uint64_t>(std::string_view(line).substr(key.size()));
    }
  }
  return std::nullopt;
}

}  // namespace remote::agent
