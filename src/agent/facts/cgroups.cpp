#include "agent/facts/cgroups.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "agent/host/files.hpp"
#include "base/strings.hpp"
#include "wire/facts.hpp"

namespace remote::agent {
namespace {

// Calls read(folder) for a group and all of its ancestors, and returns the lowest value.
template <typename Read>
auto find_lowest(const std::string& base, std::string path, const Read& read) {
  auto lowest = read(base + path);
  while (!path.empty() && path != "/") {
    const std::size_t slash = path.rfind('/');
    path.resize(slash == std::string::npos ? 0 : slash);
    const auto value = read(base + path);
    if (value && (!lowest || *value < *lowest)) {
      lowest = value;
    }
  }
  return lowest;
}

std::optional<std::uint64_t> read_limit_file(const std::string& path) {
  return parse_number<std::uint64_t>(trim(read_first_line(path)));
}

std::optional<double> divide_quota(std::string_view quota, std::string_view period) {
  const auto time = parse_number<std::uint64_t>(quota);  // "max", or -1 in cgroup v1: unlimited
  const auto each = parse_number<std::uint64_t>(period);
  if (!time || each.value_or(0) == 0) {
    return std::nullopt;
  }
  return static_cast<double>(*time) / static_cast<double>(*each);
}

std::optional<double> read_cpu_max(const std::string& folder) {
  const std::vector<std::string> words = split_words(read_first_line(folder + "/cpu.max"));
  return words.size() == 2 ? divide_quota(words[0], words[1]) : std::nullopt;
}

std::optional<double> read_cfs_quota(const std::string& folder) {
  return divide_quota(trim(read_first_line(folder + "/cpu.cfs_quota_us")),
                      trim(read_first_line(folder + "/cpu.cfs_period_us")));
}

}  // namespace

bool CgroupPlace::has(std::string_view controller) const {
  return std::ranges::find(controllers, controller) != controllers.end();
}

std::vector<CgroupPlace> read_cgroups(const Path& file) {
  std::vector<CgroupPlace> places;
  for (const std::string& line : read_lines(file)) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second != std::string::npos) {
      const std::string kinds = line.substr(first + 1, second - first - 1);
      places.push_back(
          {kinds.empty() ? std::vector<std::string>() : split(kinds, ','), line.substr(second + 1)});
    }
  }
  return places;
}

CgroupLimits read_cgroup_limits(const Host& host) {
  const std::string base = host.system("/sys/fs/cgroup");
  CgroupLimits limits;
  for (const CgroupPlace& place : read_cgroups(host.system("/proc/self/cgroup"))) {
    const std::string& path = place.path;
    if (place.is_new()) {
      if (!limits.memory) {
        limits.memory = find_lowest(
            base, path, [](const std::string& folder) { return read_limit_file(folder + "/memory.max"); });
      }
      if (!limits.cpus) {
        limits.cpus = find_lowest(base, path, read_cpu_max);
      }
      continue;
    }
    if (place.has("memory")) {
      limits.memory = find_lowest(base + "/memory", path, [](const std::string& folder) {
        return read_limit_file(folder + "/memory.limit_in_bytes");
      });
    }
    if (place.has("cpu")) {
      limits.cpus = find_lowest(base + "/" + join(place.controllers, ","), path, read_cfs_quota);
    }
  }
  // Without a limit, cgroup v1 reports a number that no machine reaches.
  if (limits.memory && *limits.memory >= wire::max_bytes) {
    limits.memory.reset();
  }
  if (limits.cpus) {
    limits.cpus = std::floor(*limits.cpus * 100) / 100;
    if (*limits.cpus > wire::max_count) {
      limits.cpus.reset();
    }
  }
  return limits;
}

}  // namespace remote::agent
