#pragma once

#include <string>
#include <vector>

#include <remote/launch_texts.hpp>
#include <remote/usable.hpp>

// The GPUs that --include and --exclude leave to a host's ranks.

namespace remote::launch {

// The GPUs of a server that this host's ranks may use. `gpus`: those that they would see. `allowed`: those
// that configs.yaml leaves to jobs, empty for all. Empty where the host says nothing of GPUs. Throws Error
// (usage) for one that there is not, that is hidden, or that is not allowed, and when none is left.
std::vector<int> gpus_of(const LaunchHost& host, const UsableGpus& gpus, const std::vector<int>& allowed);

// Adds CUDA_VISIBLE_DEVICES with these GPUs to `env`, if the host says something of GPUs. `user`: variables
// that would override it. Throws as gpus_of(), and where the user sets that variable too.
void set_gpus(const LaunchHost& host, const UsableGpus& gpus, const std::vector<int>& allowed,
              const Env& user, Env& env);

}  // namespace remote::launch
