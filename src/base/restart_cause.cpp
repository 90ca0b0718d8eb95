#include <algorithm>
#include <array>

#include <remote/launch.hpp>

namespace remote {
namespace {

constexpr std::array<std::string_view, 4> names{"exit", "signal", "oom",
                                                "lost"};  // in the order of RestartCause

}  // namespace

std::string_view to_string(RestartCause cause) {
  return names.at(static_cast<std::size_t>(cause));
}

std::optional<RestartCause> parse_restart_cause(std::string_view name) {
  const auto found = std::ranges::find(names, name);
  return found == names.end() ? std::nullopt
                              : std::optional(static_cast<RestartCause>(found - names.begin()));
}

}  // namespace remote
