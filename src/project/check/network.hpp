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
  bool bandwidth = false;  // also measure the bandwidth between them
  // Gets the current step and its progress. Calls never overlap.
  std::function<void(const std::string& step, std::size_t done, std::size_t all)> on_progress{};
};

// Tries to connect from each of these servers to every other one, in parallel. `addresses`: how this machine
// reaches them; empty: it does not. A server that cannot be queried is in the result, with the reason.
// nullopt if there are fewer than two servers. Throws Interrupted.
std::optional<Network> look_at_network(Core& core, const std::vector<config::Server>& servers,
                                       const std::vector<std::string>& addresses,
                                       const NetworkOptions& options = {});

// The findings for each server, at least one.
std::vector<std::vector<Finding>> network_findings(const Network& network);

// Computes the medians and marks the outliers.
void judge_flows(Bandwidth& bandwidth);
// The findings about the bandwidth, for each server. `has_gpus`: by server, whether it has or should have
// GPUs.
std::vector<std::vector<Finding>> bandwidth_findings(const Network& network,
                                                     const std::vector<bool>& has_gpus);

}  // namespace remote::project
