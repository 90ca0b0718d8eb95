#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/host/host.hpp"

namespace remote::agent {

// A line "NUMBER:CONTROLLERS:PATH" of /proc/PID/cgroup. The new hierarchy has no controllers.
struct CgroupPlace {
  std::vector<std::string> controllers;
  std::string path;

  bool is_new() const { return controllers.empty(); }
  // With other controllers, they are in the name of the folder: "cpu,cpuacct".
  bool has(std::string_view controller) const;
};
std::vector<CgroupPlace> read_cgroups(const Path& file);

// nullopt: unlimited.
struct CgroupLimits {
  std::optional<std::uint64_t> memory;  // bytes
  std::optional<double> cpus;           // processors' worth of time
};

// The lowest limits of this process's control groups, old and new, and of the groups above them. Any thread.
CgroupLimits read_cgroup_limits(const Host& host);

}  // namespace remote::agent
