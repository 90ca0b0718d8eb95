#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "agent/fake_host.hpp"
#include "agent/host/files.hpp"
#include "agent/host/processes.hpp"
#include "agent/host/run.hpp"
#include "agent/network/about.hpp"
#include "agent/network/answers.hpp"
#include "agent/network/attempt.hpp"
#include "agent/network/iperf.hpp"
#include "agent/network/names.hpp"
#include "agent/network/socket_address.hpp"
#include "agent/tcp_pair.hpp"
#include "agent/waiting.hpp"
#include "base/strings.hpp"
#include "wire/cbor.hpp"

// A server's measurements of the network to other servers. Tests that need several hosts are in tests/e2e.

namespace remote::agent {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class PairsStream : public Stream {
 public:
  void send(const wire::Reply& reply) override {
    const std::lock_guard lock(mutex_);
    replies_.push_back(wire::decode<wire::Reply>(wire::encode(reply)));
  }
  bool is_closed() const override { return closed; }
  bool has_thread() const override { return threaded; }

  template <typename Wanted>
  std::vector<Wanted> list() {
    const std::lock_guard lock(mutex_);
    std::vector<Wanted> found;
    for (const wire::Reply& reply : replies_) {
      found.push_back(std::get<Wanted>(reply));
    }
    return found;
  }

  std::atomic<bool> closed = false;
  bool threaded = true;

 private:
  std::mutex mutex_;
  std::vector<wire::Reply> replies_;
};

// A server that listens until it is destroyed.
class ListeningAgent {
 public:
  ListeningAgent(const Host& host, const std::string& token, bool with_iperf = false)
      : token_(token), thread_([this, &host, with_iperf] {
          answer_listen(host, {token_, "127.0.0.1", find_free_port(false), with_iperf}, stream_);
        }) {
    EXPECT_TRUE(test::eventually([&] { return !stream_.list<wire::ListenReply>().empty(); }));
    reply = stream_.list<wire::ListenReply>().at(0);
  }
  ~ListeningAgent() { close(); }
  ListeningAgent(const ListeningAgent&) = delete;
  ListeningAgent& operator=(const ListeningAgent&) = delete;

  void close() {
    stream_.closed = true;
    if (thread_.joinable()) {
      thread_.join();
    }
  }
  wire::ListeningServer as_server(int index) const {
    return {index, token_, "127.0.0.1", reply.server.ports.at(0), reply.server.ports.at(1), "", {}};
  }

  wire::ListenReply reply;

 private:
  std::string token_;
  PairsStream stream_;
  std::thread thread_;
};

// A listener of another program: runs a function with each connection.
class Impostor {
 public:
  explicit Impostor(std::function<void(const Descriptor&)> talk) : talk_(std::move(talk)) {
    const SocketAddress any = make_any_address(AF_INET, 0);
    EXPECT_EQ(::bind(socket_.get(), any.get(), any.size), 0);
    ::listen(socket_.get(), 64);
    port = find_port(socket_);
    thread_ = std::thread([this] {
      pollfd ready{socket_.get(), POLLIN, 0};
      while (!is_over_) {
        if (::poll(&ready, 1, 20) > 0) {
          const Descriptor visitor(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
          talk_(visitor);
        }
      }
    });
  }
  ~Impostor() {
    is_over_ = true;
    thread_.join();
  }
  Impostor(const Impostor&) = delete;
  Impostor& operator=(const Impostor&) = delete;

  wire::ListeningServer as_server(int index, const std::string& token) const {
    return {index, token, "127.0.0.1", port, port, "", {}};
  }

  int port = 0;

 private:
  std::function<void(const Descriptor&)> talk_;
  Descriptor socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::atomic<bool> is_over_ = false;
  std::thread thread_;
};

std::string read_all(const Descriptor& socket) {
  std::string all;
  while (const auto some = test::read_some(socket, seconds(5))) {
    if (some->empty()) {
      break;
    }
    all += *some;
  }
  return all;
}

class AgentPairs : public ::testing::Test {
 protected:
  void SetUp() override { std::signal(SIGPIPE, SIG_IGN); }

