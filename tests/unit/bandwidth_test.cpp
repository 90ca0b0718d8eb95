#include "cli/show/bandwidth.hpp"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "project/check/network.hpp"
#include "servers/pairs.hpp"

// The order in which servers measure, and the interpretation of the results.

namespace remote {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

TEST(BandwidthRounds, AllMeetAllAndNobodyTwiceAtATime) {
  for (std::size_t count = 2; count <= 9; ++count) {
    const auto rounds = servers::rounds_of(count);
    EXPECT_EQ(rounds.size(), count - 1 + count % 2);
    std::set<std::pair<std::size_t, std::size_t>> met;
    for (const auto& round : rounds) {
      ASSERT_THAT(round, SizeIs(count));
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_LT(round[i], count);
        EXPECT_EQ(round[round[i]], i);
        if (i < round[i]) {
          EXPECT_TRUE(met.emplace(i, round[i]).second);
        }
      }
    }
    EXPECT_EQ(met.size(), count * (count - 1) / 2);
  }
}

// Three servers; sending from the last one is slow.
Network measured() {
  Network network;
  for (const std::string n : {"1", "2", "<3>"}) {
    network.servers.push_back({.server = "node-" + n, .interfaces = {{"eth0", 1500, 1000, {}}}});
  }
  network.bandwidth.emplace();
  for (std::size_t from = 0; from < 3; ++from) {
    for (std::size_t to = 0; to < 3; ++to) {
      network.pairs.push_back({.from = from, .to = to, .interface = "eth0"});
      if (from != to) {
        network.bandwidth->flows.push_back({.from = from,
                                            .to = to,
                                            .gbit_s = from == 2 ? 0.1 : 0.94,
                                            .latency = Microseconds(120),
                                            .method = "own"});
      }
    }
  }
  network.bandwidth->at_once = {{.from = 0, .to = 1, .gbit_s = 0.9}, {.from = 1, .to = 2, .gbit_s = 0.8}};
  project::judge_flows(*network.bandwidth);
  return network;
}

TEST(BandwidthFindings, NameTheSlowAndSayWhy) {
  const Network network = measured();
  EXPECT_DOUBLE_EQ(network.bandwidth->median_gbit_s, 0.94);
  EXPECT_NEAR(network.bandwidth->total_gbit_s, 1.7, 1e-9);
  const auto all = project::bandwidth_findings(network, {false, false, false});
  ASSERT_THAT(all[0], SizeIs(1));
  EXPECT_EQ(all[0][0].status, CheckStatus::ok);
  EXPECT_EQ(all[0][0].detail, "sends 0.94 to 0.94 Gbit/s, round trips of 120 µs");
  ASSERT_THAT(all[2], SizeIs(2));
  EXPECT_EQ(all[2][0].status, CheckStatus::warn);
  EXPECT_EQ(all[2][0].detail,
            "sends 0.1 Gbit/s to node-1; the median of all is 0.94; eth0 is an interface of 1 Gbit/s");
}

TEST(BandwidthFindings, AServerThatTookNoPartIsNamed) {
  Network network = measured();
  network.servers.push_back({.server = "node-4", .skipped = "it cannot be reached from here\x1b[2J"});
  network.servers.push_back({.server = "node-5"});
  const auto all = project::bandwidth_findings(network, {false, false, false, false, false});
  ASSERT_THAT(all[3], SizeIs(1));
  EXPECT_EQ(all[3][0].name, "bandwidth");
  EXPECT_EQ(all[3][0].status, CheckStatus::skip);
  EXPECT_THAT(all[3][0].detail, HasSubstr("not measured: it cannot be reached from here"));
  EXPECT_EQ(all[4][0].detail, "not measured: it reaches no other server");
  ui::Terminal terminal({.in = -1, .out = -1, .err = -1});
  std::string text = cli::bandwidth_text(network, terminal);
  EXPECT_THAT(text, HasSubstr("\nnode-4 was not measured: it cannot be reached from here\\x1b[2J\n"));
  EXPECT_THAT(text, Not(HasSubstr("node-1 was not measured")));
  network.bandwidth->flows.clear();
  text = cli::bandwidth_text(network, terminal);
  EXPECT_THAT(text, HasSubstr("no bandwidth was measured\n"));
  EXPECT_THAT(text, HasSubstr("\nnode-5 was not measured: it reaches no other server\n"));
}

TEST(BandwidthFindings, GpusNeedMore) {
  const auto all = project::bandwidth_findings(measured(), {true, true, false});
  ASSERT_THAT(all[0], SizeIs(1));
  EXPECT_EQ(all[0][0].name, "bandwidth-gpu");
  EXPECT_THAT(all[0][0].detail, HasSubstr("only 0.94 Gbit/s to node-2"));
  EXPECT_EQ(all[2][0].name, "bandwidth");
}

TEST(BandwidthText, AMatrixFitsAndManyAreSummedUp) {
  Network network = measured();
  const ui::Terminal terminal;
  const std::string text = cli::bandwidth_text(network, terminal);
  EXPECT_THAT(text, HasSubstr("GBIT/S FROM, TO     1     2     3\n1 node-1               0.94  0.94\n"));
  EXPECT_THAT(text, HasSubstr("0.1!"));
  EXPECT_THAT(text, HasSubstr("median 0.94 Gbit/s, 2 under 70 % of it (!); all at once 1.7 Gbit/s together"));
  for (int i = 0; i < 12; ++i) {
    network.servers.push_back({.server = "more"});
  }
  EXPECT_THAT(cli::bandwidth_text(network, terminal),
              HasSubstr("SLOWEST FROM  TO        GBIT/S   µS\nnode-<3>"));
}

TEST(BandwidthSvg, EscapesNamesAndFramesTheSlow) {
  const std::string svg = cli::bandwidth_svg(measured());
  EXPECT_THAT(svg, HasSubstr("node-&lt;3&gt;"));
  EXPECT_THAT(svg, Not(HasSubstr("<3>")));
  EXPECT_THAT(svg, HasSubstr("class=\"cell slow\""));
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme: dark"));
}

}  // namespace
}  // namespace remote
