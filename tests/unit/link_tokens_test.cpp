#include "jobs/link_tokens.hpp"

#include <gtest/gtest.h>

#include "jobs/start.hpp"
#include "jobs/sweep.hpp"
#include "support/fake_agent.hpp"
#include "wire/cbor.hpp"

namespace remote::jobs {
namespace {

const std::vector<std::string> names{"a", "b", "c"};

TEST(LinkTokens, AreRandom) {
  const wire::LinkTokens tokens = make_link_tokens(3);
  ASSERT_EQ(tokens.size(), 2U) << "the first server needs none";
  EXPECT_EQ(tokens[0].size(), 64U);
  EXPECT_NE(tokens[0], tokens[1]);
  EXPECT_NE(make_link_tokens(3), tokens);
  EXPECT_TRUE(make_link_tokens(1).empty());
  EXPECT_TRUE(make_link_tokens(0).empty());
}

// Otherwise a server could use another server's name.
TEST(LinkTokens, AMemberOfALaunchGetsOnlyItsOwn) {
  wire::LaunchSpec spec;
  spec.servers = {{"a", 2, ""}, {"b", 1, ""}, {"c", 1, ""}};
  spec.tokens = make_link_tokens(3);
  EXPECT_EQ(spec_for(spec, "a", {}).tokens, spec.tokens);
  EXPECT_EQ(spec_for(spec, "b", {}).tokens, wire::LinkTokens{spec.tokens[0]});
  EXPECT_EQ(spec_for(spec, "c", {}).tokens, wire::LinkTokens{spec.tokens[1]});
  EXPECT_TRUE(spec_for(spec, "d", {}).tokens.empty());
}

TEST(LinkTokens, AMemberOfASweepGetsOnlyItsOwn) {
  const SweepRun run{.launch = JobId::random(),
                     .tokens = make_link_tokens(3),
                     .servers = names,
                     .address = "10.0.0.1",
                     .port = 4000,
                     .ids = {}};
  const auto sent_to = [&](const std::string& own) {
    test::FakeAgent agent;
    agent.answer(wire::BeginSweepReply{});
    const Cancel cancel;
    begin_sweep({agent, cancel}, {"~/p", ".jobs"}, own, run, nullptr, {});
    const wire::Bytes sent(agent.received.begin(), agent.received.end());
    return wire::decode<wire::SweepToBegin>(sent).run.tokens;
  };
  EXPECT_EQ(sent_to("a"), run.tokens);
  EXPECT_EQ(sent_to("b"), wire::LinkTokens{run.tokens[0]});
  EXPECT_EQ(sent_to("c"), wire::LinkTokens{run.tokens[1]});
}

}  // namespace
}  // namespace remote::jobs
