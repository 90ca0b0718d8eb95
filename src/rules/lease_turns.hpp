#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rules/launch_policy.hpp"

// A launch that waits for its leases on several servers (docs/sharing.md). The coordinator lets the servers
// take their leases one after the other, in the order of their machines' ids, which is the same for all
// launches: so two launches never wait for each other. When all have theirs, the ranks start everywhere. If
// they are not complete in time, all are given back, and taken again after a random pause.

namespace remote::rules {

class LeaseTurns {
 public:
  // `complete`: the most time between the first and the last lease. `choose_port`: a free port for rank 0.
  // `choose_pause`: before the next try.
  LeaseTurns(std::vector<std::string> servers, Seconds complete, std::function<int()> choose_port,
             std::function<Seconds()> choose_pause);

  // Ignores servers that are not of the launch.
  void hear(const std::string& server, const wire::LeaseReport& report);
  // The order for each server, after all have reported; before: to wait.
  const std::map<std::string, wire::LeaseOrder>& decide(Seconds now);
  bool has_started_any() const;
  // All have started.
  bool is_over() const;

 private:
  // nullptr: none has.
  const wire::LeaseReport* find_started() const;
  void order_all(const wire::LeaseOrder& order);
  // The servers that have their leases keep them, and the next one takes its own.
  void order_next();

  std::vector<std::string> servers_;
  Seconds complete_;
  std::function<int()> choose_port_;
  std::function<Seconds()> choose_pause_;
  std::map<std::string, wire::LeaseReport> reports_;
  std::map<std::string, wire::LeaseOrder> orders_;
  std::optional<Seconds> since_;  // the first lease of this try was taken
  Seconds resume_at_{0};
  bool gives_back_ = false;
};

}  // namespace remote::rules
