#include "servers/pairs.hpp"

#include <algorithm>
#include <utility>

#include <arpa/inet.h>
#include <remote/error.hpp>

namespace remote::servers {
namespace {

[[noreturn]] void refuse_answer(const std::string& why) {
  throw Error("the server's answer is not understood", why).mended_by(Remedy::tell_more);
}

void check_address(const std::string& text) {
  const std::size_t zone = std::min(text.find('%'), text.size());  // the zone of a link-local address
  in6_addr bytes{};
  if ((zone < text.size() || ::inet_pton(AF_INET, text.c_str(), &bytes) != 1) &&
      ::inet_pton(AF_INET6, text.substr(0, zone).c_str(), &bytes) != 1) {
    refuse_answer("an address is wrong");
  }
}

void check_optional_address(const std::string& text) {
  if (!text.empty()) {
    check_address(text);
  }
}

void check_addresses(const std::vector<std::string>& all) {
  if (all.size() > wire::max_server_addresses) {
    refuse_answer("too many addresses");
  }
  std::ranges::for_each(all, check_address);
}

}  // namespace

PairsAnswer::PairsAnswer(std::size_t index, std::vector<std::string> all_addresses)
    : own(index), addresses(std::move(all_addresses)) {
  for (std::size_t to = 0; to < addresses.size(); ++to) {
    pairs.push_back(Pair{.from = own, .to = to, .name = addresses[to]});
  }
}

void PairsAnswer::take(wire::ListenReply reply) {
  if (is_listening()) {
    refuse_answer("it listens twice");
  }
  const NetworkServer& server = reply.server;
  check_addresses(server.host_addresses);
  check_optional_address(server.data_address);  // it is sent to the other servers
  for (const NetworkInterface& interface : server.interfaces) {
    check_addresses(interface.addresses);
  }
  if (server.ports.empty()) {
    reply.server.skipped = "no port is free there";
  } else if (server.ports.size() != 2) {
    refuse_answer("a port is missing");
  }
  about = std::move(reply.server);
  iperf_port = reply.iperf_port;
}

void PairsAnswer::take(wire::ReachReply reply) {
  Pair& found = reply.pair;
  if (found.to >= pairs.size()) {
    refuse_answer("a server is not known");
  }
  check_optional_address(found.source);
  check_addresses(found.addresses);
  for (const Reach& reach : found.tries) {
    check_address(reach.address);
    check_optional_address(reach.seen_as);
    check_optional_address(reach.rejected_by);
    if (reach.answered_by.value_or(0) >= pairs.size()) {
      refuse_answer("a server is not known");
    }
  }
  Pair& pair = pairs[found.to];
  pair.addresses = std::move(found.addresses);
  pair.interface = std::move(found.interface);
  pair.source = std::move(found.source);
  pair.tries = std::move(found.tries);
}

std::string master_of(const std::vector<std::string>& addresses) {
  const auto first = std::ranges::find_if_not(addresses, &std::string::empty);
  return first == addresses.end() ? std::string() : *first;
}

wire::ListeningServer to_listening(const PairsAnswer& answer, const std::string& token) {
  wire::ListeningServer server{.index = static_cast<int>(answer.own),
                               .token = token,
                               .name = answer.addresses[answer.own],
                               .port = answer.about.ports.at(0),
                               .second_port = answer.about.ports.at(1),
                               .data_address = answer.about.data_address,
                               .addresses = {}};
  for (const NetworkInterface& interface : answer.about.interfaces) {
    if (interface.name != "lo") {
      server.addresses.insert(server.addresses.end(), interface.addresses.begin(), interface.addresses.end());
    }
  }
  server.addresses.resize(std::min(server.addresses.size(), wire::max_server_addresses));
  return server;
}

wire::ReachRequest reach_request(const std::vector<std::optional<wire::ListeningServer>>& servers,
                                 std::size_t own) {
  wire::ReachRequest request{.own = static_cast<int>(own), .servers = {}};
  for (std::size_t step = 0; step < servers.size(); ++step) {
    if (const auto& server = servers[(own + step) % servers.size()]) {
      request.servers.push_back(*server);
    }
  }
  return request;
}

// The circle method: one server stays, the others move by one position per round, and opposite positions form
// the pairs.
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
