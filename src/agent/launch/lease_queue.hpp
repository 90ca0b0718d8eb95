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

// A launch that waits for its leases. Transfers the states and orders of rules::LeaseTurns between the
// servers, and between this supervisor and the process that waits on this server (wait_for_lease.hpp; the
// files `turn.state` and `turn.order` of the first job's folder).
class LeaseQueue {
 public:
  // `spec` must have at least one server, and must outlive this object.
  LeaseQueue(const Host& host, const wire::LaunchSpec& spec, Path job_folder,
             std::function<int()> choose_port);

  // The messages to send now; a member sends all of them to the coordinator. Undelivered messages are
  // repeated. `missing` lists the members that did not connect in time or, on a member, the coordinator if it
  // did not. In that case `lost` is set, and the launch has to be stopped, because the leases cannot be
  // completed.
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
  // Whether the message differs from the last one to this server, or has to be repeated because that one may
  // be lost.
  bool is_due(const std::string& server, const wire::LinkMessage& message, rules::Seconds now);
  // Passes the order to the waiting process, if it is a new one.
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
