#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

// Determines which failure of a launch caused the others, and which server was lost. The client's verdict and
// the supervisor's notification both use these rules, so they name the same rank.

namespace remote::rules {

// Time since an arbitrary point that is the same for all compared values.
using Moment = std::chrono::milliseconds;

// A cause may be detected up to five seconds after its consequences.
constexpr Moment longest_delay = std::chrono::seconds(5);
// The largest difference between the clocks of two servers.
constexpr Moment clock_jitter{250};

struct FailureFacts {
  std::optional<Moment> at;  // nullopt: unknown
  int rank = 0;
  bool after_peer = false;  // its last output shows that a peer was gone
  bool found_gone = false;  // it did not report its end itself
  bool signalled = false;
};

// The index of the failure that caused the others: the first one that is not a consequence of a peer's,
// unless it came too late to be the cause of the very first. Failures at an unknown time come last. Of two at
// the same time, the one that reported its end comes first, then one by a signal, then the lower rank.
// nullopt if there are no failures.
std::optional<std::size_t> find_first_failure(std::span<const FailureFacts> failures);

// A stop by a user: when it began, and when the rank ended.
struct StopFacts {
  std::optional<Moment> began;
  std::optional<Moment> ended;
};

// Whether a failure is a consequence of a user's stop of another rank: it blames a lost peer, or it happened
// while the rank was being stopped, or soon after.
bool follows_stop(const FailureFacts& failure, const StopFacts& stop);

// A server that stopped its ranks because it considered another one lost.
struct Accusation {
  std::string accuser;
  std::string accused;
};

// The lost server; "" without accusations. A server without a connection accuses the others, and they accuse
// it: the majority is right, and in a tie the first accuser. `present`: servers whose ranks all ended on
// their own or were stopped by a user; a single accusation does not count against them, but against the
// accuser.
std::string find_lost_server(const std::vector<Accusation>& accusations,
                             const std::set<std::string>& present);

}  // namespace remote::rules
