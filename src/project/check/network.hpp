#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <remote/check.hpp>
#include <remote/network.hpp>

#include "project/core.hpp"

namespace remote::project {

struct NetworkOptions {
  bool bandwidth = false;  // also measure how fast they send to each other
  // What it is at, and how much of it is done. One call at a time.
  std::function<void(const std::string& step, std::size_t done, std::size_t all)> on_progress{};
};

// Tries from each of these servers to reach each other one, all side by side. `addresses`: by which this
// machine reaches them; empty: it does not. One that cannot be asked is in the result with the reason.
// nullopt where there are no two servers. Throws Interrupted.
std::optional<Network> look_at_network(Core& core, const std::vector<config::Server>& servers,
                                       const std::vector<std::string>& addresses,
                                       const NetworkOptions& options = {});

// What that means, for each server: one finding at least.
std::vector<std::vector<Finding>> network_findings(const Network& network);

// Computes the medians and marks the outliers.
void judge_flows(Bandwidth& bandwidth);
// What the bandwidth means, for each server. `has_gpus`: by server, whether it has or should have GPUs.
std::vector<std::vector<Finding>> bandwidth_findings(const Network& network,
                                                     const std::vector<bool>& has_gpus);

}  // namespace remote::project
