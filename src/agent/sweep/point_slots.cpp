#include "agent/sweep/point_slots.hpp"

#include <stdexcept>

namespace remote::agent {
namespace {

constexpr rules::Seconds lease_pause{2};

}  // namespace

std::optional<int> PointSlots::take(rules::Seconds now) {
  if (free_ <= 0) {
    return std::nullopt;
  }
  if (take_lease_) {
    if (now < next_try_) {
      return std::nullopt;
    }
    next_try_ = now + lease_pause;
    trouble_.clear();
    std::optional<TakenLease> lease;
    try {
      lease = take_lease_();
    } catch (const std::runtime_error& error) {
      trouble_ = std::string("cannot lease anything here: ") + error.what();
    }
    if (!lease) {
      return std::nullopt;
    }
    next_try_ = now;  // more may be available
    leases_.emplace(last_slot_ + 1, std::move(*lease));
  }
  return occupy();
}

int PointSlots::occupy() {
  --free_;
  return ++last_slot_;
}

void PointSlots::give_back(int slot) {
  ++free_;
  if (const auto lease = leases_.find(slot); lease != leases_.end()) {
    lease->second.lease.remove();
    leases_.erase(lease);
  }
}

const TakenLease* PointSlots::find_lease(int slot) const {
  const auto lease = leases_.find(slot);
  return lease == leases_.end() ? nullptr : &lease->second;
}

}  // namespace remote::agent
