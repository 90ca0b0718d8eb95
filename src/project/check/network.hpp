#pragma once

#include <optional>
#include <vector>

#include <remote/check.hpp>
#include <remote/network.hpp>

#include "project/core.hpp"

namespace remote::project {

// Tries from each of these servers to reach each other one, all side by side. One that cannot be asked is in
// the result with the reason. nullopt where there are no two servers. Throws Interrupted.
std::optional<Network> look_at_network(Core& core, const std::vector<config::Server>& servers);

// What that means, for each server: one finding at least.
std::vector<std::vector<Finding>> network_findings(const Network& network);

}  // namespace remote::project
