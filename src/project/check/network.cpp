// How the servers reach each other: a script on each of them listens, and when all listen, each tries all
// others.

#include "project/check/network.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>

#include <fmt/format.h>

#include "base/hashing.hpp"
#include "servers/conversation.hpp"
#include "servers/facts.hpp"
#include "servers/fanout.hpp"
#include "servers/pairs.hpp"
#include "servers/python_env.hpp"

namespace remote {

const Pair* Network::pair(std::size_t from, std::size_t to) const {
  const auto found =
      std::ranges::find_if(pairs, [&](const Pair& pair) { return pair.from == from && pair.to == to; });
  return found == pairs.end() ? nullptr : &*found;
}

const Flow* Bandwidth::flow(std::size_t from, std::size_t to) const {
  const auto found =
      std::ranges::find_if(flows, [&](const Flow& flow) { return flow.from == from && flow.to == to; });
  return found == flows.end() ? nullptr : &*found;
}

}  // namespace remote

namespace remote::project {
namespace {

using std::chrono::seconds;

// How long a server may take to listen, and to try all others. A try takes 4 s at most, and is made again in
// small pieces where the MTU is wrong; 64 go on at once.
constexpr seconds listen_limit{20};
constexpr seconds try_limit{60};
// How long each sends to each, and how long that may take with all around it.
constexpr int send_seconds = 1;
constexpr seconds send_limit{40};

// What the servers' threads share. A thread writes what stands at its own index before it arrives at the
// barrier, and reads the others' afterwards.
struct Round {
  explicit Round(std::size_t count) : barrier(count), peers(count), iperf_ports(count) {}
  servers::Barrier barrier;
  std::vector<std::optional<servers::PairPeer>> peers;
  std::vector<int> iperf_ports;  // 0: that server has no iperf3
};

// What came of one server's part.
struct Found {
  servers::PairsAnswer answer;
  std::size_t at_once = 0;  // from this one on, answer.sent was measured while all others sent, too
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

// Where this server reached that one; empty: nowhere.
std::string address_of(const Pair& pair) {
  std::string other;
  for (const Reach& reach : pair.tries) {
    if (reach.kind == ReachKind::ok && !pair.addresses.empty() && reach.address == pair.addresses.front()) {
      return reach.address;
    }
    if (reach.kind == ReachKind::ok) {
      other = reach.address;
    }
  }
  return other;
}

// One server's part.
class Part {
 public:
  // `silence`: how long nothing may come until this server counts as stopped.
  Part(ssh::Connection& connection, const servers::PairsRequest& request, seconds silence, Round& round,
       servers::Barrier::Member& member, const Cancel& cancel)
      : silence_(silence),
        watch_(connection, true),  // the others wait for this server
        request_(request),
        round_(round),
        member_(member),
        found_{servers::PairsAnswer(request)},
        reader_(servers::reader_into(found_.answer)),
        talk_(connection, "look at the network", servers::pairs_script(request).open_input(), reader_,
              cancel) {}

  // `on_step` is told how many of how many steps of the measurement are done.
  Found take(const std::function<void(std::size_t, std::size_t)>& on_step) {
    if (reach_all() && (!request_.bandwidth || measure(on_step))) {
      talk_.say("stop\n");
    }
    talk_.finish(seconds(10));
    return std::move(found_);
  }

 private:
  // Each returns false when the script has ended before.
  bool meet(seconds limit) {
    member_.arrive();
    return talk_.serve([&] { return member_.complete(); }, limit, {}, member_.wake());
  }
  bool reach_all();
  bool measure(const std::function<void(std::size_t, std::size_t)>& on_step);
  bool send_to(std::size_t to, bool with_latency);

