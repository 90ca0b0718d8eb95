#include "servers/peer_pool.hpp"

#include <algorithm>
#include <utility>

namespace remote::servers {

PeerPool::Next PeerPool::next(const PeerSource& asking) {
  const std::lock_guard lock(mutex_);
  const auto free = std::ranges::find(sources_, false, &Entry::busy);
  if (free != sources_.end()) {
    free->busy = true;
    ++under_way_;
    return {Turn::from_peer, free->source};
  }
  if (under_way_ == 0) {
    ++under_way_;
    first_ = asking;
    return {Turn::from_here, std::nullopt};
  }
  return {Turn::wait, first_};
}

void PeerPool::begin_from_here() {
  const std::lock_guard lock(mutex_);
  ++under_way_;
}

void PeerPool::release(const std::string& source) {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::ranges::find_if(sources_, [&](const Entry& entry) { return entry.source.server == source; });
  if (found != sources_.end()) {
    found->busy = false;
  }
}

void PeerPool::finish(std::optional<PeerSource> source) {
  const std::lock_guard lock(mutex_);
  --under_way_;
  if (source) {
    sources_.push_back({std::move(*source), false});
  }
}

}  // namespace remote::servers
