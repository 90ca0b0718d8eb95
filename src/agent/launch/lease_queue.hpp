#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/host/host.hpp"
#include "rules/lease_turns.hpp"
#include "wire/launch.hpp"

namespace remote::agent {

// A launch that waits for its leases: carries the states and orders of rules::LeaseTurns between the servers,
// and between this supervisor and the process that waits on this server (wait_for_lease.hpp; the files
// `turn.state` and `turn.order` of the first job's folder).
class LeaseQueue {
 public:
  // `spec` has at least one server, and must outlive this.
  LeaseQueue(const Host& host, const wire::LaunchSpec& spec, Path job_folder,
             std::function<int()> choose_port);

  // The messages to send now; on a member, all to the coordinator. One that is not delivered is repeated.
  // `missing`: members that did not connect in time; on a member, the coordinator, if it did not. Then `lost`
  // is set: the launch has to end, because the leases cannot be completed.
  struct Step {
    std::vector<std::pair<std::string, wire::LinkMessage>> messages{};
    std::optional<std::string> lost{};
  };
  Step step(rules::Seconds now, const std::vector<std::string>& missing, bool coordinator_has_left);
  void hear(const std::string& server, const wire::LinkMessage& message);
  bool is_over() const { return is_over_; }

 private:
  struct Sent {
    wire::LinkMessage message;
    rules::Seconds at{0};
  };

  const std::string& coordinator() const { return spec_.servers.front().name; }
  // Whether the message differs from the last one to this server, or has to be repeated because that may be
  // lost.
  bool is_due(const std::string& server, const wire::LinkMessage& message, rules::Seconds now);
  // Gives the waiting process the order, if it is a new one.
  void obey(const wire::LeaseOrder& order);

  const wire::LaunchSpec& spec_;
  Path folder_;
  std::string machine_;
  std::optional<rules::LeaseTurns> turns_;  // on the coordinator
  std::optional<wire::LeaseOrder> order_;   // on this server
  std::map<std::string, Sent> sent_;
  bool is_over_ = false;
};

}  // namespace remote::agent
