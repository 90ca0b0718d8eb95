#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "agent/lease/lease.hpp"
#include "rules/launch_policy.hpp"

namespace remote::agent {

// A server's slots for points, each with the lease of its point.
class PointSlots {
 public:
  // Like agent::take_lease(). An empty function means that points lease nothing.
  using TakeLease = std::function<std::optional<TakenLease>()>;

  PointSlots(int count, TakeLease take_lease) : free_(count), take_lease_(std::move(take_lease)) {}

  // Takes a slot with a new lease; nullopt if none is available now. Tries to lease only every two seconds,
  // because a GPU driver may take time to list its processes.
  std::optional<int> take(rules::Seconds now);
  // Takes a slot for a point that is already running, even if none is free. The point's guard holds the
  // lease.
  int occupy();
  void give_back(int slot);

  // nullopt if the slot has no lease any more, or never had one.
  const TakenLease* find_lease(int slot) const;
  // The point has inherited the lease, so the lease ends with it.
  void hand_over(int slot) { leases_.erase(slot); }

  // Why nothing can be leased, shown to the user; "" if the last attempt succeeded or resources were just not
  // available.
  const std::string& trouble() const { return trouble_; }

 private:
  int free_;
  int last_slot_ = 0;
  TakeLease take_lease_;
  std::map<int, TakenLease> leases_;
  rules::Seconds next_try_{0};
  std::string trouble_;
};

}  // namespace remote::agent
