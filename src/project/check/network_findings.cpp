// Findings about the network between the servers, with fixes.

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/strings.hpp"
#include "project/check/network.hpp"

namespace remote::project {
namespace {

constexpr const char* all_ports = "1024:65535";  // NCCL and gloo use ports anywhere in this range

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

bool is_v6(const std::string& address) {
  return address.find(':') != std::string::npos;
}

Fix advice(std::string text) {
  return {Fix::Where::advice, std::move(text)};
}

// Judges the results of one server.
class Judge {
 public:
  Judge(const Network& network, std::size_t from) : network_(network), from_(from) {}

  std::vector<Finding> findings();

 private:
  const NetworkServer& self() const { return network_.servers[from_]; }
  const NetworkServer& peer(const Pair& pair) const { return network_.servers[pair.to]; }
  bool has_address(const std::string& address) const {
    return std::ranges::any_of(self().interfaces, [&](const NetworkInterface& interface) {
      return std::ranges::find(interface.addresses, address) != interface.addresses.end();
    });
  }
  void judge_pair(const Pair& pair);
  void judge_failure(const Pair& pair, const Reach& reach);
  void judge_launch();
  void unresolved(const Pair& pair);
  void wrong_peer(const Pair& pair, const Reach& reach, const std::string& where);
  void lost_large(const Pair& pair, const Reach& reach, const std::string& where, std::optional<Fix> fix);
  void add(const char* name, CheckStatus status, std::string detail, std::optional<Fix> fix = {}) {
    findings_.push_back({name, status, std::move(detail), std::move(fix)});
  }

  // The first other address of the peer that answered; empty: none.
  std::string better_address(const Pair& pair, const std::string& failed) const;
  std::optional<Fix> address_fix(const Pair& pair, const std::string& failed) const;
  Fix open_fix(const Pair& pair, const std::string& address) const;
  std::string other_way(const Pair& pair) const;
  std::string no_route(const Reach& reach) const;

