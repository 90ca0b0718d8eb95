#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/command_world.hpp"
#include "support/waiting.hpp"

namespace remote::test {
namespace {

using ::testing::HasSubstr;

TEST(Commands, HelpAndVersionGoToStdout) {
  CommandWorld world;
  const CommandResult version = world.run({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.out, "remote " REMOTE_VERSION "\n");
  EXPECT_EQ(version.err, "");
  const CommandResult help = world.run({"job-list", "--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out, HasSubstr("job-list [OPTIONS]"));
  EXPECT_EQ(help.err, "");
}

TEST(Commands, WrongUsageIsExitCodeTwo) {
  CommandWorld world;
  const CommandResult wrong = world.run({"job-lits"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_EQ(wrong.out, "");
  EXPECT_THAT(wrong.err, HasSubstr("job-list"));
}

TEST(Commands, RunPrintsEachServersLinesAndEndsAsTheCommand) {
  CommandWorld world;
  const CommandResult result =
      world.run({"run", "--server", "a", "--cmd", "echo here; echo there >&2; exit 3"});
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(result.out, "here\n");
  EXPECT_EQ(result.err, "there\n");
}

TEST(Commands, AnInterruptIsExitCode130) {
  CommandWorld world;
  const auto running = world.start({"run", "--cmd", "echo up; sleep 1000"});
  until([&] { return running->out().find("up") != std::string::npos; }, "the command's first words");
  running->interrupt();
  EXPECT_EQ(running->wait().code, 130);
}

}  // namespace
}  // namespace remote::test
