#include "jobs/uninstall.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <remote/error.hpp>

#include "support/fake_agent.hpp"
#include "support/wire_refusals.hpp"

namespace remote::jobs {
namespace {

using Reason = UninstallResult::Leftover::Reason;

const std::string id = "0123456789abcdef0123456789abcdef";

TEST(UninstallAnswer, IsConverted) {
  using enum wire::LeftReason;
  const std::vector<std::pair<wire::LeftReason, Reason>> reasons{
      {failed, Reason::failed},   {link, Reason::link},     {foreign, Reason::foreign},
      {unknown, Reason::unknown}, {recent, Reason::recent}, {unfinished, Reason::unfinished},
      {unmoved, Reason::unmoved}, {lease, Reason::lease},   {results, Reason::results}};
  test::FakeAgent agent;
  wire::UninstallReply reply{.running = {{id, 7, "/p"}, {}}, .removed = {"/a b"}};
  for (const auto& [reason, expected] : reasons) {
    reply.left.push_back({reason, "/x"});
  }
  agent.answer(reply);
  const UninstallAnswer answer =
      uninstall(agent, {.folder = {"~/p", ".jobs"}, .agent_folder = "~/agents", .dry_run = true}, Cancel());
  ASSERT_EQ(answer.running.size(), 2U);
  EXPECT_EQ(answer.running[0].id.value().text(), id);
  EXPECT_EQ(answer.running[0].pid, 7);
  EXPECT_EQ(answer.running[0].project, "/p");
  EXPECT_FALSE(answer.running[1].id);
  EXPECT_THAT(answer.removed, ::testing::ElementsAre("/a b"));
  ASSERT_EQ(answer.left.size(), reasons.size());
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    EXPECT_EQ(answer.left[i].reason, reasons[i].second);
  }
  ASSERT_EQ(agent.requests.size(), 1U);
  EXPECT_EQ(agent.requests[0]["agent_folder"], "~/agents");
  EXPECT_EQ(agent.requests[0]["dry_run"], true);
  EXPECT_EQ(agent.requests[0]["shared"].size(), shared_folders().size());
}

TEST(UninstallAnswer, IsReadStrictly) {
  const std::string odd_character = "has a character that is not allowed";
  const wire::UninstallReply reply{{{id, 7, "/p"}}, {"/a"}, {{wire::LeftReason::link, "/b"}}};
  test::expect_refusals(wire::Reply(reply),
                        {{"/running/0/pid", 0, "'running[0].pid' is out of range"},
                         {"/removed/0", "/\x1b[2J", "'removed[0]' " + odd_character},
                         {"/left/0/reason", "gone", "'left[0].reason' is an unknown name"},
                         {"/left/0/path", "a\nb", "'left[0].path' " + odd_character},
                         {"/other", 1, "the message has an unknown field"}});
  test::expect_needs_all_fields(wire::Reply(wire::UninstallReply{}));
  test::expect_needs_all_fields(wire::Request(wire::UninstallRequest{{"~/p", ".jobs"}}));
}

}  // namespace
}  // namespace remote::jobs
