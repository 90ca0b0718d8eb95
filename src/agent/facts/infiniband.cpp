#include "agent/facts/infiniband.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "agent/host/files.hpp"
#include "agent/host/path.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

constexpr std::size_t max_infiniband_ports = 1024;

std::string read_port_file(const Path& path) {
  return wire::to_line(trim(read_first_line(path)));
}

}  // namespace

std::vector<InfinibandPort> read_infiniband(const Host& host) {
  const Path devices = host.system("/sys/class/infiniband");
  std::vector<InfinibandPort> ports;
  for (const std::string& device : list_names(devices)) {
    for (const std::string& name : list_names(devices / device / "ports")) {
      const Path folder = devices / device / "ports" / name;
      const auto number = parse_number<int>(name);
      const std::string state = read_port_file(folder / "state");  // "4: ACTIVE"
      if (!wire::is_name(device) || !number || *number < 0 || *number > 1024 || state.empty()) {
        continue;
      }
      InfinibandPort port;
      port.device = device;
      port.port = *number;
      const std::size_t colon = state.find(": ");
      port.state = colon == std::string::npos ? state : state.substr(colon + 2);
      port.rate = read_port_file(folder / "rate");
      port.layer = read_port_file(folder / "link_layer");
      if (port.layer.empty()) {
        port.layer = "unknown";
      }
      ports.push_back(std::move(port));
    }
  }
  ports.resize(std::min(ports.size(), max_infiniband_ports));
  return ports;
}

}  // namespace remote::agent
