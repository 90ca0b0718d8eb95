#pragma once

#include <string>
#include <vector>

#include <remote/launch_texts.hpp>
#include <remote/usable.hpp>

// The GPUs that --include and --exclude select for a host's ranks.

namespace remote::launch {

// The GPUs of a server that this host's ranks may use. `gpus` are those that the ranks would see. `allowed`
// are those that configs.yaml permits for jobs; empty: all. Returns an empty list if the host names no GPUs.
// Throws Error (usage) for a GPU that does not exist, is hidden or is not allowed, and if none is left.
std::vector<int> gpus_of(const LaunchHost& host, const UsableGpus& gpus, const std::vector<int>& allowed);

// Sets CUDA_VISIBLE_DEVICES in `env` to these GPUs, if the host names any. `user` contains variables that
// would override it. Throws like gpus_of(), and if the user sets that variable too.
void set_gpus(const LaunchHost& host, const UsableGpus& gpus, const std::vector<int>& allowed,
              const Env& user, Env& env);

}  // namespace remote::launch
