// The parts of `remote sandbox` that need no sshd, and `remote completion`.

#include "support/command_world.hpp"

namespace remote::test {
namespace {

TEST(CommandSandbox, StatusOfNone) {
  CommandWorld world;
  EXPECT_THAT(world.run({"sandbox", "status"}),
              Ends(0, "", "no sandbox here; `remote sandbox up` makes one\n"));
  EXPECT_THAT(world.run({"sandbox", "status", "--json"}), Ends(0, "[]\n", ""));
  EXPECT_FALSE(fs::exists(world.project() / ".remote/sandbox"));
}

TEST(CommandSandbox, DownOfNoneEndsNoneAndKeepsTheConfiguration) {
  CommandWorld world;
  EXPECT_THAT(world.run({"sandbox", "down"}), Ends(0, "", "0 practice servers ended\n"));
  EXPECT_EQ(world.run({"sandbox", "down", "--purge"}).code, 0);
  EXPECT_TRUE(fs::exists(world.project() / ".remote/configs.yaml"));
  EXPECT_FALSE(fs::exists(world.project() / ".remote/sandbox"));
}

TEST(CommandSandbox, WrongOptionsAreRefusedAndNothingIsMade) {
  CommandWorld world;
  EXPECT_THAT(world.run({"sandbox", "up", "--nodes", "0"}), Refused("remote sandbox up: --nodes"));
  EXPECT_THAT(world.run({"sandbox", "up", "--nodes", "two"}), Refused("remote sandbox up: --nodes"));
  EXPECT_THAT(world.run({"sandbox", "up", "--max-sessions", "-1"}), Refused("--max-sessions"));
  EXPECT_THAT(world.run({"sandbox", "up", "--purge"}), Refused("remote sandbox up has no option --purge"));
  EXPECT_THAT(world.run({"sandbox", "sideways"}), Refused("remote sandbox has no command 'sideways'"));
  EXPECT_FALSE(fs::exists(world.project() / ".remote/sandbox"));
}

TEST(CommandSandbox, AFolderThatIsNotThereIsRefused) {
  CommandWorld world;
  fs::remove_all(world.project());
  EXPECT_THAT(world.run({"sandbox", "status"}), Refused("there is no such folder"));
}

TEST(CommandCompletion, PrintsTheScriptOfEachShell) {
  CommandWorld world;
  EXPECT_THAT(world.run({"completion", "bash"}),
              Ends(0, HasSubstr("complete -F _remote_complete remote"), ""));
  EXPECT_THAT(world.run({"completion", "zsh"}), Ends(0, StartsWith("#compdef remote"), ""));
  EXPECT_THAT(world.run({"completion", "fish"}), Ends(0, HasSubstr("complete -c remote"), ""));
  EXPECT_THAT(world.run({"completion"}), Refused("remote completion: shell is required"));
  EXPECT_THAT(world.run({"completion", "csh"}), Refused("csh"));
}

class CommandComplete : public ::testing::Test {
 protected:
  std::vector<std::string> complete(std::vector<std::string> words) {
    words.insert(words.begin(), {"__complete", "line"});
    const CommandResult result = world.run(words);
    EXPECT_EQ(result.code, 0);
    EXPECT_EQ(result.err, "");
    return result.lines();
  }
  // The completions without their descriptions.
  std::vector<std::string> words(std::vector<std::string> line) {
    std::vector<std::string> found = complete(std::move(line));
    EXPECT_EQ(found.front(), ":words");
    found.erase(found.begin());
    for (std::string& word : found) {
      word = word.substr(0, word.find('\t'));
    }
    return found;
  }
  CommandWorld world;
};

TEST_F(CommandComplete, CommandsAndTheirOptions) {
  EXPECT_EQ(words({"job-r"}), (std::vector<std::string>{"job-run", "job-rsync"}));
  EXPECT_THAT(words({"job-kill", "--"}),
              AllOf(Contains("--grace"), Contains("--json"), Not(Contains("--lines"))));
  EXPECT_EQ(words({"launch", "--on-failure", ""}), (std::vector<std::string>{"kill", "leave"}));
  EXPECT_THAT(words({"__com"}), ::testing::IsEmpty());
}

TEST_F(CommandComplete, NamesOfServersJobsTagsAndSignals) {
  world.job("a", "sleep 1000", {"--tag", "mine"});
  const int asked = world.servers().commands();
  EXPECT_EQ(words({"run", "--server", ""}), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(complete({"job-tail", "--job", ""}),
            (std::vector<std::string>{":words", "1\trunning on a: sleep 1000"}));
  EXPECT_EQ(words({"job-list", "--tag", "m"}), (std::vector<std::string>{"mine"}));
  EXPECT_THAT(words({"job-kill", "--signal", "US"}), ::testing::ElementsAre("USR1", "USR2"));
  EXPECT_EQ(world.servers().commands(), asked);
}

TEST_F(CommandComplete, FilesAndFolders) {
  EXPECT_EQ(complete({"init", "--key", ""}), (std::vector<std::string>{":files"}));
  EXPECT_EQ(complete({"job-pull", "--to", ""}), (std::vector<std::string>{":folders"}));
}

TEST_F(CommandComplete, ABrokenConfigurationIsNoWordAtThePrompt) {
  world.configure("servers: [\n");
  EXPECT_THAT(words({"run", "--server", ""}), ::testing::IsEmpty());
  EXPECT_THAT(world.run({"__complete", "servers"}), Ends(0, "", ""));
}

}  // namespace
}  // namespace remote::test
