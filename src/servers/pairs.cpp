#include "servers/pairs.hpp"

#include <algorithm>
#include <cstdint>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <remote/error.hpp>

namespace remote::servers {
namespace {

constexpr std::size_t most_addresses = 16;

std::string address(AnswerLine& line) {
  std::string text = line.name(".:");
  in6_addr bytes{};
  if (::inet_pton(AF_INET, text.c_str(), &bytes) != 1 && ::inet_pton(AF_INET6, text.c_str(), &bytes) != 1) {
    line.refuse("an address is wrong");
  }
  return text;
}

// "-" stands for nothing.
std::string address_or_none(AnswerLine& line) {
  AnswerLine ahead = line;
  if (ahead.word() == "-") {
    line = ahead;
    return "";
  }
  return address(line);
}

std::vector<std::string> addresses(AnswerLine& line) {
  std::vector<std::string> all;
  while (line.more()) {
    all.push_back(address(line));
    if (all.size() > most_addresses) {
      line.refuse("too many addresses");
    }
  }
  return all;
}

// "-" stands for nothing.
std::string name_or_none(AnswerLine& line) {
  std::string text = line.name();
  return text == "-" ? "" : text;
}

// What a local error without an ICMP message, or one with it, means.
ReachKind kind_of(const std::string& reason, bool icmp) {
  if (reason == "ECONNREFUSED") {
    return icmp ? ReachKind::rejected : ReachKind::reset;
  }
  if (icmp) {
    return ReachKind::rejected;
  }
  for (const char* route : {"ENETUNREACH", "EHOSTUNREACH", "EACCES", "EINVAL", "EADDRNOTAVAIL", "ENETDOWN"}) {
    if (reason == route) {
      return ReachKind::no_route;
    }
  }
  return ReachKind::failed;
}

void read_error(AnswerLine& line, Reach& reach) {
  reach.reason = line.name("_");
  bool rejected = false;
  if (line.more()) {
    if (line.word() != "icmp") {
      line.refuse("an error is wrong");
    }
    const int type = line.number(0, 255);
    const int code = line.number(0, 255);
    reach.rejected_by = address(line);
    // "Host unreachable" of a router, and "no route" in IPv6 (RFC 792, RFC 4443), are no word of a firewall.
    const bool v6 = reach.rejected_by.find(':') != std::string::npos;
    rejected = v6 ? !(type == 1 && (code == 0 || code == 3)) : !(type == 3 && code <= 1);
  }
  reach.kind = kind_of(reach.reason, rejected);
}

void read_try(AnswerLine& line, Reach& reach, std::size_t servers) {
  const std::string_view how = line.word();
  if (how == "ok") {
    reach.kind = ReachKind::ok;
    reach.connect = Microseconds(line.number(0, 1000000000));
    reach.seen_as = address_or_none(line);
    reach.packet = line.number(0, 1 << 20);
  } else if (how == "dropped") {
    reach.kind = ReachKind::dropped;
  } else if (how == "silent") {
    reach.kind = ReachKind::silent;
  } else if (how == "stranger") {
    reach.kind = ReachKind::wrong_peer;
  } else if (how == "other") {
    reach.kind = ReachKind::wrong_peer;
    reach.answered_by = line.number<std::size_t>(0, servers - 1);
  } else if (how == "lost") {
    reach.kind = ReachKind::lost_large;
    reach.on_the_way_back =
        line.choice<bool>(line.word(), {{"out", false}, {"back", true}}, "a direction is wrong");
    reach.packet = line.number(0, 1 << 20);
    reach.passes = line.more() ? line.number(0, 1 << 20) : 0;
  } else if (how == "error") {
    read_error(line, reach);
  } else {
    line.refuse("a try is wrong");
  }
}

Flow read_flow(AnswerLine& line, std::size_t own, std::size_t servers) {
  Flow flow;
  flow.from = own;
  flow.to = line.number<std::size_t>(0, servers - 1);
  const std::string_view speed = line.word();
  if (speed == "error") {
    flow.error = "unknown";
    if (line.more()) {
      flow.error = line.name();
    }
    while (line.more()) {
      flow.error += " " + line.name();
    }
    return flow;
  }
  flow.gbit_s = static_cast<double>(line.number_in<std::int64_t>(speed, 0)) / 1e9;
  flow.latency = Microseconds(line.number(0, 1000000000));
  flow.method =
      line.choice<const char*>(line.word(), {{"iperf3", "iperf3"}, {"own", "own"}}, "a method is wrong");
  return flow;
}

}  // namespace

PairsAnswer::PairsAnswer(const PairsRequest& request) : own(request.own), addresses(request.addresses) {
  for (std::size_t to = 0; to < addresses.size(); ++to) {
    pairs.push_back(Pair{.from = own, .to = to, .name = addresses[to]});
  }
}

void PairsAnswer::take(AnswerLine& line) {
  constexpr std::size_t most_tries = 32;
  constexpr std::size_t most_interfaces = 64;
  if (line.kind() != "pairs") {
    line.refuse_kind();
  }
  const std::string_view key = line.word();
  if (key == "firewall") {
    about.firewall = line.name();
  } else if (key == "gpus") {
    about.has_gpus = true;
  } else if (key == "nopython") {
    has_python = false;
  } else if (key == "nolisten") {
    about.skipped = "no port is free there";
  } else if (key == "interface") {
    NetworkInterface found;
    found.name = line.name();
    found.mtu = line.number(0, 1 << 30);
    found.speed_mbit = line.number(0, 1 << 30);
    found.addresses = servers::addresses(line);
    about.interfaces.push_back(std::move(found));
    if (about.interfaces.size() > most_interfaces) {
      line.refuse("too many interfaces");
    }
  } else if (key == "host") {
    about.hostname = name_or_none(line);
    about.host_addresses = servers::addresses(line);
  } else if (key == "data") {
    about.interface = name_or_none(line);
    about.data_address = address_or_none(line);  // the other servers are told it
  } else if (key == "listening") {
    about.ports = {line.number(1, 65535), line.number(1, 65535)};
    listening = true;
  } else if (key == "way") {
    Pair& pair = pairs[line.number<std::size_t>(0, pairs.size() - 1)];
    pair.interface = name_or_none(line);
    pair.source = address_or_none(line);
    pair.addresses = servers::addresses(line);
  } else if (key == "try") {
    Pair& pair = pairs[line.number<std::size_t>(0, pairs.size() - 1)];
    Reach reach;
    reach.address = address(line);
    reach.port = line.number(1, 65535);
    read_try(line, reach, pairs.size());
    pair.tries.push_back(std::move(reach));
    if (pair.tries.size() > most_tries) {
      line.refuse("too many tries");
    }
  } else if (key == "iperf3") {
    iperf_port = line.number(0, 65535);
  } else if (key == "sent") {
    sent.push_back(read_flow(line, own, pairs.size()));
  } else if (key == "tried") {
    tried = true;
  } else {
    line.refuse("a key is not known");
  }
  line.end();
}

std::string master_of(const std::vector<std::string>& addresses) {
  const auto first = std::ranges::find_if_not(addresses, &std::string::empty);
  return first == addresses.end() ? std::string() : *first;
}

Script pairs_script(const PairsRequest& request) {
  Script script;
  script.set("activate", request.activate)
      .set("bandwidth", request.bandwidth ? "1" : "")
      .set("own", std::to_string(request.own))
      .set("token", request.token)
      .set("master", master_of(request.addresses))
      .set("port", std::to_string(request.port))
      .set("python", request.python)
      .add("actions/pairs.sh");
  for (std::size_t i = 0; i < request.addresses.size(); ++i) {
    if (!request.addresses[i].empty()) {
      script.call("pairs_without_python", {std::to_string(i), request.addresses[i]});
    }
  }
  return script.call("pairs_end");
}

std::string pairs_order(const std::vector<std::optional<PairPeer>>& peers, std::size_t own) {
  std::string order;
  for (std::size_t step = 0; step < peers.size(); ++step) {
    const std::size_t index = (own + step) % peers.size();
    if (const auto& peer = peers[index]) {
      order += fmt::format("peer {} {} {} {} {} {}", index, peer->token, peer->ports.at(0), peer->ports.at(1),
                           peer->address, peer->data_address.empty() ? "-" : peer->data_address);
      for (const std::string& address : peer->own_addresses) {
        order += " " + address;
      }
      order += "\n";
    }
  }
  return order + "try\n";
}

std::string send_order(std::size_t to, const std::string& address, int iperf_port, int seconds,
                       bool with_latency) {
  return fmt::format("send {} {} {} {} {}\n", to, address, iperf_port, seconds, with_latency ? 1 : 0);
}

// The circle method: one stays, the others move on by one place each round, and opposite places meet.
std::vector<std::vector<std::size_t>> rounds_of(std::size_t servers) {
  const std::size_t places = servers + servers % 2;
  std::vector<std::vector<std::size_t>> rounds;
  for (std::size_t round = 0; round + 1 < places; ++round) {
    std::vector<std::size_t> partners(servers);
    const auto at = [&](std::size_t place) {
      return place == 0 ? 0 : 1 + (place - 1 + round) % (places - 1);
    };
    for (std::size_t place = 0; place < places / 2; ++place) {
      const std::size_t a = at(place);
      const std::size_t b = at(places - 1 - place);
      if (a < servers) {
        partners[a] = b < servers ? b : a;
      }
      if (b < servers) {
        partners[b] = a < servers ? a : b;
      }
    }
    rounds.push_back(std::move(partners));
  }
  return rounds;
}

}  // namespace remote::servers
