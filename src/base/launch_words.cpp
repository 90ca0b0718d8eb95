#include <algorithm>
#include <array>

#include <remote/launch.hpp>

#include "base/strings.hpp"

namespace remote {
namespace {

// in the order of RestartCause and OnHang
constexpr std::array<std::string_view, 5> names{"exit", "signal", "oom", "lost", "hang"};
constexpr std::array<std::string_view, 3> actions{"leave", "kill", "restart"};

}  // namespace

std::string to_string(const RanksPerServer& ranks) {
  const int* number = std::get_if<int>(&ranks);
  return number != nullptr ? std::to_string(*number) : ranks == RanksPerServer(OnePer::core) ? "cpu" : "auto";
}

std::optional<RanksPerServer> parse_ranks_per_server(std::string_view text) {
  if (text == "auto" || text == "gpu") {
    return OnePer::gpu;
  }
  if (text == "cpu") {
    return OnePer::core;
  }
  const auto number = parse_number<int>(text);
  return number && *number >= 1 && *number <= most_ranks_per_server ? std::optional<RanksPerServer>(*number)
                                                                    : std::nullopt;
}

std::string_view to_string(RestartCause cause) {
  return names.at(static_cast<std::size_t>(cause));
}

std::optional<RestartCause> parse_restart_cause(std::string_view name) {
  const auto found = std::ranges::find(names, name);
  return found == names.end() ? std::nullopt
                              : std::optional(static_cast<RestartCause>(found - names.begin()));
}

std::string_view to_string(OnHang action) {
  return actions.at(static_cast<std::size_t>(action));
}

std::optional<OnHang> parse_on_hang(std::string_view name) {
  const auto found = std::ranges::find(actions, name);
  return found == actions.end() ? std::nullopt : std::optional(static_cast<OnHang>(found - actions.begin()));
}

}  // namespace remote
