#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <remote/launch.hpp>

// Parts of a LaunchRequest as users write them. What is wrong throws Error (usage).

namespace remote {

// The hosts of a launch as MPI and DeepSpeed name them.

// A hostfile: "HOST", "HOST slots=N" or "HOST:N" a line, "#" before a comment. `file` is its name in
// messages, which have the line. A file that names no host is wrong.
std::vector<LaunchHost> parse_hostfile(std::string_view text, const std::string& file);

// "a,b:2", as -H takes it.
std::vector<LaunchHost> parse_host_list(std::string_view text);

// --include and --exclude, in DeepSpeed's grammar: NAME[:GPU[,GPU…]][@NAME…]. What such a text names: hosts,
// with LaunchHost::gpus where it names GPUs. `option` is for messages.
std::vector<LaunchHost> parse_host_filter(std::string_view text, const std::string& option);

// Of these hosts (each once), those that `named` names, in their own order, with the GPUs named there. Names
// are those of servers in both. Throws Error (usage) for a name that is not among the hosts, and for a GPU
// that a host with slots does not have.
std::vector<LaunchHost> include_hosts(const std::vector<LaunchHost>& hosts,
                                      const std::vector<LaunchHost>& named);

// These hosts without what `named` names: a host as a whole, or these GPUs of it. Throws as include_hosts(),
// and when nothing is left.
std::vector<LaunchHost> exclude_hosts(const std::vector<LaunchHost>& hosts,
                                      const std::vector<LaunchHost>& named);

}  // namespace remote
