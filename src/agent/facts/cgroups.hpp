#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/host/host.hpp"

namespace remote::agent {

// A line "NUMBER:CONTROLLERS:PATH" of /proc/PID/cgroup. In cgroup v2, the list of controllers is empty.
struct CgroupPlace {
  std::vector<std::string> controllers;
  std::string path;

  bool is_new() const { return controllers.empty(); }
  // Several controllers in one hierarchy share a folder, whose name lists them: "cpu,cpuacct".
  bool has(std::string_view controller) const;
};
std::vector<CgroupPlace> read_cgroups(const Path& file);

// nullopt: unlimited.
struct CgroupLimits {
  std::optional<std::uint64_t> memory;  // bytes
  std::optional<double> cpus;           // processors' worth of time
};

// The lowest limits of this process's control groups (v1 and v2) and of their ancestors. Any thread.
CgroupLimits read_cgroup_limits(const Host& host);

}  // namespace remote::agent
