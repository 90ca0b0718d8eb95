#include "cli/show/network.hpp"

#include <array>
#include <cstddef>

#include "cli/context.hpp"
#include "cli/show/bandwidth.hpp"

namespace remote::cli {
namespace {

using nlohmann::json;

// In the order of the kinds.
constexpr std::array reach_words{"ok",         "dropped", "rejected",   "reset", "no_route",
                                 "wrong_peer", "silent",  "lost_large", "failed"};

json known(int number) {
  return number == 0 ? json(nullptr) : json(number);
}

json reach_json(const Network& network, const Reach& reach) {
  json all{{"address", reach.address},
           {"port", reach.port},
           {"result", reach_words.at(static_cast<std::size_t>(reach.kind))}};
  if (reach.kind == ReachKind::ok) {
    all["connect_us"] = reach.connect.count();
    all["seen_as"] = or_null(reach.seen_as);
  }
  if (reach.kind == ReachKind::ok || reach.kind == ReachKind::lost_large) {
    all["packet"] = reach.packet;
  }
  if (reach.kind == ReachKind::lost_large) {
    all["direction"] = reach.on_the_way_back ? "back" : "there";
    all["passes"] = known(reach.passes);
  }
  if (reach.kind == ReachKind::wrong_peer) {
    all["answered_by"] = reach.answered_by ? json(network.servers[*reach.answered_by].server) : json(nullptr);
  }
  if (!reach.reason.empty()) {
    all["reason"] = reach.reason;
    all["rejected_by"] = or_null(reach.rejected_by);
  }
  return all;
}

}  // namespace

json to_json(const Network& network, std::size_t server) {
  const NetworkServer& from = network.servers[server];
  auto interfaces = json::array();
  for (const NetworkInterface& interface : from.interfaces) {
    interfaces.push_back({{"name", interface.name},
                          {"mtu", known(interface.mtu)},
                          {"speed_mbit", known(interface.speed_mbit)},
                          {"addresses", interface.addresses}});
  }
  auto pairs = json::array();
  for (const Pair& pair : network.pairs) {
    if (pair.from != server || pair.to == server) {
      continue;
    }
    auto tries = json::array();
    for (const Reach& reach : pair.tries) {
      tries.push_back(reach_json(network, reach));
    }
    pairs.push_back({{"to", network.servers[pair.to].server},
                     {"name", pair.name},
                     {"addresses", pair.addresses},
                     {"interface", or_null(pair.interface)},
                     {"source", or_null(pair.source)},
                     {"tries", tries}});
  }
  json all{{"address", or_null(from.address)},
           {"hostname", or_null(from.hostname)},
           {"hostname_addresses", from.host_addresses},
           {"interfaces", interfaces},
           {"launch",
            {{"MASTER_ADDR", or_null(from.master_addr)},
             {"NCCL_SOCKET_IFNAME", or_null(from.interface.empty() ? "" : "=" + from.interface)},
             {"GLOO_SOCKET_IFNAME", or_null(from.interface)},
             {"address", or_null(from.data_address)}}},
           {"skipped", or_null(from.skipped)},
           {"pairs", pairs}};
  if (network.bandwidth) {
    all["bandwidth"] = bandwidth_json(network, server);
  }
  return all;
}

}  // namespace remote::cli
