#include "agent/facts/network.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <net/if.h>
#include <sys/socket.h>

#include "agent/host/files.hpp"
#include "agent/host/name_service.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

std::optional<IpAddress> resolve(const Host& host, std::string_view name) {
  if (auto address = IpAddress::parse(name)) {
    return address;
  }
  const std::vector<std::string> found = look_up_name(host, std::string(name), std::chrono::seconds(15));
  return found.empty() ? std::nullopt : IpAddress::parse(found.front());
}

// The interface that has this address; "" if there is none.
std::string find_interface(const IpAddress& address) {
  for (const InterfaceAddress& each : list_addresses()) {
    const auto other = IpAddress::parse(each.address);
    if (other && address.is_same(*other)) {
      return each.interface;
    }
  }
  return {};
}

}  // namespace

wire::RouteFacts find_route(const Host& host, std::string_view name) {
  const std::optional<IpAddress> address = resolve(host, name);
  return address ? find_route(*address) : wire::RouteFacts();
}

wire::RouteFacts find_route(const IpAddress& address) {
  wire::RouteFacts facts;
  facts.address = wire::to_line(address.text(), 100);
  if (address.has_zone() && address.index() == 0) {
    return facts;
  }
  const std::optional<KernelRoute> route = ask_kernel(address);
  std::string interface = address.interface();
  if (route) {
    facts.source = route->source;
    if (interface.empty()) {
      interface = route->is_local ? find_interface(address) : "";
    }
    if (interface.empty()) {
      interface = route->interface;
    }
  }
  if (wire::is_name(interface)) {
    facts.interface = interface;
  }
  return facts;
}

}  // namespace remote::agent
