// Actions run by a local sh, as a server would.

#include "servers/action.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/local_connection.hpp"
#include "support/words_answer.hpp"

namespace remote::servers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// How an action fails.
std::string failure_of(ssh::Connection& connection, const Action<Words>& action) {
  try {
    run_action(connection, action, Cancel());
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(RunAction, RunsTheScriptAndReadsItsAnswer) {
  test::LocalServers servers;
  const auto connection = servers.connect("one");
  Action<Words> action;
  action.script.set("what", "a'b").append("say() { echo \"@remote1 word $1\"; }\n");
  action.script.call("say", {"$what"}).append("say \"$what\"\necho @remote1 end\n");
  EXPECT_THAT(run_action(*connection, action, Cancel()).words, ElementsAre("$what", "a'b"));

  std::string log;
  Action<Printed> printing;
  printing.guarded = true;
  printing.log = [&log](ssh::Stream stream, std::string_view data) {
    log += stream == ssh::Stream::err ? data : "";
  };
  printing.script.append("echo @remote1 word a; echo other; echo trouble >&2; exit 3\n");
  const Printed printed = run_action(*connection, printing, Cancel());
  EXPECT_THAT(printed.words, ElementsAre("a"));
  EXPECT_THAT(printed.others, ElementsAre("other"));
  EXPECT_EQ(printed.ended.status.code(), 3);
  EXPECT_EQ(printed.ended.err, "trouble\n");
  EXPECT_EQ(log, "trouble\n");
}

TEST(RunAction, SaysHowAScriptWithoutAnAnswerEnded) {
  test::LocalServers servers;
  const auto connection = servers.connect("one");
  Action<Words> action;
  action.script.append("echo @remote1 word a; echo 'no space left' >&2; exit 3\n");
  EXPECT_THAT(failure_of(*connection, action),
              testing::AllOf(HasSubstr("cut short"), HasSubstr("ended with exit 3: no space left")));
}

// What is not understood does not end a script that is changing something.
TEST(RunAction, LetsTheScriptComeToItsEnd) {
  test::LocalServers servers;
  const auto connection = servers.connect("one");
  Action<Words> action;
  action.script.append("echo @remote1 odd; sleep 0.2; echo more; : >done; echo @remote1 end\n");
  EXPECT_THAT(failure_of(*connection, action), HasSubstr("an unknown word"));
  EXPECT_TRUE(std::filesystem::exists(servers.home("one") / "done"));
}

}  // namespace
}  // namespace remote::servers
