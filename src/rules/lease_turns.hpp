#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rules/launch_policy.hpp"

// A launch that waits for its leases on several servers (docs/sharing.md). The coordinator lets the servers
// take their leases one after the other, in the order of their machines' ids. This order is the same for all
// launches, so two launches never wait for each other. When all servers have their leases, the ranks start
// everywhere. If the leases are not complete in time, all are given back, and taken again after a random
// pause.

namespace remote::rules {

class LeaseTurns {
 public:
  // `complete`: the longest time between the first and the last lease. `choose_port` returns a free port for
  // rank 0, `choose_pause` the pause before the next attempt.
  LeaseTurns(std::vector<std::string> servers, Seconds complete, std::function<int()> choose_port,
             std::function<Seconds()> choose_pause);

  // Ignores servers outside the launch.
  void hear(const std::string& server, const wire::LeaseReport& report);
  // The order for each server; until all have reported, the order is to wait.
  const std::map<std::string, wire::LeaseOrder>& decide(Seconds now);
  bool has_started_any() const;
  // Whether all have started.
  bool is_over() const;

 private:
  // nullptr if none has started.
  const wire::LeaseReport* find_started() const;
  void order_all(const wire::LeaseOrder& order);
  // Servers that have their leases keep them, and the next one takes its own.
  void order_next();

  std::vector<std::string> servers_;
  Seconds complete_;
  std::function<int()> choose_port_;
  std::function<Seconds()> choose_pause_;
  std::map<std::string, wire::LeaseReport> reports_;
  std::map<std::string, wire::LeaseOrder> orders_;
  std::optional<Seconds> since_;  // when the first lease of this attempt was taken
  Seconds resume_at_{0};
  bool gives_back_ = false;
};

}  // namespace remote::rules
