#include "rules/first_cause.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace remote::rules {
namespace {

bool is_before(const FailureFacts& one, const FailureFacts& other) {
  const auto order = [](const FailureFacts& failure) {
    return std::tuple(failure.at.value_or(Moment::max()), failure.found_gone, !failure.signalled,
                      failure.rank);
  };
  return order(one) < order(other);
}

}  // namespace

std::optional<std::size_t> find_first_failure(std::span<const FailureFacts> failures) {
  std::optional<std::size_t> earliest;
  std::optional<std::size_t> own;  // the first failure that is not a consequence of a peer's
  for (std::size_t i = 0; i < failures.size(); ++i) {
    if (!earliest || is_before(failures[i], failures[*earliest])) {
      earliest = i;
    }
    if (!failures[i].after_peer && (!own || is_before(failures[i], failures[*own]))) {
      own = i;
    }
  }
  if (!own) {
    return earliest;
  }
  const std::optional<Moment> at = failures[*own].at;
  return !at || *at - failures[*earliest].at.value_or(*at) <= longest_delay ? own : earliest;
}

bool follows_stop(const FailureFacts& failure, const StopFacts& stop) {
  if (!failure.at) {
    return failure.after_peer;
  }
  if (failure.after_peer) {
    const std::optional<Moment> began = stop.began ? stop.began : stop.ended;
    return began && *began - longest_delay <= *failure.at;
  }
  return stop.began && stop.ended && *stop.began - clock_jitter <= *failure.at &&
         *failure.at <= *stop.ended + longest_delay;
}

std::string find_lost_server(const std::vector<Accusation>& accusations,
                             const std::set<std::string>& present) {
  std::map<std::string, std::set<std::string>> accusers;
  std::vector<std::string> accused;  // in the order of the accusations
  for (const Accusation& each : accusations) {
    if (each.accuser == each.accused) {
      return each.accused;  // it knows that it was away itself
    }
    if (accusers[each.accused].empty()) {
      accused.push_back(each.accused);
    }
    accusers[each.accused].insert(each.accuser);
  }
  if (accused.empty()) {
    return "";
  }
  const std::string& lost =
      *std::ranges::max_element(accused, {}, [&](const auto& server) { return accusers[server].size(); });
  return present.contains(lost) && accusers[lost].size() == 1 ? *accusers[lost].begin() : lost;
}

}  // namespace remote::rules