  seconds silence_;
  ssh::Watchful watch_;
  const servers::PairsRequest& request_;
  Round& round_;
  servers::Barrier::Member& member_;
  Found found_;
  servers::AnswerReader reader_;
  servers::Conversation talk_;
};

bool Part::reach_all() {
  servers::PairsAnswer& answer = found_.answer;
  const auto listens = [&] { return answer.listening || reader_.closed(); };
  if (!talk_.serve(listens, listen_limit, silence_) || !answer.listening) {
    return false;
  }
  round_.peers[request_.own] = peer_of(request_, answer.about);
  if (!meet(2 * listen_limit)) {
    return false;
  }
  talk_.say(servers::pairs_order(round_.peers, request_.own));
  // The listeners stay until all have tried them.
  return talk_.serve([&] { return answer.tried; }, try_limit, silence_) && meet(try_limit + listen_limit);
}

bool Part::send_to(std::size_t to, bool with_latency) {
  const std::string address = address_of(found_.answer.pairs[to]);
  if (address.empty() || to == request_.own) {
    return true;
  }
  const int port = round_.iperf_ports[request_.own] == 0 ? 0 : round_.iperf_ports[to];
  const std::size_t wanted = found_.answer.sent.size() + 1;
  talk_.say(servers::send_order(to, address, port, send_seconds, with_latency));
  return talk_.serve([&] { return found_.answer.sent.size() >= wanted; }, send_limit);
}

// Each pair by itself, one direction after the other, and then all at once.
bool Part::measure(const std::function<void(std::size_t, std::size_t)>& on_step) {
  talk_.say(servers::iperf_order);
  if (!talk_.serve([&] { return found_.answer.iperf_port.has_value(); }, listen_limit)) {
    return false;
  }
  round_.iperf_ports[request_.own] = *found_.answer.iperf_port;
  if (!meet(2 * listen_limit)) {
    return false;
  }
  const std::size_t count = request_.addresses.size();
  const auto rounds = servers::rounds_of(count);
  for (std::size_t step = 0; step < 2 * rounds.size(); ++step) {
    on_step(step, 2 * rounds.size() + 1);
    const std::size_t partner = rounds[step / 2][request_.own];
    const bool sends = (partner > request_.own) == (step % 2 == 0);
    if ((sends && !send_to(partner, true)) || !meet(2 * send_limit)) {
      return false;
    }
  }
  on_step(2 * rounds.size(), 2 * rounds.size() + 1);
  found_.at_once = found_.answer.sent.size();
  return send_to((request_.own + count / 2) % count, false) && meet(2 * send_limit);
}

// Why that server's part came to no end, as a finding has it.
std::string words_of(const Error& error) {
  return fmt::format("{}: {}{}", error.what_failed(), error.reason(),
                     error.hint().empty() ? "" : " (" + error.hint() + ")");
}

void take_in(Network& network, std::size_t index, Found found) {
  servers::PairsAnswer& answer = found.answer;
  if (network.bandwidth) {
    const auto split = answer.sent.begin() + static_cast<std::ptrdiff_t>(found.at_once);
    network.bandwidth->flows.insert(network.bandwidth->flows.end(), answer.sent.begin(), split);
    network.bandwidth->at_once.insert(network.bandwidth->at_once.end(), split, answer.sent.end());
  }
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
  // All are at the same step: the one who comes there first tells.
  std::atomic<std::size_t> told = 0;
  const auto on_step = [&](std::size_t step, std::size_t all) {
    if (options.on_progress && told.exchange(step + 1) != step + 1) {
      options.on_progress("measuring the bandwidth", step, all);
    }
  };
  if (options.bandwidth) {
    network.bandwidth.emplace();
  }
  Round round(servers.size());
  const auto outcomes = servers::fan_out(
      servers, &config::Server::name,
      [&](const config::Server& server, std::size_t index) {
        servers::Barrier::Member member(round.barrier, index);
        if (names[index].empty()) {
          throw Error("cannot look at the network", "the server cannot be reached");
        }
        const servers::PairsRequest request{.own = index,
                                            .token = random_hex(32),
                                            .activate = servers::activation(core.config, server),
                                            .addresses = names,
                                            .port = port,
                                            .bandwidth = options.bandwidth};
        const auto connection = core.connector().connect(server, core.cancel());
        Found found =
            Part(*connection, request, servers::check_silence(core.config), round, member, core.cancel())
                .take(on_step);
        tell(++done);
        return found;
      },
      servers.size());  // they wait for each other
  for (std::size_t i = 0; i < servers.size(); ++i) {
    if (outcomes[i].ok()) {
      take_in(network, i, *outcomes[i].value);
    } else if (network.servers[i].skipped.empty()) {
      network.servers[i].broken = true;
      network.servers[i].skipped = words_of(*outcomes[i].error);
    }
  }
  if (network.bandwidth) {
    judge_flows(*network.bandwidth);
  }
  return network;
}

}  // namespace remote::project
