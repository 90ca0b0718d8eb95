#include "project/check/network.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "servers/conversation.hpp"
#include "servers/pairs.hpp"

// What pairs.sh and pairs.py answer, and what it means.

namespace remote {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const servers::PairsRequest of_three{
    .own = 0, .token = "abc", .addresses = {"10.0.0.1", "10.0.0.2", "node-3"}};

servers::PairsAnswer read_lines(const std::string& lines) {
  servers::PairsAnswer answer(of_three);
  servers::AnswerReader reader = servers::reader_into(answer);
  reader.add(lines);
  reader.finish();
  return answer;
}

Reach reach_of(const std::string& words) {
  return read_lines("@remote1 pairs try 1 10.0.0.2 20001 " + words + "\n").pairs.at(1).tries.at(0);
}

TEST(PairsAnswer, TellsAboutTheServer) {
  const servers::PairsAnswer answer = read_lines(
      "@remote1 pairs firewall ufw\n"
      "@remote1 pairs interface eth0 1500 10000 10.0.0.1 fd00::1\n"
      "@remote1 pairs host node-1 127.0.1.1\n"
      "@remote1 pairs data eth0 10.0.0.1\n"
      "@remote1 pairs listening 20001 40001\n"
      "@remote1 pairs way 1 eth0 10.0.0.1 10.0.0.2\n"
      "@remote1 pairs way 2 - -\n"
      "@remote1 pairs tried\n");
  EXPECT_TRUE(answer.listening);
  EXPECT_TRUE(answer.tried);
  EXPECT_EQ(answer.about.firewall, "ufw");
  EXPECT_THAT(answer.about.ports, ElementsAre(20001, 40001));
  EXPECT_EQ(answer.about.data_address, "10.0.0.1");
  ASSERT_THAT(answer.about.interfaces, SizeIs(1));
  EXPECT_EQ(answer.about.interfaces[0].speed_mbit, 10000);
  ASSERT_THAT(answer.pairs, SizeIs(3));
  EXPECT_EQ(answer.pairs[1].interface, "eth0");
  EXPECT_THAT(answer.pairs[2].addresses, IsEmpty());
  EXPECT_EQ(answer.pairs[2].interface, "");
}

TEST(PairsAnswer, TellsFirewallsFromMissingWays) {
  EXPECT_EQ(reach_of("ok 120 10.0.0.1 1500").kind, ReachKind::ok);
  EXPECT_EQ(reach_of("dropped").kind, ReachKind::dropped);
  EXPECT_EQ(reach_of("silent").kind, ReachKind::silent);
  EXPECT_EQ(reach_of("error ECONNREFUSED").kind, ReachKind::reset);
  EXPECT_EQ(reach_of("error ECONNREFUSED icmp 3 3 10.0.0.2").kind, ReachKind::rejected);
  EXPECT_EQ(reach_of("error EHOSTUNREACH icmp 3 13 10.0.0.2").kind, ReachKind::rejected);
  EXPECT_EQ(reach_of("error EHOSTUNREACH icmp 3 1 10.0.0.9").kind, ReachKind::no_route);
  EXPECT_EQ(reach_of("error EACCES icmp 1 1 fd00::2").kind, ReachKind::rejected);
  EXPECT_EQ(reach_of("error EHOSTUNREACH icmp 1 3 fd00::2").kind, ReachKind::no_route);
  EXPECT_EQ(reach_of("error ENETUNREACH").kind, ReachKind::no_route);
  EXPECT_EQ(reach_of("error EMFILE").kind, ReachKind::failed);
  EXPECT_EQ(reach_of("other 2").answered_by, 2U);
  const Reach lost = reach_of("lost back 1500 1400");
  EXPECT_EQ(lost.kind, ReachKind::lost_large);
  EXPECT_TRUE(lost.on_the_way_back);
  EXPECT_EQ(lost.passes, 1400);
}

TEST(PairsAnswer, RefusesWhatItDoesNotUnderstand) {
  for (const char* line :
       {"try 3 10.0.0.2 1 dropped", "try 1 10.0.0.256 1 dropped", "try 1 $(id) 1 dropped",
        "try 1 10.0.0.2 0 dropped", "try 1 10.0.0.2 1 other 3", "try 1 10.0.0.2 1 dropped more",
        "try 1 10.0.0.2 1 error E icmp 3 3 x", "way 9 - -", "way 1 e;h - 10.0.0.1", "interface eth0 -1 0",
        "listening 1", "listening 1 70000", "host a b", "nonsense"}) {
    EXPECT_THROW(read_lines(std::string("@remote1 pairs ") + line + "\n"), Error) << line;
  }
  std::string many;
  for (int i = 0; i < 40; ++i) {
    many += "@remote1 pairs try 1 10.0.0.2 20001 dropped\n";
  }
  EXPECT_THROW(read_lines(many), Error);
}

TEST(PairsOrder, BeginsBehindItself) {
  std::vector<std::optional<servers::PairPeer>> peers(3);
  peers[0] = servers::PairPeer{"t0", "10.0.0.1", {1, 2}, "10.0.0.1", {"10.0.0.1"}};
  peers[2] = servers::PairPeer{"t2", "node-3", {3, 4}, "", {}};
  EXPECT_EQ(servers::pairs_order(peers, 2),
            "peer 2 t2 3 4 node-3 -\npeer 0 t0 1 2 10.0.0.1 10.0.0.1 10.0.0.1\ntry\n");
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

// Two servers that reach each other.
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
  EXPECT_THAT(project::network_findings(healthy()),
              ElementsAre(ElementsAre(finding("network", CheckStatus::ok, "reaches node-2"),
                                      finding("network-launch", CheckStatus::ok,
                                              "MASTER_ADDR=10.0.0.1 NCCL_SOCKET_IFNAME=eth0")),
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
  EXPECT_THAT(all[0][0], finding("network-route", CheckStatus::fail, "there is no way (ENETUNREACH)"));
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
  // The address on the interface that ranks use fails: the name's own one would not help against that.
  network.servers[1].data_address = "192.168.0.2";
  pair.addresses = {"10.0.0.2"};
  pair.tries = {{.address = "10.0.0.2", .port = 20001, .kind = ReachKind::ok},
                {.address = "192.168.0.2", .port = 20001, .kind = ReachKind::dropped}};
  all = project::network_findings(network);
  EXPECT_THAT(all[0][0].fix->text, HasSubstr("ufw allow"));
}

TEST(NetworkFindings, AServerThatWasNotAskedIsNobodysFault) {
  Network network = healthy();
  network.servers[1].skipped = "there is no python3, which opens the connections";
  const auto all = project::network_findings(network);
  EXPECT_THAT(all[0][0], finding("network", CheckStatus::skip, "node-2"));
  EXPECT_THAT(all[1][0], finding("network", CheckStatus::skip, "python3"));
}

}  // namespace
}  // namespace remote
