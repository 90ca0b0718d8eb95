#include "agent/gpus/visible_devices.hpp"

#include <string>

#include "rules/usable.hpp"
#include "wire/text.hpp"

namespace remote::agent {

std::vector<VisibleDevices> read_visible_devices(const Host& host) {
  constexpr std::size_t longest_value = 4096;
  std::vector<VisibleDevices> visible;
  for (const std::string_view name : rules::visibility_variables) {
    const auto found = host.environment.find(std::string(name));
    if (found != host.environment.end()) {
      visible.push_back(
          {.variable = std::string(name), .value = wire::to_line(found->second, longest_value)});
    }
  }
  return visible;
}

}  // namespace remote::agent