  std::vector<Pair> reach(const std::vector<wire::ListeningServer>& servers, int own = 0) {
    PairsStream stream;
    answer_reach(fake.host, {own, servers}, stream);
    std::vector<Pair> pairs;
    for (const wire::ReachReply& reply : stream.list<wire::ReachReply>()) {
      pairs.push_back(reply.pair);
    }
    return pairs;
  }
  Reach reach_one(const wire::ListeningServer& server) {
    const std::vector<Pair> pairs = reach({server});
    return pairs.empty() || pairs[0].tries.empty() ? Reach() : pairs[0].tries[0];
  }
  Flow send(const std::string& token, int port, int iperf_port = 0, bool with_latency = false) {
    PairsStream stream;
    answer_send(fake.host, {token, "127.0.0.1", port, iperf_port, 0, with_latency}, stream);
    return stream.list<wire::SendReply>().at(0).flow;
  }
  test::FakeHost fake;
};

TEST_F(AgentPairs, TellsAboutTheServer) {
  test::FakeHost::put(fake.root() / "proc/sys/kernel/hostname", "localhost\n");
  test::FakeHost::put(fake.root() / "sys/class/net/lo/mtu", "65536\n");
  test::FakeHost::put(fake.root() / "sys/class/net/lo/speed", "-1\n");
  test::FakeHost::put(fake.root() / "dev/nvidia0", "");
  NetworkServer server;
  describe_server(fake.host, "127.0.0.1", server);
  EXPECT_EQ(server.hostname, "localhost");
  EXPECT_THAT(server.host_addresses, Not(IsEmpty()));
  EXPECT_EQ(server.interface, "lo");
  EXPECT_EQ(server.data_address, "127.0.0.1");
  EXPECT_TRUE(server.has_gpus);
  const auto lo = std::ranges::find(server.interfaces, "lo", &NetworkInterface::name);
  ASSERT_NE(lo, server.interfaces.end());
  EXPECT_EQ(lo->mtu, 65536);
  EXPECT_EQ(lo->speed_mbit, 0);
  EXPECT_THAT(lo->addresses, ::testing::Contains("127.0.0.1"));
  test::FakeHost::put(fake.root() / "proc/sys/kernel/hostname", "a;b\n");
  NetworkServer odd;
  describe_server(fake.host, "nobody.invalid", odd);
  EXPECT_EQ(odd.hostname, "a_b");
  EXPECT_EQ(odd.interface, "");
}

TEST_F(AgentPairs, ListsTheSameAddressesAsTheProgramIp) {
  if (fake.host.find_program("ip").empty()) {
    GTEST_SKIP() << "no ip here";
  }
  std::vector<std::string> expected;
  for (const std::string& line : split(run(fake.host, {.argv = {"ip", "-o", "address", "show"}}).out, '\n')) {
    const std::vector<std::string> words = split_words(line);
    if (words.size() > 3) {
      const bool is_global = line.find(" scope global") != std::string::npos;
      expected.push_back(words[1] + " " + split(words[3], '/').front() + (is_global ? " global" : ""));
    }
  }
  std::vector<std::string> found;
  for (const InterfaceAddress& each : list_addresses()) {
    found.push_back(each.interface + " " + each.address + (each.is_global ? " global" : ""));
  }
  EXPECT_THAT(found, ::testing::UnorderedElementsAreArray(expected));
}

TEST_F(AgentPairs, NamesTheProgramOfTheFirewall) {
  fake.host.environment["PATH"] = fake.programs().string();
  EXPECT_EQ(find_firewall(fake.host), "none");
  const auto nft = [&](const std::string& rules) {
    test::FakeHost::put(fake.folder() / "rules", rules);
    test::FakeHost::put_program(fake.programs() / "nft", "while read -r line; do echo \"$line\"; done <\"" +
                                                             (fake.folder() / "rules").string() + "\"");
    return find_firewall(fake.host);
  };
  EXPECT_EQ(nft(""), "nft");
  const std::string begin = "table inet filter {\nchain other {\ntcp dport 1 drop\n}\nchain input {\n";
  const std::string hook = "type filter hook input priority filter; policy ";
  EXPECT_EQ(nft(begin + hook + "accept;\n}\n}\n"), "nft");
  EXPECT_EQ(nft(begin + hook + "drop;\n}\n}\n"), "nft-inet-filter-input");
  EXPECT_EQ(nft(begin + hook + "accept;\ncounter reject\n}\n}\n"), "nft-inet-filter-input");
  EXPECT_EQ(nft("table ip a;b {\nchain input {\n" + hook + "drop;\n}\n}\n"), "nft");
  test::FakeHost::put_program(fake.programs() / "iptables", "exit 1");
  EXPECT_EQ(find_firewall(fake.host), "iptables");
  test::FakeHost::put_program(fake.programs() / "ufw", "exit 1");
  EXPECT_EQ(find_firewall(fake.host), "ufw");
}

TEST_F(AgentPairs, TellsNamesAndWays) {
  const auto server = [](int index, const std::string& name) {
    return wire::ListeningServer{index, "t" + std::to_string(index), name, 1, 1, "", {}};
  };
  std::vector<Pair> pairs = reach(
      {server(0, "127.0.0.1"), server(1, "nobody.invalid"), server(2, "localhost"), server(3, "fe80::1%lo")});
  ASSERT_EQ(pairs.size(), 4U);
  std::ranges::sort(pairs, {}, &Pair::to);
  EXPECT_THAT(pairs[0].addresses, ElementsAre("127.0.0.1"));
  EXPECT_EQ(pairs[0].interface, "lo");
  EXPECT_EQ(pairs[0].source, "127.0.0.1");
  EXPECT_THAT(pairs[0].tries, IsEmpty());
  EXPECT_THAT(pairs[1].addresses, IsEmpty());
  EXPECT_THAT(pairs[1].tries, IsEmpty());
  EXPECT_THAT(pairs[2].addresses, Not(IsEmpty()));
  EXPECT_THAT(pairs[3].addresses, ElementsAre("fe80::1%lo"));
}

TEST_F(AgentPairs, ALinkLocalAddressKeepsItsZone) {
  const auto found = resolve_names(fake.host, {"fe80::1%lo", "fe80::1%none-such", "10.0.0.1"});
  ASSERT_EQ(found[0].size(), 1U);
  EXPECT_EQ(found[0][0].text(), "fe80::1%lo");
  EXPECT_THAT(found[1], IsEmpty());
  const SocketAddress address = make_socket_address(found[0][0], 3);
  sockaddr_in6 six{};
  std::memcpy(&six, &address.storage, sizeof six);
  EXPECT_EQ(six.sin6_scope_id, 1U);
  EXPECT_EQ(address.text(), "fe80::1");
  EXPECT_EQ(address.port(), 3);
  EXPECT_EQ(make_socket_address(found[2].at(0), 3).text(), "10.0.0.1");
}

TEST_F(AgentPairs, ANameServerThatDoesNotAnswerHoldsUpNobodyForLong) {
  test::FakeHost::put_program(fake.programs() / "getent",
                              "case $2 in slow*) exec sleep 1000 ;; esac\necho '10.0.0.9 STREAM x'\n"
                              "echo '10.0.0.9 DGRAM x'\necho 'nonsense'\necho 'fe80::9%lo STREAM x'");
  const auto begun = std::chrono::steady_clock::now();
  std::vector<std::string> names{"fast"};
  for (int i = 0; i < 70; ++i) {
    names.push_back("slow" + std::to_string(i));
  }
  const auto found = resolve_names(fake.host, names);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, test::patience);
  ASSERT_EQ(found[0].size(), 2U);
  EXPECT_EQ(found[0][0].text(), "10.0.0.9");
  EXPECT_EQ(found[0][1].text(), "fe80::9");
  EXPECT_THAT(found[1], IsEmpty());
}

TEST_F(AgentPairs, ReachesAListenerOnBothPorts) {
  const ListeningAgent one(fake.host, "token1");
  const ListeningAgent two(fake.host, "token2");
  EXPECT_THAT(one.reply.server.ports, ::testing::SizeIs(2));
  const std::vector<Pair> pairs = reach({one.as_server(0), two.as_server(1)});
  ASSERT_EQ(pairs.size(), 2U);
  EXPECT_THAT(pairs[0].tries, IsEmpty());
  ASSERT_EQ(pairs[1].tries.size(), 2U);
  for (const Reach& reach : pairs[1].tries) {
    EXPECT_EQ(reach.kind, ReachKind::ok);
    EXPECT_EQ(reach.address, "127.0.0.1");
    EXPECT_EQ(reach.seen_as, "127.0.0.1");
    EXPECT_GT(reach.packet, 1000);
    EXPECT_LT(reach.connect, test::patience);
  }
  EXPECT_NE(pairs[1].tries[0].port, pairs[1].tries[1].port);
}

TEST_F(AgentPairs, TriesTheDataAddressAndTheOthersOnlyWhenNothingElseWorks) {
  const ListeningAgent one(fake.host, "token1");
  wire::ListeningServer server = one.as_server(1);
  server.addresses = {"127.0.0.3", "127.0.0.1"};
  EXPECT_EQ(reach({server})[0].tries.size(), 2U);
  server.name = "nobody.invalid";
  std::vector<Pair> pairs = reach({server});
  ASSERT_EQ(pairs[0].tries.size(), 2U);
  EXPECT_EQ(pairs[0].tries[0].kind, ReachKind::ok);
  server.port = find_free_port(false);
  server.second_port = server.port;
  server.name = "127.0.0.1";
  pairs = reach({server});
  ASSERT_EQ(pairs[0].tries.size(), 3U);
  EXPECT_EQ(pairs[0].tries[2].address, "127.0.0.3");
  EXPECT_EQ(pairs[0].tries[2].kind, ReachKind::reset);
  EXPECT_EQ(pairs[0].tries[2].reason, "ECONNREFUSED");
}

TEST_F(AgentPairs, TellsWhoElseAnswers) {
  const ListeningAgent one(fake.host, "token1");
  wire::ListeningServer wrong = one.as_server(1);
  wrong.token = "other";
  EXPECT_EQ(reach_one(wrong).kind, ReachKind::wrong_peer);
  EXPECT_FALSE(reach_one(wrong).answered_by);
  const std::vector<Pair> pairs = reach({one.as_server(0), wrong});
  ASSERT_EQ(pairs.size(), 2U);
  EXPECT_EQ(pairs[1].tries[0].kind, ReachKind::wrong_peer);
  EXPECT_EQ(pairs[1].tries[0].answered_by, 0U);

  const Impostor web([](const Descriptor& socket) { test::send_all(socket, "HTTP/1.1 400\r\n"); });
  EXPECT_EQ(reach_one(web.as_server(1, "t")).kind, ReachKind::wrong_peer);
  const Impostor closing([](const Descriptor&) {});
  EXPECT_EQ(reach_one(closing.as_server(1, "t")).kind, ReachKind::silent);
  const Impostor longest([](const Descriptor& socket) { test::send_all(socket, std::string(1 << 20, 'x')); });
  EXPECT_EQ(reach_one(longest.as_server(1, "t")).kind, ReachKind::wrong_peer);
  const Impostor silent([](const Descriptor& socket) { read_all(socket); });
  EXPECT_EQ(reach_one(silent.as_server(1, "t")).kind, ReachKind::silent);
}

TEST_F(AgentPairs, TheAddressThatAnotherServerSawMayBeNonsense) {
  for (const char* seen : {"$(id)", "fe80::1%$(id)", "10.0.0.256"}) {
    const Impostor impostor([&](const Descriptor& socket) {
      test::send_all(socket, "remote1 t " + std::string(seen) + "\n");
      const std::string order = test::read_exactly(socket, 64);
      const int size = std::stoi(split_words(order).at(1));
      test::read_exactly(socket, static_cast<std::size_t>(size) - 64);
      test::send_all(socket, "got\n" + std::string(static_cast<std::size_t>(size), '.'));
    });
    const Reach reach = reach_one(impostor.as_server(1, "t"));
    EXPECT_EQ(reach.kind, ReachKind::ok);
    EXPECT_EQ(reach.seen_as, "") << seen;
  }
}

// A connection that passes only packets of up to 1400 bytes.
TEST_F(AgentPairs, FindsTheSizeOfPacketsThatPass) {
  std::vector<std::thread> threads;
  std::mutex mutex;
  {
    const Impostor narrow([&](const Descriptor& socket) {
      const std::lock_guard lock(mutex);
      threads.emplace_back([mine = Descriptor(::dup(socket.get()))] {
        test::send_all(mine, "remote1 t 127.0.0.1\n");
        const std::string order = test::read_exactly(mine, 64);
        const std::vector<std::string> words = split_words(order.substr(0, order.find('\n')));
        const std::size_t size = words.size() == 2 ? std::stoul(words[1]) : 0;
        if (size <= 1360 && size >= 64) {
          test::read_exactly(mine, size - 64);
          test::send_all(mine, "got\n" + std::string(size, '.'));
        }
        read_all(mine);
      });
    });
    const Reach reach = reach_one(narrow.as_server(1, "t"));
    EXPECT_EQ(reach.kind, ReachKind::lost_large);
    EXPECT_FALSE(reach.on_the_way_back);
    EXPECT_EQ(reach.passes, 1400);
    EXPECT_GT(reach.packet, 1400);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST(AgentAttempts, TellFirewallsFromMissingWays) {
  const auto icmp = [](int type, int code, const char* from) {
    return std::optional(IcmpMessage{type, code, from});
  };
  EXPECT_EQ(judge_error(ECONNREFUSED, std::nullopt), ReachKind::reset);
  EXPECT_EQ(judge_error(ECONNREFUSED, icmp(3, 3, "10.0.0.2")), ReachKind::rejected);
  EXPECT_EQ(judge_error(EHOSTUNREACH, icmp(3, 13, "10.0.0.2")), ReachKind::rejected);
  EXPECT_EQ(judge_error(EHOSTUNREACH, icmp(3, 1, "10.0.0.9")), ReachKind::no_route);
  EXPECT_EQ(judge_error(EACCES, icmp(1, 1, "fd00::2")), ReachKind::rejected);
  EXPECT_EQ(judge_error(EHOSTUNREACH, icmp(1, 3, "fd00::2")), ReachKind::no_route);
  EXPECT_EQ(judge_error(ENETUNREACH, std::nullopt), ReachKind::no_route);
  EXPECT_EQ(judge_error(EMFILE, std::nullopt), ReachKind::failed);
}

// ---- the listener ----------------------------------------------------------------------------------------

TEST_F(AgentPairs, AListenerEndsWithItsStream) {
  ListeningAgent agent(fake.host, "token");
  for (const int port : agent.reply.server.ports) {
    EXPECT_TRUE(test::connect_to_port(port));
  }
  agent.close();
  for (const int port : agent.reply.server.ports) {
    EXPECT_FALSE(test::connect_to_port(port));
  }
}

TEST_F(AgentPairs, WithoutAThreadItDoesNotListen) {
  PairsStream stream;
  stream.threaded = false;
  EXPECT_THROW(answer_listen(fake.host, {"token", "127.0.0.1", 20000, false}, stream), CannotStart);
}

TEST_F(AgentPairs, ATakenPortIsReplacedByAnother) {
  const ListeningAgent first(fake.host, "token");
  const int taken = first.reply.server.ports.at(0);
  PairsStream stream;
  std::thread thread([&] { answer_listen(fake.host, {"token", "", taken, false}, stream); });
  EXPECT_TRUE(test::eventually([&] { return !stream.list<wire::ListenReply>().empty(); }));
  stream.closed = true;
  thread.join();
  const std::vector<int> ports = stream.list<wire::ListenReply>().at(0).server.ports;
  ASSERT_EQ(ports.size(), 2U);
  EXPECT_NE(ports[0], taken);
  EXPECT_GE(ports[0], 20000);
  EXPECT_LT(ports[0], 32768);
}

TEST_F(AgentPairs, StrangersAreSentAway) {
  const ListeningAgent agent(fake.host, "token");
  const int port = agent.reply.server.ports.at(0);
  const std::string greeting = "remote1 token 127.0.0.1\n";
  for (const std::string& order :
       {std::string("GET / HTTP/1.1\r\n"), std::string("block -1\n"), std::string("block x\n"),
        std::string("block 0\n"), std::string("block\n"), std::string("\n"), std::string(1 << 16, 'x'),
        std::string(1 << 16, '\0')}) {
    const Descriptor stranger = test::connect_to_port(port);
    EXPECT_EQ(test::read_exactly(stranger, greeting.size()), greeting);
    test::send_all(stranger, order);
    EXPECT_EQ(test::read_some(stranger, seconds(5)), std::nullopt) << order.substr(0, 20);
  }
  // The size of a block is limited.
  const Descriptor greedy = test::connect_to_port(port);
  test::read_exactly(greedy, greeting.size());
  test::send_all(greedy, "block 4000000000\n" + std::string(32000, '.'));
  EXPECT_EQ(test::read_exactly(greedy, 32004).size(), 32004U);
  EXPECT_EQ(test::read_some(greedy), "");
  // The number of round trips is limited, too.
  const Descriptor pinging = test::connect_to_port(port);
  test::read_exactly(pinging, greeting.size());
  test::send_all(pinging, "ping \n");
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(test::read_exactly(pinging, 5), "pong\n") << i;
    test::send_all(pinging, "ping\n");
  }
  EXPECT_EQ(test::read_some(pinging, seconds(5)), std::nullopt);
}

TEST_F(AgentPairs, ManyStrangersDoNotKeepOthersOut) {
  const ListeningAgent agent(fake.host, "token");
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 200; ++i) {
    strangers.push_back(test::connect_to_port(agent.reply.server.ports.at(0)));
  }
  EXPECT_EQ(reach_one(agent.as_server(1)).kind, ReachKind::ok);
}

// ---- the bandwidth ---------------------------------------------------------------------------------------

TEST_F(AgentPairs, MeasuresWithoutIperf) {
  const ListeningAgent agent(fake.host, "token");
  PairsStream stream;
  answer_send(fake.host, {"token", "127.0.0.1", agent.reply.server.ports.at(0), 0, 1, true}, stream);
  const Flow flow = stream.list<wire::SendReply>().at(0).flow;
  EXPECT_EQ(flow.error, "");
  EXPECT_GT(flow.gbit_s, 0.01);
  EXPECT_GT(flow.latency.count(), 0);
  EXPECT_LT(flow.latency, test::patience);
}

// The other server sends this after all data.
TEST_F(AgentPairs, AnotherServersNonsenseIsAnErrorOfThatMeasurementAlone) {
  const auto sent = [this](const std::string& answer) {
    const Impostor impostor([&](const Descriptor& socket) {
      test::send_all(socket, "remote1 abc 127.0.0.1\n");
      while (!test::read_some(socket, seconds(5)).value_or("").empty()) {
      }
      test::send_all(socket, answer);
    });
    return send("abc", impostor.port);
  };
  for (const char* answer : {"a lot\n", "5\n", "0 0\n", "nan 1\n", "-1 1\n", "1 2 3\n", "\n"}) {
    EXPECT_EQ(sent(answer).error, "the other side sends an unexpected answer") << answer;
  }
  EXPECT_EQ(sent(std::string(1 << 16, 'x')).error, "the other side sends an unexpected answer");
  EXPECT_EQ(sent("").error, "the other side does not answer");
  EXPECT_EQ(sent("123456789012345678 1\n").error, "the other side reports more data than was sent");
  EXPECT_EQ(sent("0 1\n").error, "");
  EXPECT_EQ(sent("0 1\n").gbit_s, 0);
}

TEST_F(AgentPairs, AFailedConnectionIsAnErrorOfThatMeasurement) {
  EXPECT_EQ(send("abc", find_free_port(false), 0, true).error, "the connection fails");
  const Impostor other([](const Descriptor& socket) { test::send_all(socket, "remote1 other 127.0.0.1\n"); });
  EXPECT_EQ(send("abc", other.port).error, "the connection fails");
}

TEST_F(AgentPairs, AnErrorWithinAMeasurementIsThatMeasurementsResult) {
  send("abc", find_free_port(false), 0, true);  // UBSan opens a pipe when it first sees a type
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{0, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &none);
  const Flow flow = send("abc", 1, 0, true);
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(flow.error, "Too many open files");
}

TEST(AgentIperf, AnswersAreReadStrictly) {
  std::string why;
  EXPECT_EQ(read_iperf_answer(R"({"end":{"sum_received":{"bits_per_second":2.5e9}}})", why), 2.5);
  for (const char* answer :
       {"", "{", "[]", "{}", R"({"end":{}})", R"({"end":{"sum_received":{"bits_per_second":"1"}}})",
        R"({"end":{"sum_received":{"bits_per_second":-1}}})",
        R"({"end":{"sum_received":{"bits_per_second":1e16}}})"}) {
    EXPECT_FALSE(read_iperf_answer(answer, why)) << answer;
    EXPECT_EQ(why, "its answer is not understood") << answer;
  }
  EXPECT_FALSE(read_iperf_answer("{\"error\":\"no \\u001b[31m route\"}", why));
  EXPECT_THAT(why, StartsWith("no "));
  EXPECT_THAT(why, Not(HasSubstr("\x1b")));
}

TEST_F(AgentPairs, ServesAndUsesIperf) {
  test::FakeHost::put_program(fake.programs() / "iperf3", R"(case $1 in
  -s) echo $$ >")" + (fake.folder() / "server").string() + R"("
    echo "Server listening on $3"
    exec sleep 1000 ;;
esac
[ "$2 $4" = "127.0.0.1 77" ] || exit 1
n=$(cat ")" + (fake.folder() / "count").string() + R"(" 2>/dev/null)
echo x$n >")" + (fake.folder() / "count").string() + R"("
case $n in
  '') echo '{"error":"the server is busy running a test. try again later"}' ;;
  *) echo '{"end":{"sum_received":{"bits_per_second":1000000000}}}' ;;
