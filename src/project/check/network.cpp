// Tests how the servers reach each other: the agent on each server opens listeners; once all are listening,
// each server connects to all others.

#include "project/check/network.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>

#include <fmt/format.h>

#include "base/hashing.hpp"
#include "servers/agent.hpp"
#include "servers/barrier.hpp"
#include "servers/facts.hpp"
#include "servers/fanout.hpp"
#include "servers/pairs.hpp"

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

// Time for a server to start listening, and to try all others. One attempt takes at most 4 s, and is repeated
// with smaller packets if the MTU is wrong; 64 attempts run at once.
constexpr seconds listen_limit{20};
constexpr seconds try_limit{60};
// How long each server sends to each other one, and the limit for one such measurement as a whole.
constexpr int send_seconds = 1;
constexpr seconds send_limit{40};

// State that the servers' threads share. A thread writes only at its own index before it arrives at the
// barrier, and reads the other entries after that.
struct Round {
  explicit Round(std::size_t count) : barrier(count), listening(count), iperf_ports(count) {}
  servers::Barrier barrier;
  std::vector<std::optional<wire::ListeningServer>> listening;
  std::vector<int> iperf_ports;  // 0: the server does not have iperf3
};

// The results of one server.
struct Found {
  servers::PairsAnswer answer;
  std::vector<Flow> flows{};
  std::size_t at_once = 0;  // index of the first flow that was measured while all others were sending too
};

// The test parameters, the same for all servers.
struct Question {
  std::vector<std::string> names;  // addresses for a launch; "": unreachable
  int port = 20000;                // the first port to try
  bool bandwidth = false;
  seconds silence{0};  // a server that sends nothing for this long counts as stopped
};

// The address that reached the peer; empty: none.
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
  Part(ssh::Connection& connection, std::size_t own, const Question& question, Round& round,
       servers::Barrier::Member& member, const Cancel& cancel)
      : watch_(connection, true),  // the others wait for this server
        own_(own),
        question_(question),
        round_(round),
        member_(member),
        found_{servers::PairsAnswer(own, question.names)},
        agent_(connection, cancel) {}

  // `on_step` gets the number of finished steps of the measurement, and their total.
  Found take(const std::function<void(std::size_t, std::size_t)>& on_step) {
    if (listen()) {
      reach_all();
      if (question_.bandwidth) {
        measure(on_step);
      }
    }
    agent_.close(listening_);
    agent_.wait_until([&] { return !agent_.has_streams(); }, seconds(10));
    if (agent_.connection().parks()) {
      agent_.park();
    }
    return std::move(found_);
  }

 private:
  void meet(seconds limit) {
    member_.arrive();
    agent_.wait_until([&] { return member_.complete(); }, limit, {}, member_.wake());
  }
  bool listen();
  // The agent may call its handlers until it is destroyed, so they use only members.
  void ask(const wire::Request& request, const servers::Agent::TakeReply& take, seconds limit,
           seconds silence);
  void reach_all();
  void measure(const std::function<void(std::size_t, std::size_t)>& on_step);
  void send_to(std::size_t to, bool with_latency);

  ssh::Watchful watch_;
  std::size_t own_;
  const Question& question_;
  Round& round_;
  servers::Barrier::Member& member_;
  Found found_;
  bool is_answered_ = false;
  servers::Agent::StreamId listening_ = 0;
  servers::Agent agent_;
};

bool Part::listen() {
  const std::string token = random_hex(32);
  listening_ = agent_.open(
      wire::ListenRequest{token, servers::master_of(question_.names), question_.port, question_.bandwidth},
      {.message = [this](wire::Reply reply) {
        found_.answer.take(servers::take_reply<wire::ListenReply>(std::move(reply)));
      }});
  agent_.wait_until([this] { return found_.answer.is_listening() || !agent_.has_streams(); }, listen_limit,
                    question_.silence);
  if (!found_.answer.is_listening()) {
    return false;
  }
  round_.listening[own_] = servers::to_listening(found_.answer, token);
  round_.iperf_ports[own_] = found_.answer.iperf_port;
  return true;
}

void Part::ask(const wire::Request& request, const servers::Agent::TakeReply& take, seconds limit,
               seconds silence) {
  is_answered_ = false;
  agent_.open(request, {.message = take, .end = [this] { is_answered_ = true; }});
  agent_.wait_until([this] { return is_answered_; }, limit, silence);
}

