#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <remote/launch.hpp>

// Parsers for parts of a LaunchRequest that users write as text. Invalid text throws Error (usage).

namespace remote {

// The hosts of a launch, in the syntax of MPI and DeepSpeed.

// A hostfile: one "HOST", "HOST slots=N" or "HOST:N" per line; "#" starts a comment. `file` is its name in
// error messages, which include the line. Throws if the file names no host.
std::vector<LaunchHost> parse_hostfile(std::string_view text, const std::string& file);

// The argument of -H: "a,b:2".
std::vector<LaunchHost> parse_host_list(std::string_view text);

// The argument of --include and --exclude, in DeepSpeed's grammar: NAME[:GPU[,GPU…]][@NAME…]. Returns hosts,
// with LaunchHost::gpus if GPUs are named. `option` is for error messages.
std::vector<LaunchHost> parse_host_filter(std::string_view text, const std::string& option);

// The hosts that are in `named` (each once), in the order of `hosts`, with the GPUs named there. Both lists
// use server names. Throws Error (usage) for a name that is not among the hosts, and for a GPU that a host
// with slots does not have.
std::vector<LaunchHost> include_hosts(const std::vector<LaunchHost>& hosts,
                                      const std::vector<LaunchHost>& named);

// The hosts without those in `named`: removes a host, or only the named GPUs of it. Throws like
// include_hosts(), and if nothing is left.
std::vector<LaunchHost> exclude_hosts(const std::vector<LaunchHost>& hosts,
                                      const std::vector<LaunchHost>& named);

}  // namespace remote
