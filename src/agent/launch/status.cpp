#include "agent/launch/status.hpp"

#include <algorithm>

#include "base/format.hpp"

namespace remote::agent {
namespace {

constexpr Seconds member_patience{3};  // during which the absence of members is normal

}  // namespace

std::optional<std::string> describe_supervisor(const wire::LaunchSpec& spec,
                                               const rules::LaunchPolicy& policy, const Peers& peers,
                                               const std::string& dropped, Seconds ready, Seconds now) {
  const Seconds time_to_come = policy.time_to_come();
  const auto was_heard = [&](const std::string& server) { return policy.last_heard().contains(server); };
  if (policy.is_coordinator()) {
    std::string missing;
    for (const std::string& server : policy.others()) {
      if (!was_heard(server)) {
        missing += (missing.empty() ? "" : ", ") + server;
      }
    }
    if (!policy.others().empty() && !peers.is_listening()) {
      return "cannot listen: " + peers.refusal();
    }
    if (peers.is_deaf()) {
      return "cannot accept connections: " + peers.refusal();
    }
    if (missing.empty()) {
      return "ok";
    }
    const bool is_late = now - ready > std::min(member_patience, time_to_come);
    return is_late ? std::optional("waiting for " + missing) : std::nullopt;
  }
  const std::string& coordinator = policy.coordinator();
  if (was_heard(coordinator)) {
    return peers.is_linked() ? "ok" : text::format("cut off from {} since {}", coordinator, dropped);
  }
  if (!peers.refusal().empty() && now - ready > std::min(first_seconds, time_to_come)) {
    return text::format("cannot reach {} at {}:{}: {}", coordinator, spec.address, spec.port,
                        peers.refusal());
  }
  return std::nullopt;
}

}  // namespace remote::agent
