#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <remote/launch.hpp>

// --include and --exclude, in DeepSpeed's grammar: NAME[:GPU[,GPU…]][@NAME…].

namespace remote::launch {

// What such a text names: hosts, with LaunchHost::gpus where it names GPUs. `option` is for messages. Throws
// Error (usage).
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

// The GPUs of a server that this host's ranks may use, and of which there are `gpus`; `allowed`: those that
// configs.yaml leaves to jobs, empty for all. Empty where the host says nothing of GPUs. Throws Error (usage)
// for one that there is not, or that is not allowed, and when none is left.
std::vector<int> gpus_of(const LaunchHost& host, int gpus, const std::vector<int>& allowed);

// Adds CUDA_VISIBLE_DEVICES with these GPUs to `env`, if the host says something of GPUs. `user`: variables
// that would override it. Throws as gpus_of(), and where the user sets that variable too.
void set_gpus(const LaunchHost& host, int gpus, const std::vector<int>& allowed, const Env& user, Env& env);

}  // namespace remote::launch
