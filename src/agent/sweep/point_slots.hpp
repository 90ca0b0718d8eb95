#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "agent/lease/lease.hpp"
#include "rules/launch_policy.hpp"

namespace remote::agent {

// The slots of a server for points, each with what its point leases.
class PointSlots {
 public:
  // Like agent::take_lease(). An empty function means that points lease nothing.
  using TakeLease = std::function<std::optional<TakenLease>()>;

  PointSlots(int count, TakeLease take_lease) : free_(count), take_lease_(std::move(take_lease)) {}

  // A slot with a new lease; nullopt if there is none now. Leases are tried every two seconds, because the
  // driver of a GPU can need time to list its processes.
  std::optional<int> take(rules::Seconds now);
  // A slot for a point that runs already, even if none is free. Its guard holds the lease.
  int occupy();
  void give_back(int slot);

  // nullptr if the slot has no lease, or not any more.
  const TakenLease* find_lease(int slot) const;
  // The point has inherited the lease, which ends with it.
  void hand_over(int slot) { leases_.erase(slot); }

  // Why nothing can be leased, for people; "" if the last try succeeded or something was not free.
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
