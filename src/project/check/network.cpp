// How the servers reach each other: a script on each of them listens, and when all listen, each tries all
// others.

#include "project/check/network.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>

#include "base/hashing.hpp"
#include "servers/conversation.hpp"
#include "servers/fanout.hpp"
#include "servers/pairs.hpp"
#include "servers/python_env.hpp"

namespace remote {

const Pair* Network::pair(std::size_t from, std::size_t to) const {
  const auto found =
      std::ranges::find_if(pairs, [&](const Pair& pair) { return pair.from == from && pair.to == to; });
  return found == pairs.end() ? nullptr : &*found;
}

}  // namespace remote

namespace remote::project {
namespace {

using std::chrono::seconds;

// How long a server may take to listen, and to try all others. A try takes 4 s at most, and is made again in
// small pieces where the MTU is wrong; 64 go on at once.
constexpr seconds listen_limit{20};
constexpr seconds try_limit{60};

// What the servers' threads share. A thread writes what stands at its own index before it arrives at the
// meeting, and reads the others' afterwards.
struct Round {
  explicit Round(std::size_t count) : meeting(count), peers(count) {}
  servers::Meeting meeting;
  std::vector<std::optional<servers::PairPeer>> peers;
};

servers::PairPeer peer_of(const servers::PairsRequest& request, const NetworkServer& about) {
  servers::PairPeer peer{.token = request.token,
                         .address = request.addresses[request.own],
                         .ports = about.ports,
                         .data_address = about.data_address,
                         .own_addresses = {}};
  for (const NetworkInterface& interface : about.interfaces) {
    if (interface.name != "lo") {
      peer.own_addresses.insert(peer.own_addresses.end(), interface.addresses.begin(),
                                interface.addresses.end());
    }
  }
  if (peer.own_addresses.size() > 16) {
    peer.own_addresses.resize(16);
  }
  return peer;
}

// One server's part.
servers::PairsAnswer take_part(ssh::Connection& connection, const servers::PairsRequest& request,
                               Round& round, servers::Meeting::Place& place, const Cancel& cancel) {
  servers::PairsAnswer answer(request);
  servers::AnswerReader reader = servers::reader_into(answer);
  servers::Conversation talk(connection, "look at the network", servers::pairs_script(request), reader,
                             cancel);
  const auto meet = [&](seconds limit) {
    place.arrive();
    return talk.serve([&] { return place.complete(); }, limit, place.wake());
  };
  const auto go_on = [&] {
    if (!talk.serve([&] { return answer.listening || reader.closed(); }, listen_limit) || !answer.listening) {
      return false;
    }
    round.peers[request.own] = peer_of(request, answer.about);
    if (!meet(2 * listen_limit)) {
      return false;
    }
    talk.say(servers::pairs_order(round.peers, request.own));
    // The listeners stay until all have tried them.
    return talk.serve([&] { return answer.tried; }, try_limit) && meet(try_limit + listen_limit);
  };
  if (go_on()) {
    talk.say("stop\n");
  }
  talk.finish(seconds(10));
  return answer;
}

void take_in(Network& network, std::size_t index, servers::PairsAnswer answer) {
  NetworkServer& server = network.servers[index];
  answer.about.server = server.server;
  answer.about.address = server.address;
  answer.about.master_addr = servers::master_of(answer.addresses);
  if (!answer.has_python) {
    answer.about.skipped = "there is no python3, which opens the connections";
  }
  server = std::move(answer.about);
  for (Pair& pair : answer.pairs) {
    if (pair.to == index || !network.servers[pair.to].address.empty()) {
      network.pairs.push_back(std::move(pair));
    }
  }
}

}  // namespace

std::optional<Network> look_at_network(Core& core, const std::vector<config::Server>& servers,
                                       const std::vector<std::string>& addresses,
                                       const NetworkOptions& options) {
  if (servers.size() < 2) {
    return std::nullopt;
  }
  Network network;
  std::vector<std::string> names;  // by which a launch would call them
  for (std::size_t i = 0; i < servers.size(); ++i) {
    network.servers.push_back({.server = servers[i].name});
    if (addresses[i].empty()) {
      network.servers[i].skipped = "it cannot be reached from here";
    } else {
      network.servers[i].address = servers[i].internal_address.value_or(addresses[i]);
    }
    names.push_back(network.servers[i].address);
  }
  // Not from where the kernel takes ports for outgoing connections by default.
  const int port = 20000 + static_cast<int>(std::random_device()() % 12768);
  std::atomic<std::size_t> done = 0;
  const auto tell = [&](std::size_t so_far) {
    if (options.on_progress) {
      options.on_progress("looking at the network between them", so_far, servers.size());
    }
  };
  tell(0);
  Round round(servers.size());
  const auto outcomes = servers::fan_out(
      servers, &config::Server::name,
      [&](const config::Server& server, std::size_t index) {
        servers::Meeting::Place place(round.meeting, index);
        if (names[index].empty()) {
          throw Error("cannot look at the network", "the server cannot be reached");
        }
        const servers::PairsRequest request{.own = index,
                                            .token = random_hex(32),
                                            .activate = servers::activation(core.config, server),
                                            .addresses = names,
                                            .port = port};
        servers::PairsAnswer answer = take_part(*core.connector().connect(server, core.cancel()), request,
                                                round, place, core.cancel());
        tell(++done);
        return answer;
      },
      servers.size());  // they wait for each other
  for (std::size_t i = 0; i < servers.size(); ++i) {
    if (outcomes[i].ok()) {
      take_in(network, i, *outcomes[i].value);
    } else if (network.servers[i].skipped.empty()) {
      network.servers[i].skipped =
          "it did not answer: " + outcomes[i].error->what_failed() + ": " + outcomes[i].error->reason();
    }
  }
  return network;
}

}  // namespace remote::project
