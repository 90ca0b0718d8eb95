#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <remote/launch.hpp>

// The hosts of a launch as MPI and DeepSpeed name them.

namespace remote::launch {

// A hostfile: "HOST", "HOST slots=N" or "HOST:N" a line, "#" before a comment. `file` is its name in
// messages. Throws Error (usage) with the line, also for a file that names no host.
std::vector<LaunchHost> parse_hostfile(std::string_view text, const std::string& file);

// "a,b:2", as -H takes it. Throws Error (usage).
std::vector<LaunchHost> parse_host_list(std::string_view text);

}  // namespace remote::launch