  const Network& network_;
  std::size_t from_;
  std::vector<Finding> findings_;
  std::vector<std::string> reached_;
  std::vector<std::string> not_tried_;
};

std::string Judge::better_address(const Pair& pair, const std::string& failed) const {
  const auto has = [&](const std::string& address) {
    return std::ranges::find(pair.addresses, address) != pair.addresses.end();
  };
  // An address that answers on any port is correct; a firewall blocks the other port.
  if (std::ranges::any_of(pair.tries, [&](const Reach& reach) {
        return reach.kind == ReachKind::ok && reach.address == failed;
      })) {
    return {};
  }
  for (const Reach& reach : pair.tries) {
    // If the name resolves to several addresses, choose one after the first, which fails.
    if (reach.kind == ReachKind::ok && reach.address != failed && (has(failed) || !has(reach.address))) {
      return reach.address;
    }
  }
  return {};
}

// If another address of the peer answered, suggest that one.
std::optional<Fix> Judge::address_fix(const Pair& pair, const std::string& failed) const {
  const std::string better = better_address(pair, failed);
  if (better.empty()) {
    return std::nullopt;
  }
  return advice(
      fmt::format("in .remote/configs.yaml, under {}: internal_address: {}", peer(pair).server, better));
}

// The command for the peer to allow connections from this server.
Fix Judge::open_fix(const Pair& pair, const std::string& address) const {
  const std::string source = pair.source.empty() ? self().data_address : pair.source;
  const std::string& firewall = peer(pair).firewall;
  std::string command;
  if (source.empty() || firewall == "none" || firewall.empty()) {
    return advice(fmt::format("let {} reach the TCP ports {} of {} (in the provider's firewall, for example)",
                              source.empty() ? self().server : source, all_ports, address));
  }
  if (firewall == "ufw") {
    command = fmt::format("ufw allow from {} to any port {} proto tcp", source, all_ports);
  } else if (firewall == "firewall-cmd") {
    command = fmt::format("firewall-cmd --zone=trusted --add-source={}", source);
  } else if (firewall == "iptables") {
    command = fmt::format("{} -I INPUT -s {} -p tcp --dport {} -j ACCEPT",
                          is_v6(source) ? "ip6tables" : "iptables", source, all_ports);
  } else {
    const std::string rule =
        fmt::format("{} saddr {} tcp dport 1024-65535 accept", is_v6(source) ? "ip6" : "ip", source);
    const std::vector<std::string> chain = split(firewall, '-');  // nft-FAMILY-TABLE-CHAIN
    // If the server's user cannot see which chain drops the packets: all chains that incoming packets pass.
    command = chain.size() == 4
                  ? fmt::format("nft insert rule {} {} {} {}", chain[1], chain[2], chain[3], rule)
                  : fmt::format(
                        "nft list ruleset | awk '$1 == \"table\" {{t = $2 \" \" $3}} $1 == \"chain\" "
                        "{{c = $2}} / hook input / {{print t, c}}' | while read -r chain; do nft insert "
                        "rule $chain {}; done",
                        rule);
  }
  return {.where = Fix::Where::server_as_root, .text = command, .server = peer(pair).server};
}

std::string Judge::other_way(const Pair& pair) const {
  const Pair* back = network_.pair(pair.to, pair.from);
  if (back == nullptr) {
    return "";
  }
  const bool works =
      std::ranges::any_of(back->tries, [](const Reach& reach) { return reach.kind == ReachKind::ok; });
  return works ? fmt::format("; the other direction works, {} reaches {}", peer(pair).server, self().server)
               : "";
}

// An ICMP message from the server itself means that no machine on the network answered for the address (ARP,
// RFC 826).
std::string Judge::no_route(const Reach& reach) const {
  if (reach.rejected_by.empty()) {
    return fmt::format("no route ({})", reach.reason);
  }
  if (has_address(reach.rejected_by)) {
    return "no machine on that network has this address";
  }
  return fmt::format("no route, reports the router {}", reach.rejected_by);
}

void Judge::unresolved(const Pair& pair) {
  std::optional<Fix> fix = address_fix(pair, "");
  if (!fix) {
    fix = advice(fmt::format(
        "in .remote/configs.yaml, under {}: internal_address: an IP address that the others reach",
        peer(pair).server));
  }
  add("network-name", CheckStatus::fail,
      fmt::format("the name '{}', which a launch uses for {}, does not resolve", pair.name,
                  peer(pair).server),
      std::move(fix));
}

void Judge::wrong_peer(const Pair& pair, const Reach& reach, const std::string& where) {
  std::string who = "something else";
  if (has_address(reach.address) || reach.answered_by == pair.from) {
    who = "this server itself";
  } else if (reach.answered_by) {
    who = network_.servers[*reach.answered_by].server;
  }
  std::optional<Fix> fix = address_fix(pair, reach.address);
  if (!fix) {
    fix = advice(fmt::format("give {} an internal_address that it alone has", peer(pair).server));
  }
  add("network-identity", CheckStatus::fail,
      fmt::format("{}: {} answers there, so the address is not {}'s alone", where, who, peer(pair).server),
      std::move(fix));
}

void Judge::lost_large(const Pair& pair, const Reach& reach, const std::string& where,
                       std::optional<Fix> fix) {
  const std::string size =
      reach.passes > 0 ? fmt::format("packets of {} bytes do", reach.passes) : "none that was tried does";
  if (!fix && reach.passes > 0 && !pair.interface.empty()) {
    fix = Fix{.where = Fix::Where::server_as_root,
              .text = fmt::format("ip link set dev {} mtu {}", pair.interface, reach.passes)};
  }
  add("network-mtu", CheckStatus::fail,
      fmt::format(
          "{}: it connects, but packets of {} bytes do not pass on the way {}; {}. The MTU is too large "
          "for the way between",
          where, reach.packet, reach.on_the_way_back ? "back" : "there", size),
      std::move(fix));
}

void Judge::judge_failure(const Pair& pair, const Reach& reach) {
  const std::string where = fmt::format("{} at {} port {}", peer(pair).server, reach.address, reach.port);
  const std::string way = pair.interface.empty() ? "" : " by " + pair.interface;
  const std::optional<Fix> better = address_fix(pair, reach.address);
  const auto opened = [&] { return better ? better : open_fix(pair, reach.address); };
  switch (reach.kind) {
    case ReachKind::ok:
      return;
    case ReachKind::dropped:
      add("network-port", CheckStatus::fail,
          fmt::format("{}{}: no answer. A firewall drops the packets, or no machine has this address{}",
                      where, way, other_way(pair)),
          opened());
      return;
    case ReachKind::rejected:
      add("network-port", CheckStatus::fail,
          fmt::format("{}{}: a firewall rejects the connection, with a message from {}{}", where, way,
                      reach.rejected_by, other_way(pair)),
          opened());
      return;
    case ReachKind::reset:
      if (has_address(reach.address) && !is_loopback(reach.address)) {
        wrong_peer(pair, reach, where + way);
        return;
      }
      add("network-port", CheckStatus::fail,
          fmt::format("{}{}: refused, although something listens there. A firewall resets the connection, or "
                      "another machine has this address{}",
                      where, way, other_way(pair)),
          opened());
      return;
    case ReachKind::no_route:
      add("network-route", CheckStatus::fail,
          fmt::format("{}{}: {}{}", where, way, no_route(reach), other_way(pair)),
          better ? better
                 : advice(fmt::format("connect {} and {} by a network, or set internal_address of {} to one "
                                      "that the others reach",
                                      self().server, peer(pair).server, peer(pair).server)));
      return;
    case ReachKind::wrong_peer:
      wrong_peer(pair, reach, where + way);
      return;
    case ReachKind::silent:
      add("network-port", CheckStatus::fail,
          fmt::format("{}{}: it connects, but then no data arrives. Something in between drops the packets",
                      where, way),
          opened());
      return;
    case ReachKind::lost_large:
      lost_large(pair, reach, where + way, better);
      return;
    case ReachKind::failed:
      break;
  }
  add("network-port", CheckStatus::fail, fmt::format("{}{}: {}", where, way, reach.reason), better);
}

void Judge::judge_pair(const Pair& pair) {
  if (!peer(pair).skipped.empty()) {
    not_tried_.push_back(peer(pair).server);
    return;
  }
  if (pair.addresses.empty()) {
    unresolved(pair);
    return;
  }
  // One finding per pair: the first problem that a launch would run into. It connects to the first address of
  // the name; after that its ranks connect to the addresses of the interfaces.
  bool tried = false;
  for (const std::string& address : {pair.addresses.front(), peer(pair).data_address}) {
    for (const Reach& reach : pair.tries) {
      if (reach.address == address && reach.kind != ReachKind::ok) {
        judge_failure(pair, reach);
        return;
      }
      tried = tried || reach.address == address;
    }
  }
  if (tried) {
    reached_.push_back(peer(pair).server);
  } else {
    add("network", CheckStatus::skip, "nothing is known about the route to " + peer(pair).server);
  }
}

// Checks the variables that the ranks use to find each other.
void Judge::judge_launch() {
  const NetworkServer& server = self();
  const Pair* own = network_.pair(from_, from_);
  // The first server resolves its own name to the loopback address, as in Debian's default /etc/hosts, but
  // the others do not.
  const bool is_master = own != nullptr && server.address == server.master_addr;
  const bool others_differ = std::ranges::any_of(network_.pairs, [&](const Pair& pair) {
    return pair.to == from_ && pair.from != from_ && !pair.addresses.empty() &&
           !is_loopback(pair.addresses.front());
  });
  if (is_master && !own->addresses.empty() && is_loopback(own->addresses.front()) && others_differ) {
    std::string known;
    for (const Pair& pair : network_.pairs) {
      if (pair.to == from_ && pair.from != from_ && !pair.addresses.empty()) {
        known = pair.addresses.front();
      }
    }
    add("network-name", CheckStatus::fail,
        fmt::format("MASTER_ADDR={} is {} on this server itself, and {} on the others: its ranks would use "
                    "the interface lo, where no other server reaches them",
                    server.master_addr, own->addresses.front(), known),
        advice(fmt::format("in .remote/configs.yaml, under {}: internal_address: {}", server.server, known)));
    return;
  }
  if (server.interface.empty()) {
    return;
  }
  add("network-launch", CheckStatus::ok,
      fmt::format(
          "MASTER_ADDR={}, and unless they are set there, NCCL_SOCKET_IFNAME=={} GLOO_SOCKET_IFNAME={}",
          server.master_addr, server.interface, server.interface));
}

std::vector<Finding> Judge::findings() {
  if (!self().skipped.empty()) {
    add("network", self().broken ? CheckStatus::fail : CheckStatus::skip, self().skipped);
  }
  for (const Pair& pair : network_.pairs) {
    if (pair.from != from_ || pair.to == from_) {
      continue;
    }
    if (self().skipped.empty()) {
      judge_pair(pair);
    } else if (pair.addresses.empty()) {
      unresolved(pair);
    }
  }
  if (self().skipped.empty() && !not_tried_.empty()) {
    add("network", CheckStatus::skip, "could not try " + join(not_tried_, ", ") + ": see there");
  }
  if (!reached_.empty()) {
    const bool all = reached_.size() + 1 == network_.servers.size();
    add("network", CheckStatus::ok,
        fmt::format("reaches {}{}", all && reached_.size() > 1 ? "all others: " : "",
                    reached_.size() > 8 ? counted(reached_.size(), "server") : join(reached_, ", ")));
  }
  judge_launch();
  return std::move(findings_);
}

}  // namespace

std::vector<std::vector<Finding>> network_findings(const Network& network) {
  std::vector<std::vector<Finding>> all;
  for (std::size_t i = 0; i < network.servers.size(); ++i) {
    all.push_back(Judge(network, i).findings());
  }
  return all;
}

}  // namespace remote::project
