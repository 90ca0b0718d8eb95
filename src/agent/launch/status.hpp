#pragma once

#include <optional>
#include <string>

#include "agent/launch/peers.hpp"
#include "rules/launch_policy.hpp"
#include "wire/launch.hpp"

namespace remote::agent {

// The longest normal delay between the starts of two supervisors.
constexpr Seconds first_seconds{1.5};

// Describes the state of a supervisor for the file `lifeline`: "ok", or the problem. nullopt if it is too
// early to know. `ready` is when the supervisor began to wait for the others, and `dropped` the time of day
// when the link to the coordinator was lost.
std::optional<std::string> describe_supervisor(const wire::LaunchSpec& spec,
                                               const rules::LaunchPolicy& policy, const Peers& peers,
                                               const std::string& dropped, Seconds ready, Seconds now);

}  // namespace remote::agent
