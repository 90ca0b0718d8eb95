#include "jobs/trees.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <remote/error.hpp>

#include "servers/agent.hpp"
#include "support/fake_agent.hpp"
#include "support/wire_refusals.hpp"

namespace remote::jobs {
namespace {

using ::testing::ElementsAre;
using wire::TreeOutcome;

const RemoteFolder folder{"~/p", ".jobs"};
const Cancel cancel;
const std::string digest(64, 'a');

TEST(Trees, SendsTheListAsData) {
  test::FakeAgent agent;
  agent.answer(wire::MakeTreeReply{TreeOutcome::differs, {"a b.py"}, 7, ""});
  const std::string list("1 2 a\0", 6);
  const wire::MakeTreeReply reply = make_tree({agent, cancel}, folder, digest, list);
  EXPECT_THAT(reply.differing, ElementsAre("a b.py"));
  EXPECT_EQ(reply.more, 7);
  ASSERT_EQ(agent.requests.size(), 1U);
  EXPECT_EQ(agent.requests[0]["digest"], digest);
  EXPECT_EQ(agent.requests[0]["place"]["project"], "~/p");
  EXPECT_EQ(agent.received, list);
}

TEST(Trees, RefusesContradictoryReplies) {
  for (const wire::MakeTreeReply& reply : {wire::MakeTreeReply{TreeOutcome::differs, {}, 1, ""},
                                           wire::MakeTreeReply{TreeOutcome::ready, {"a"}, 0, ""},
                                           wire::MakeTreeReply{TreeOutcome::failed, {}, 0, ""},
                                           wire::MakeTreeReply{TreeOutcome::unknown, {}, 0, "full"}}) {
    test::FakeAgent agent;
    agent.answer(reply);
    EXPECT_THROW(make_tree({agent, cancel}, folder, digest, ""), Error);
  }
  test::FakeAgent agent;
  agent.answer(wire::Refusal{"no"});
  EXPECT_THROW(make_tree({agent, cancel}, folder, digest, ""), servers::Refused);
  EXPECT_THROW(make_tree({agent, cancel}, folder, digest, std::string(wire::max_request_data + 1, 'x')),
               Error);
}

TEST(Trees, RefusesOddMessages) {
  const std::string odd_character = "has a character that is not allowed";
  using wire::Json;
  test::expect_refusals(wire::Reply(wire::MakeTreeReply{TreeOutcome::differs, {"a"}, 0, "why"}),
                        {{"/outcome", "odd", "'outcome' is an unknown name"},
                         {"/differing", Json(501, "x"), "'differing' has more than 500 entries"},
                         {"/differing/0", "\x1b[2J", "'differing[0]' " + odd_character},
                         {"/differing/0", std::string(501, 'x'), "'differing[0]' is longer than 500 bytes"},
                         {"/more", -1, "'more' is out of range"},
                         {"/reason", "a\nb", "'reason' " + odd_character},
                         {"/other", 1, "the message has an unknown field"}});
  test::expect_refusals(wire::Request(wire::MakeTreeRequest{{"~/p", ".jobs"}, digest}),
                        {{"/digest", std::string(65, 'a'), "'digest' is longer than 64 bytes"},
                         {"/digest", "../x", "'digest' " + odd_character},
                         {"/list", "", "the message has an unknown field"}});
  test::expect_needs_all_fields(wire::Request(wire::MakeTreeRequest{{"~/p", ".jobs"}, digest}));
  test::expect_needs_all_fields(wire::Reply(wire::MakeTreeReply{}));
}

}  // namespace
}  // namespace remote::jobs
