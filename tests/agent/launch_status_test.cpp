#include <gtest/gtest.h>

#include "agent/host_folder.hpp"
#include "agent/launch/status.hpp"

namespace remote::agent {
namespace {

class LaunchStatus : public ::testing::Test, public PeersHandler, public rules::LaunchActs {
 protected:
  LaunchStatus() {
    spec.servers = {{"a", 1, ""}, {"b", 1, ""}, {"c", 1, ""}};
    spec.address = "10.0.0.1";
    spec.port = 29500;
  }
  void greet(Link& /*link*/) override {}
  void take(Link& /*link*/, const wire::LinkMessage& /*message*/) override {}
  void note_drop(const Link& /*link*/) override {}
  void broadcast(const wire::LinkMessage& /*message*/) override {}
  void tell(const std::string& /*server*/, const wire::LinkMessage& /*message*/) override {}
  void record(const wire::LaunchEntry& /*entry*/) override {}

  // The supervisor's description of this server, `seconds` after its start.
  std::string describe(const std::string& server, double seconds, const std::string& heard = "") {
    spec.server = server;
    rules::LaunchSetup setup{.own = server, .servers = {}, .timeout = Seconds(60)};
    for (const wire::LaunchServer& each : spec.servers) {
      setup.servers.push_back(each.name);
    }
    rules::LaunchPolicy policy(setup, {}, Seconds(100), *this);
    for (const char each : heard) {
      policy.hear(std::string(1, each), wire::Beat{}, Seconds(100));
    }
    return describe_supervisor(spec, policy, peers, "12:03:04 UTC", Seconds(100), Seconds(100 + seconds))
        .value_or("-");
  }

  test::HostFolder folder;
  wire::LaunchSpec spec;
  Peers peers{
      folder.host, {.own = "a", .servers = {"a"}, .tokens = {}, .address = "127.0.0.1", .port = 0}, *this};
};

TEST_F(LaunchStatus, OfACoordinator) {
  peers.set_refusal("Address already in use");
  EXPECT_EQ(describe("a", 0), "cannot listen: Address already in use");
  peers.set_refusal("");
  peers.listen();
  EXPECT_EQ(describe("a", 2.9), "-");
  EXPECT_EQ(describe("a", 3.1), "waiting for b, c");
  EXPECT_EQ(describe("a", 3.1, "b"), "waiting for c");
  EXPECT_EQ(describe("a", 0, "bc"), "ok");
}

TEST_F(LaunchStatus, OfAMember) {
  EXPECT_EQ(describe("b", 10), "-") << "nothing is known";
  peers.set_refusal("Connection refused");
  EXPECT_EQ(describe("b", 1.4), "-");
  EXPECT_EQ(describe("b", 1.6), "cannot reach a at 10.0.0.1:29500: Connection refused");
  EXPECT_EQ(describe("b", 1.6, "a"), "cut off from a since 12:03:04 UTC");
}

TEST_F(LaunchStatus, OfAServerAlone) {
  spec.servers.resize(1);
  EXPECT_EQ(describe("a", 0), "ok");
}

}  // namespace
}  // namespace remote::agent