void Part::reach_all() {
  meet(2 * listen_limit);
  const auto take = [this](wire::Reply reply) {
    found_.answer.take(servers::take_reply<wire::ReachReply>(std::move(reply)));
  };
  ask(servers::reach_request(round_.listening, own_), take, try_limit, question_.silence);
  meet(try_limit + listen_limit);  // the listeners stay open until every server has tried them
}

void Part::send_to(std::size_t to, bool with_latency) {
  const std::string address = address_of(found_.answer.pairs[to]);
  if (address.empty() || to == own_ || !round_.listening[to]) {
    return;
  }
  const wire::ListeningServer& listening = *round_.listening[to];
  const int iperf_port = round_.iperf_ports[own_] == 0 ? 0 : round_.iperf_ports[to];
  found_.flows.push_back({.from = own_, .to = to, .method = iperf_port == 0 ? "own" : "iperf3"});
  const auto take = [this](wire::Reply reply) {
    const Flow measured = servers::take_reply<wire::SendReply>(std::move(reply)).flow;
    Flow& flow = found_.flows.back();
    flow.gbit_s = measured.gbit_s;
    flow.latency = measured.latency;
    flow.error = measured.error;
  };
  ask(wire::SendRequest{.token = listening.token,
                        .address = address,
                        .port = listening.port,
                        .iperf_port = iperf_port,
                        .seconds = send_seconds,
                        .with_latency = with_latency},
      take, send_limit, seconds(0));
}

// Measures each pair alone, one direction after the other, and then all pairs at once.
void Part::measure(const std::function<void(std::size_t, std::size_t)>& on_step) {
  const std::size_t count = question_.names.size();
  const auto rounds = servers::rounds_of(count);
  for (std::size_t step = 0; step < 2 * rounds.size(); ++step) {
    on_step(step, 2 * rounds.size() + 1);
    const std::size_t partner = rounds[step / 2][own_];
    if ((partner > own_) == (step % 2 == 0)) {
      send_to(partner, true);
    }
    meet(2 * send_limit);
  }
  on_step(2 * rounds.size(), 2 * rounds.size() + 1);
  found_.at_once = found_.flows.size();
  send_to((own_ + count / 2) % count, false);
  meet(2 * send_limit);
}

// Why the tests of that server were not completed, as text for a finding.
std::string words_of(const Error& error) {
  return fmt::format("{}: {}{}", error.what_failed(), error.reason(),
                     error.hint().empty() ? "" : " (" + error.hint() + ")");
}

void take_in(Network& network, std::size_t index, Found found) {
  servers::PairsAnswer& answer = found.answer;
  if (network.bandwidth) {
    const auto split = found.flows.begin() + static_cast<std::ptrdiff_t>(found.at_once);
    network.bandwidth->flows.insert(network.bandwidth->flows.end(), found.flows.begin(), split);
    network.bandwidth->at_once.insert(network.bandwidth->at_once.end(), split, found.flows.end());
  }
  NetworkServer& server = network.servers[index];
  answer.about.server = server.server;
  answer.about.address = server.address;
  answer.about.master_addr = servers::master_of(answer.addresses);
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
  // Outside the default range of ports for outgoing connections.
  Question question{.names = {},
                    .port = 20000 + static_cast<int>(std::random_device()() % 12768),
                    .bandwidth = options.bandwidth,
                    .silence = servers::check_silence(core.config)};
  for (std::size_t i = 0; i < servers.size(); ++i) {
    network.servers.push_back({.server = servers[i].name});
    if (addresses[i].empty()) {
      network.servers[i].skipped = "it cannot be reached from here";
    } else {
      network.servers[i].address = servers[i].internal_address.value_or(addresses[i]);
    }
    question.names.push_back(network.servers[i].address);
  }
  std::atomic<std::size_t> done = 0;
  const auto tell = [&](std::size_t so_far) {
    if (options.on_progress) {
      options.on_progress("checking the network between them", so_far, servers.size());
    }
  };
  tell(0);
  // All servers are at the same step: the first one to reach it reports it.
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
        if (question.names[index].empty()) {
          throw Error("cannot check the network", "the server cannot be reached");
        }
        const auto connection = core.connector().connect(server, core.cancel());
        Found found = Part(*connection, index, question, round, member, core.cancel()).take(on_step);
        tell(++done);
        return found;
      },
      servers.size());  // the threads wait for each other
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
