// Conclusions from the collectives in the ranks' flight recorders.

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <tuple>

#include "jobs/why.hpp"

namespace remote {

std::string_view to_string(WhyCollective::Kind kind) {
  constexpr std::array names{"missing", "differs", "stuck"};
  return names.at(static_cast<std::size_t>(kind));
}

}  // namespace remote

namespace remote::jobs {
namespace {

using FlightsByRank = std::map<int, const wire::FlightEntry*>;

struct FlightGroup {
  std::map<int, std::uint64_t> last{};             // by rank
  std::map<std::uint64_t, FlightsByRank> calls{};  // by number
};

// Whether all ranks must call it with the same shapes.
bool has_one_shape(const std::string& function) {
  return function.find("all_to_all") == std::string::npos &&
         function.find("coalesced") == std::string::npos && function != "gather" && function != "scatter";
}

using FlightKey = std::tuple<std::string, std::string, std::string>;

FlightKey same(const wire::FlightEntry& flight) {
  const bool shapes = has_one_shape(flight.function);
  return {flight.function, shapes ? flight.types : "", shapes ? flight.shapes : ""};
}

std::vector<WhyCollective::Call> calls_of(const FlightsByRank& flights) {
  std::map<FlightKey, WhyCollective::Call> calls;
  for (const auto& [rank, flight] : flights) {
    WhyCollective::Call& call = calls[same(*flight)];
    if (call.ranks.empty()) {
      call.function = flight->function;
      call.types = flight->types == "-" ? "" : flight->types;
      call.shapes = flight->shapes == "-" ? "" : flight->shapes;
    }
    call.ranks.push_back(rank);
  }
  std::vector<WhyCollective::Call> all;
  std::ranges::transform(calls, std::back_inserter(all), [](auto& one) { return std::move(one.second); });
  std::ranges::stable_sort(all, {}, [](const WhyCollective::Call& one) { return one.ranks.size(); });
  return all;
}

// nullopt if it completed, as far as is known.
std::optional<WhyCollective> failure_of(const FlightGroup& group, std::uint64_t number,
                                        const FlightsByRank& flights) {
  WhyCollective found{.number = number, .calls = calls_of(flights)};
  for (const auto& [rank, last] : group.last) {
    if (last < number) {
      found.last_of_missing = found.missing.empty() ? last : found.last_of_missing;
      found.missing.push_back(rank);
    }
  }
  found.old = std::ranges::all_of(flights, [](const auto& flight) { return flight.second->state == "old"; });
  const bool completed = std::ranges::all_of(flights, [](const auto& flight) {
    return flight.second->state == "completed" || flight.second->state == "recent";
  });
  if (found.calls.size() > 1) {
    found.kind = WhyCollective::Kind::differs;
  } else if (completed) {
    return std::nullopt;
  } else {
    found.kind = found.missing.empty() ? WhyCollective::Kind::stuck : WhyCollective::Kind::missing;
  }
  return found;
}

}  // namespace

std::vector<WhyCollective> collectives_in(const std::vector<wire::FlightEntry>& flights) {
  std::map<std::string, FlightGroup> groups;
  for (const wire::FlightEntry& flight : flights) {
    FlightGroup& group = groups[flight.group];
    std::uint64_t& last = group.last[flight.rank];
    last = std::max(last, flight.number);
    if (flight.number > 0) {
      group.calls[flight.number].emplace(flight.rank, &flight);
    }
  }
  std::vector<WhyCollective> found;
  for (const auto& [name, group] : groups) {
    for (const auto& [number, calls] : group.calls) {
      if (auto failure = failure_of(group, number, calls)) {
        failure->group = name;
        found.push_back(std::move(*failure));
        break;
      }
    }
  }
  return found;
}

}  // namespace remote::jobs
