#include "agent/network/about.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/facts/kernel_route.hpp"
#include "agent/facts/network.hpp"
#include "agent/host/files.hpp"
#include "agent/host/run.hpp"
#include "agent/network/names.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

constexpr std::chrono::seconds nft_limit{5};

// The chain in the rules that handles incoming packets and drops some; "" if there is none.
std::string find_dropping_chain(const std::string& rules) {
  std::string table;
  std::string chain;
  bool is_input = false;
  bool drops = false;
  for (const std::string& line : split(rules, '\n')) {
    const std::vector<std::string> words = split_words(line);
    if (words.size() > 2 && words[0] == "table") {
      table = text::format("nft-{}-{}-", words[1], words[2]);
    } else if (words.size() > 1 && words[0] == "chain") {
      chain = words[1];
      is_input = drops = false;
    } else if (!words.empty() && words[0] == "}" && is_input && drops) {
      return table + chain;
    }
    is_input = is_input || line.find(" hook input ") != std::string::npos;
    drops = drops || line.find(" drop") != std::string::npos || line.find(" reject") != std::string::npos;
  }
  return {};
}

int read_link_number(const Host& host, const std::string& interface, const char* file) {
  const std::string text =
      read_first_line(host.system(text::format("/sys/class/net/{}/{}", interface, file)));
  return std::clamp(parse_number<int>(text).value_or(0), 0, 1 << 30);
}

void add_interfaces(const Host& host, std::vector<NetworkInterface>& all) {
  std::map<std::string, std::vector<std::string>> by_name;
  for (InterfaceAddress& each : list_addresses()) {
    if ((each.is_global || each.interface == "lo") && wire::is_name(each.interface)) {
      by_name[each.interface].push_back(std::move(each.address));
    }
  }
  for (auto& [name, addresses] : by_name) {
    if (all.size() < wire::max_interfaces) {
      addresses.resize(std::min(addresses.size(), wire::max_server_addresses));
      all.push_back({name, read_link_number(host, name, "mtu"), read_link_number(host, name, "speed"),
                     std::move(addresses)});
    }
  }
}

bool has_gpu_devices(const Host& host) {
  const std::vector<std::string> names = list_names(host.system("/dev"));
  return exists(host.system("/dev/kfd")) || std::ranges::any_of(names, [](const std::string& name) {
           constexpr std::string_view nvidia = "nvidia";
           return name.starts_with(nvidia) && name.size() > nvidia.size() && name[nvidia.size()] >= '0' &&
                  name[nvidia.size()] <= '9';
         });
}

}  // namespace

std::string find_firewall(const Host& host) {
  for (const char* program : {"ufw", "firewall-cmd", "iptables"}) {
    if (!host.find_program(program).empty()) {
      return program;
    }
  }
  if (host.find_program("nft").empty()) {
    return "none";
  }
  RunResult rules = run(host, {.argv = {"nft", "list", "ruleset"}, .limit = nft_limit});
  if (!rules.succeeded()) {
    rules = run(host, {.argv = {"sudo", "-n", "nft", "list", "ruleset"}, .limit = nft_limit});
  }
  const std::string chain = find_dropping_chain(rules.out);
  return wire::is_name(chain) && chain.size() <= 200 ? chain : "nft";
}

void describe_server(const Host& host, const std::string& master, NetworkServer& server) {
  server.firewall = find_firewall(host);
  server.has_gpus = has_gpu_devices(host);
  add_interfaces(host, server.interfaces);
  const std::string name = read_host_name(host);
  for (const char c : name.substr(0, 200)) {
    server.hostname += wire::is_name(std::string_view(&c, 1)) ? c : '_';
  }
  const auto found = resolve_names(host, {name, master});
  for (const IpAddress& address : found[0]) {
    server.host_addresses.push_back(address.text());
  }
  if (!found[1].empty()) {
    const wire::RouteFacts route = find_route(found[1].front());
    server.interface = route.interface.value_or("");
    server.data_address = route.source;
  }
}

}  // namespace remote::agent
