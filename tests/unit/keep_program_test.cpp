#include "jobs/keep_program.hpp"

#include <functional>

#include <gtest/gtest.h>
#include <remote/error.hpp>

#include "base/hashing.hpp"
#include "server/agent_command.hpp"
#include "server/archive.hpp"
#include "servers/agent.hpp"
#include "support/fake_agent.hpp"

namespace remote::jobs {
namespace {

const RemoteFolder folder{"~/p", ".jobs"};
const Cancel cancel;

TEST(KeepProgram, AsksOnceIfTheCopyExists) {
  test::FakeAgent agent;
  agent.answer(wire::KeepProgramReply{});
  keep_program({agent, cancel}, folder);
  ASSERT_EQ(agent.requests.size(), 1U);
  EXPECT_EQ(agent.requests[0]["place"]["jobs_folder"], ".jobs");
  EXPECT_EQ(agent.requests[0]["program"]["digest"], server_program().digest);
  EXPECT_EQ(agent.requests[0]["program"]["size"], server::archive_content_size());
  EXPECT_EQ(agent.received, "");
}

TEST(KeepProgram, TheDigestIsOfTheScriptsAndTheAgents) {
  EXPECT_EQ(server_program().digest,
            Sha256().add_field(server::archive_digest()).add_field(server::agent_version()).hex());
}

TEST(KeepProgram, SendsTheArchiveOnceIfTheCopyIsMissing) {
  test::FakeAgent agent;
  agent.answer(wire::KeepProgramReply{.is_missing = true});
  EXPECT_THROW(keep_program({agent, cancel}, folder), servers::Refused);
  EXPECT_EQ(agent.requests.size(), 2U);
  EXPECT_TRUE(agent.received == server::archive());
}

// Nothing has started yet, so an error counts as a refusal by the server.
TEST(KeepProgram, EveryErrorIsARefusal) {
  const auto fails = [](const std::function<void(test::FakeAgent&)>& prepare) {
    test::FakeAgent agent;
    prepare(agent);
    try {
      keep_program({agent, cancel}, folder);
    } catch (const servers::Refused& error) {
      return error.reason();
    }
    return std::string();
  };
  EXPECT_EQ(fails([](test::FakeAgent& agent) { agent.answer(wire::Refusal{"the disk is full"}); }),
            "the disk is full");
  EXPECT_NE(fails([](test::FakeAgent& agent) { agent.dies = true; }), "");
  EXPECT_NE(fails([](test::FakeAgent& agent) { agent.answer(nlohmann::json{{"kind", "odd"}}); }), "");
}

}  // namespace
}  // namespace remote::jobs
