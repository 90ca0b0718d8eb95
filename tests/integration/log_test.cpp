// The output of -v and -vv, and that it contains no secrets. unit/log_test.cpp tests the log itself.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.hpp"
#include "support/command_world.hpp"

namespace remote::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(LogOfCommands, VerboseTellsWhatIsDoneWhere) {
  CommandWorld world;
  const std::vector<std::string> command{"run", "--cmd", "true"};
  EXPECT_THAT(world.run(command).err, Not(HasSubstr("side by side")));
  const std::string brief = world.run({"run", "--cmd", "true", "-v"}).err;
  EXPECT_THAT(brief, AllOf(HasSubstr("2 servers side by side"), HasSubstr(" a: command: begins"),
                           HasSubstr(" b: command: exit 0 after"), HasSubstr("the last of them")));
  EXPECT_THAT(brief, Not(HasSubstr("started ")));
  // The shells of the simulated servers are local commands.
  EXPECT_THAT(world.run({"run", "--cmd", "true", "-vv"}).err, HasSubstr("started "));
  EXPECT_THAT(world.run(command).err, Not(HasSubstr("side by side"))) << "the log ends with its command";
}

TEST(LogOfCommands, NoSecretIsInIt) {
  CommandWorld world;
  world.configure(
      "name: proj\n"
      "python: {manager: system, index_url: 'http://me:SECRET1@127.0.0.1:1/simple'}\n"
      "servers:\n"
      "  a: {hostname: a, password: SECRET2}\n"
      "  b: {hostname: b, password_command: echo SECRET3}\n");
  write_file_atomic(world.project() / "requirements.txt", "# nothing\n");
  ASSERT_EQ(world.run({"trust", "--yes"}).code, 0);
  const std::vector<std::vector<std::string>> commands{
      {"setup"},
      {"update-packages"},
      {"run", "-e", "API_TOKEN=SECRET4", "--cmd", "echo $API_TOKEN >/dev/null; : SECRET5"},
      {"job-run", "--server", "a", "--env", "PASSWORD", "SECRET6", "--cmd", "true"},
      {"launch", "-e", "WANDB_API_KEY=SECRET7", "--cmd", "true", "--follow"},
      {"job-list"},
  };
  for (std::vector<std::string> command : commands) {
    command.emplace_back("-vv");
    const CommandResult result = world.run(command);
    EXPECT_THAT(result.err, AllOf(HasSubstr("begins, "), Not(HasSubstr("SECRET")))) << command.front();
  }
}

}  // namespace
}  // namespace remote::test