esac)");
  int pid = 0;
  {
    const ListeningAgent agent(fake.host, "token", true);
    EXPECT_GT(agent.reply.iperf_port, 0);
    pid = std::stoi(read_first_line(fake.folder() / "server"));
    EXPECT_TRUE(read_process(Host::of_this_process(), pid));
    const Flow flow = send("token", agent.reply.server.ports.at(0), 77, true);
    EXPECT_EQ(flow.error, "");
    EXPECT_EQ(flow.gbit_s, 1);
    EXPECT_GT(flow.latency.count(), 0);
  }
  EXPECT_FALSE(read_process(Host::of_this_process(), pid));
}

TEST_F(AgentPairs, WithoutIperfTheAgentSends) {
  fake.host.environment["PATH"] = fake.programs().string();
  const ListeningAgent none(fake.host, "token", true);
  EXPECT_EQ(none.reply.iperf_port, 0);
  EXPECT_EQ(send("token", 1, 5).error, "iperf3 cannot be started");
  test::FakeHost::put_program(fake.programs() / "iperf3", "echo 'error - unable to listen'");
  const ListeningAgent failing(fake.host, "token", true);
  EXPECT_EQ(failing.reply.iperf_port, 0);
  EXPECT_EQ(send("token", 1, 5).error, "iperf3: its answer is not understood");
}

}  // namespace
}  // namespace remote::agent
