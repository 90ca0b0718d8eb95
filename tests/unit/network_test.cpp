#include "project/check/network.hpp"

#include <functional>
#include <optional>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <remote/error.hpp>

#include "servers/barrier.hpp"
#include "servers/pairs.hpp"
#include "wire/cbor.hpp"
#include "wire/request.hpp"

// The agents' answers about the network, and their interpretation.

namespace remote {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

servers::PairsAnswer answer_of_three() {
  return {0, {"10.0.0.1", "10.0.0.2", "node-3"}};
}

// Encodes and decodes, as if received from a server.
template <typename Reply>
Reply sent(const Reply& reply) {
  return std::get<Reply>(wire::decode<wire::Reply>(wire::encode(wire::Reply(reply))));
}

wire::ListenReply listens() {
  wire::ListenReply reply{.server = {}, .iperf_port = 5201};
  reply.server.hostname = "node-1";
  reply.server.host_addresses = {"127.0.1.1"};
  reply.server.interfaces = {{"eth0", 1500, 10000, {"10.0.0.1", "fd00::1"}}, {"lo", 65536, 0, {"127.0.0.1"}}};
  reply.server.ports = {20001, 40001};
  reply.server.firewall = "ufw";
  reply.server.interface = "eth0";
  reply.server.data_address = "10.0.0.1";
  return reply;
}

wire::ReachReply reached() {
  wire::ReachReply reply;
  reply.pair.to = 1;
  reply.pair.addresses = {"10.0.0.2"};
  reply.pair.interface = "eth0";
  reply.pair.source = "10.0.0.1";
  reply.pair.tries = {{.address = "10.0.0.2",
                       .port = 20001,
                       .kind = ReachKind::ok,
                       .connect = Microseconds(120),
                       .seen_as = "10.0.0.1",
                       .packet = 1500}};
  return reply;
}

TEST(PairsAnswer, TellsAboutTheServer) {
  servers::PairsAnswer answer = answer_of_three();
  EXPECT_FALSE(answer.is_listening());
  answer.take(sent(listens()));
  answer.take(sent(reached()));
  EXPECT_TRUE(answer.is_listening());
  EXPECT_EQ(answer.iperf_port, 5201);
  EXPECT_EQ(answer.about.firewall, "ufw");
  EXPECT_THAT(answer.about.ports, ElementsAre(20001, 40001));
  EXPECT_EQ(answer.about.data_address, "10.0.0.1");
  ASSERT_THAT(answer.about.interfaces, SizeIs(2));
  EXPECT_EQ(answer.about.interfaces[0].speed_mbit, 10000);
  ASSERT_THAT(answer.pairs, SizeIs(3));
  EXPECT_EQ(answer.pairs[1].interface, "eth0");
  EXPECT_EQ(answer.pairs[1].name, "10.0.0.2");
  EXPECT_EQ(answer.pairs[1].tries.at(0).connect, Microseconds(120));
  EXPECT_THAT(answer.pairs[2].addresses, IsEmpty());
  EXPECT_EQ(answer.pairs[2].interface, "");
}

TEST(PairsAnswer, WithoutAPortItIsSkipped) {
  servers::PairsAnswer answer = answer_of_three();
  wire::ListenReply reply = listens();
  reply.server.ports = {};
  answer.take(reply);
  EXPECT_FALSE(answer.is_listening());
  EXPECT_EQ(answer.about.skipped, "no port is free there");
}

TEST(PairsAnswer, RefusesWhatItDoesNotUnderstand) {
  const std::vector<std::function<void(wire::ListenReply&)>> wrong_servers{
      [](auto& reply) { reply.server.interface = "e;h"; },
      [](auto& reply) { reply.server.interfaces[0].mtu = -1; },
      [](auto& reply) { reply.server.interfaces[0].name = ""; },
      [](auto& reply) { reply.server.interfaces[0].addresses = {"$(id)"}; },
      [](auto& reply) { reply.server.interfaces[0].addresses.assign(17, "10.0.0.1"); },
      [](auto& reply) { reply.server.interfaces.resize(65, reply.server.interfaces[0]); },
      [](auto& reply) { reply.server.ports = {1}; },
      [](auto& reply) {
        reply.server.ports = {1, 70000};
      },
      [](auto& reply) {
        reply.server.ports = {1, 2, 3};
      },
      [](auto& reply) { reply.server.hostname = "a b"; },
      [](auto& reply) { reply.server.host_addresses = {"b"}; },
      [](auto& reply) { reply.server.firewall = "ufw; id"; },
      [](auto& reply) { reply.server.data_address = "10.0.0.256"; },
      [](auto& reply) { reply.iperf_port = 70000; }};
  for (std::size_t i = 0; i < wrong_servers.size(); ++i) {
    servers::PairsAnswer answer = answer_of_three();
    wire::ListenReply reply = listens();
    wrong_servers[i](reply);
    EXPECT_ANY_THROW(answer.take(sent(reply))) << i;
  }
  const std::vector<std::function<void(Pair&)>> wrong_pairs{
      [](auto& pair) { pair.to = 3; },
      [](auto& pair) { pair.interface = "e;h"; },
      [](auto& pair) { pair.addresses = {"node-2"}; },
      [](auto& pair) { pair.source = "x"; },
      [](auto& pair) { pair.tries[0].address = "10.0.0.256"; },
      [](auto& pair) { pair.tries[0].address = "$(id)"; },
      [](auto& pair) { pair.tries[0].address = ""; },
      [](auto& pair) { pair.tries[0].port = 0; },
      [](auto& pair) { pair.tries[0].answered_by = 3; },
      [](auto& pair) { pair.tries[0].seen_as = "x"; },
      [](auto& pair) { pair.tries[0].rejected_by = "x"; },
      [](auto& pair) { pair.tries[0].reason = "\033[31m"; },
      [](auto& pair) { pair.tries[0].connect = Microseconds(-1); },
      [](auto& pair) { pair.tries.resize(40, pair.tries[0]); }};
  for (std::size_t i = 0; i < wrong_pairs.size(); ++i) {
    servers::PairsAnswer answer = answer_of_three();
    wire::ReachReply reply = reached();
    wrong_pairs[i](reply.pair);
    EXPECT_ANY_THROW(answer.take(sent(reply))) << i;
  }
  servers::PairsAnswer twice = answer_of_three();
  twice.take(listens());
  EXPECT_THROW(twice.take(listens()), Error);
}

TEST(PairsRequest, BeginsBehindItself) {
  std::vector<std::optional<wire::ListeningServer>> servers(3);
  servers::PairsAnswer first = answer_of_three();
  first.take(listens());
  servers[0] = servers::to_listening(first, "t0");
  servers[2] = wire::ListeningServer{2, "t2", "node-3", 3, 4, "", {}};
  const wire::ReachRequest request = servers::reach_request(servers, 2);
  EXPECT_EQ(request.own, 2);
  ASSERT_THAT(request.servers, SizeIs(2));
  EXPECT_EQ(request.servers[0].name, "node-3");
  const wire::ListeningServer& other = request.servers[1];
  EXPECT_EQ(other.index, 0);
  EXPECT_EQ(other.token, "t0");
  EXPECT_EQ(other.name, "10.0.0.1");
  EXPECT_EQ(other.port, 20001);
  EXPECT_EQ(other.second_port, 40001);
  EXPECT_EQ(other.data_address, "10.0.0.1");
  EXPECT_THAT(other.addresses, ElementsAre("10.0.0.1", "fd00::1"));
}

TEST(Barrier, WaitsForAllThatStay) {
  servers::Barrier barrier(3);
  servers::Barrier::Member a(barrier, 0);
  servers::Barrier::Member b(barrier, 1);
  {
    const servers::Barrier::Member c(barrier, 2);
    a.arrive();
    b.arrive();
    EXPECT_FALSE(a.complete());
  }
  EXPECT_TRUE(a.complete());
  a.arrive();
  EXPECT_FALSE(a.complete());
  EXPECT_TRUE(b.complete());
  b.arrive();
  EXPECT_TRUE(a.complete());
  EXPECT_TRUE(b.complete());
}

// Two servers that can reach each other.
Network healthy() {
  Network network;
  for (const std::string n : {"1", "2"}) {
    network.servers.push_back({.server = "node-" + n,
                               .address = "10.0.0." + n,
                               .interfaces = {{"eth0", 1500, 10000, {"10.0.0." + n}}},
                               .ports = {20001, 40001},
                               .firewall = "ufw",
                               .master_addr = "10.0.0.1",
                               .interface = "eth0",
                               .data_address = "10.0.0." + n});
  }
  for (std::size_t from = 0; from < 2; ++from) {
    for (std::size_t to = 0; to < 2; ++to) {
      const std::string address = network.servers[to].address;
      Pair pair{.from = from,
                .to = to,
                .name = address,
                .addresses = {address},
                .interface = "eth0",
                .source = network.servers[from].address};
      if (from != to) {
        pair.tries = {{.address = address, .port = 20001, .kind = ReachKind::ok},
                      {.address = address, .port = 40001, .kind = ReachKind::ok}};
      }
      network.pairs.push_back(pair);
    }
  }
  return network;
}

auto finding(const std::string& name, CheckStatus status, const std::string& detail) {
  return AllOf(Field(&Finding::name, name), Field(&Finding::status, status),
               Field(&Finding::detail, HasSubstr(detail)));
}

TEST(NetworkFindings, AHealthyNetworkIsFine) {
  EXPECT_THAT(
      project::network_findings(healthy()),
      ElementsAre(
          ElementsAre(
              finding("network", CheckStatus::ok, "reaches node-2"),
              finding("network-launch", CheckStatus::ok,
                      "MASTER_ADDR=10.0.0.1, and unless they are set there, NCCL_SOCKET_IFNAME==eth0")),
          SizeIs(2)));
}

TEST(NetworkFindings, APortThatIsFilteredIsOpenedOnTheOther) {
  Network network = healthy();
  network.pairs[1].tries[1].kind = ReachKind::dropped;
  const auto all = project::network_findings(network);
  ASSERT_THAT(all[0], ElementsAre(finding("network-port", CheckStatus::fail, "node-2 at 10.0.0.2 port 40001"),
                                  finding("network-launch", CheckStatus::ok, "")));
  EXPECT_EQ(all[0][0].fix->text, "ufw allow from 10.0.0.1 to any port 1024:65535 proto tcp");
  EXPECT_EQ(all[0][0].fix->server, "node-2");
  EXPECT_THAT(all[1][0], finding("network", CheckStatus::ok, "reaches node-1"));
}

TEST(NetworkFindings, AnAddressThatWorksIsNamed) {
  Network network = healthy();
  network.pairs[1].tries = {
      {.address = "10.0.0.2", .port = 20001, .kind = ReachKind::no_route, .reason = "ENETUNREACH"},
      {.address = "192.168.0.2", .port = 20001, .kind = ReachKind::ok}};
  const auto all = project::network_findings(network);
  EXPECT_THAT(all[0][0], finding("network-route", CheckStatus::fail, "no route (ENETUNREACH)"));
  EXPECT_THAT(all[0][0].fix->text, HasSubstr("under node-2: internal_address: 192.168.0.2"));
}

TEST(NetworkFindings, OfANameWithTwoAddressesTheOneThatWorksIsNamed) {
  Network network = healthy();
  Pair& pair = network.pairs[1];
  pair.addresses = {"fd00::2", "10.0.0.2"};
  pair.tries = {{.address = "fd00::2", .port = 20001, .kind = ReachKind::dropped},
                {.address = "10.0.0.2", .port = 20001, .kind = ReachKind::ok}};
  auto all = project::network_findings(network);
  EXPECT_THAT(all[0][0], finding("network-port", CheckStatus::fail, "node-2 at fd00::2 port 20001"));
  EXPECT_THAT(all[0][0].fix->text, HasSubstr("under node-2: internal_address: 10.0.0.2"));
  // The address on the interface that ranks use fails, so the address of the host name would not help.
  network.servers[1].data_address = "192.168.0.2";
  pair.addresses = {"10.0.0.2"};
  pair.tries = {{.address = "10.0.0.2", .port = 20001, .kind = ReachKind::ok},
                {.address = "192.168.0.2", .port = 20001, .kind = ReachKind::dropped}};
  all = project::network_findings(network);
  EXPECT_THAT(all[0][0].fix->text, HasSubstr("ufw allow"));
}

TEST(NetworkFindings, AServerThatWasNotAskedIsNobodysFault) {
  Network network = healthy();
  network.servers[1].skipped = "no port is free there";
  const auto all = project::network_findings(network);
  EXPECT_THAT(all[0][0], finding("network", CheckStatus::skip, "node-2"));
  EXPECT_THAT(all[1][0], finding("network", CheckStatus::skip, "no port is free"));
}

}  // namespace
}  // namespace remote
