// The processing of the command line before CLI11 reads it.

#include "cli/words.hpp"

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remote::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

class Words : public ::testing::Test {
 protected:
  Words() {
    app.add_option("--project", text);
    app.add_flag("-v,--verbose", count);
    CLI::App* run = app.add_subcommand("run", "");
    run->add_option("--cmd", text);
    run->add_option("--nproc-per-node", text);
    run->add_option("--env", pairs);
    run->add_option("-e", list);
    run->add_flag("-q", count);
    app.add_subcommand("list", "")->add_option("--job-key", text);
    with_command.insert(run);
  }
  CommandLine read(const std::vector<std::string>& words) const {
    return read_command_line(app, with_command, words);
  }
  // The arguments for CLI11, if there is no command.
  std::vector<std::string> plain(const std::vector<std::string>& words) const {
    const CommandLine line = read(words);
    EXPECT_FALSE(line.command);
    return line.words;
  }

  CLI::App app;
  std::set<const CLI::App*> with_command;
  std::string text;
  int count = 0;
  std::vector<std::string> list;
  std::vector<std::pair<std::string, std::string>> pairs;
};

TEST_F(Words, ACommandBeginsWithTheFirstWordThatBelongsToNoOption) {
  const CommandLine line = read({"--project", "run", "run", "-v", "-e", "A=b", "hostname", "-f", "--cmd"});
  EXPECT_THAT(line.words, ElementsAre("--project", "run", "run", "-v", "-e", "A=b"));
  ASSERT_TRUE(line.command);
  EXPECT_THAT(line.command->words, ElementsAre("hostname", "-f", "--cmd"));
  EXPECT_FALSE(line.command->marked);
  // The name of another subcommand is an ordinary argument here.
  EXPECT_THAT(read({"run", "list"}).command->words, ElementsAre("list"));
}

TEST_F(Words, ALineWithoutQuotesIsPutIntoThem) {
  const CLI::App& run = *app.get_subcommand("run");
  const auto expect = [&](const std::vector<std::string>& words, const std::string& line) {
    EXPECT_EQ(quotes_hint(run, words), line.empty() ? "" : "put the whole line in quotes: `" + line + "`");
  };
  expect({"run", "--cmd", "df", "-h"}, "remote run --cmd 'df -h'");
  expect({"run", "--cmd=df", "-h"}, "remote run --cmd 'df -h'");
  expect({"run", "-q", "--cmd", "python", "a.py", "--lr", "1", "--nproc_per_node", "2"},
         "remote run -q --nproc_per_node 2 --cmd 'python a.py --lr 1'");
  expect({"run", "--cmd", "--", "ls", "-l"}, "remote run --cmd 'ls -l'");
  expect({"run", "--cmd", "ls", "--", "-l"}, "remote run --cmd 'ls -l'");
  expect({"run", "--cmd", "python3", "--version"}, "remote run --cmd 'python3 --version'");
  expect({"run", "--cmd", "python a.py", "-q", "--lr", "1"}, "remote run -q --cmd 'python a.py --lr 1'");
  expect({"run", "--cmd", "df -h", "-q"}, "");
  expect({"run", "--cmd", "df"}, "");
  expect({"run", "--", "df", "-h"}, "");
  expect({"run", "--", "df", "--cmd", "x", "-h"}, "");
}

TEST_F(Words, AnOptionOfThisProgramBehindTheFirstWordOfALineIsTheLines) {
  CLI::App& run = *app.get_subcommand("run");
  const auto takes = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"run", "--cmd"});
    return !find_own_option(run, words).empty();
  };
  for (const auto& words : std::vector<std::vector<std::string>>{{"df", "-h"},
                                                                 {"ls", "-lh"},
                                                                 {"ls", "--help"},
                                                                 {"python3", "--version"},
                                                                 {"du", "-s", "-h", "."}}) {
    EXPECT_TRUE(takes(words)) << words[0] << ' ' << words[1];
  }
  for (const char* option : {"-v", "-vv", "--json", "--quiet"}) {
    EXPECT_FALSE(takes({"true", option})) << "often added at the end";
  }
  EXPECT_FALSE(takes({"df -h", "--help"})) << "it has its quotes";
  EXPECT_FALSE(takes({"train.py", "--nproc-per-node", "2", "--json"})) << "behind an option of the command";
  EXPECT_FALSE(takes({"ls", "x", "--help"})) << "the command begins with x, which is an error of its own";
  EXPECT_EQ(find_own_option(run, {"run", "-v", "--cmd", "ls"}), "");
  EXPECT_EQ(find_own_option(run, {"run", "--", "df", "--cmd", "x", "-h"}), "");
}

TEST_F(Words, TheFirstWordMayBeAName) {
  std::string name;
  CLI::App* launch = app.add_subcommand("launch", "");
  launch->add_option("--cmd", text);
  launch->add_option("launch", name);
  with_command.insert(launch);
  const auto named = [&](const std::vector<std::string>& words) {
    return read_command_line(app, with_command, words,
                             [](const std::string& word) { return word == "full"; });
  };
  const CommandLine line = named({"launch", "-v", "full", "--cmd", "x", "--", "full"});
  EXPECT_THAT(line.words, ElementsAre("launch", "-v", "full", "--cmd", "x"));
  EXPECT_THAT(line.command->words, ElementsAre("full"));
  EXPECT_FALSE(named({"launch", "full"}).command);
  EXPECT_THAT(named({"launch", "full", "-v", "full", "-v"}).command->words, ElementsAre("full", "-v"));
  EXPECT_THAT(named({"launch", "--", "full"}).command->words, ElementsAre("full"));
  EXPECT_THAT(named({"launch", "other", "--cmd"}).command->words, ElementsAre("other", "--cmd"));
  EXPECT_THAT(named({"run", "full"}).command->words, ElementsAre("full")) << "it takes no name";
}

TEST_F(Words, BehindTwoDashesAllIsTheCommand) {
  const CommandLine line = read({"run", "--cmd=x", "--", "--verbose", "--", ""});
  EXPECT_THAT(line.words, ElementsAre("run", "--cmd=x"));
  EXPECT_THAT(line.command->words, ElementsAre("--verbose", "--", ""));
  EXPECT_TRUE(line.command->marked);
  EXPECT_THAT(read({"run", "--"}).command->words, ElementsAre());
}

TEST_F(Words, OtherCommandsAreLeftAsTheyAre) {
  const std::vector<std::string> words = {"list", "a", "-v", "--", "b", "--env", "A=b"};
  EXPECT_THAT(plain(words), ElementsAreArray(words));
}

TEST_F(Words, ValuesAreNeverTakenForACommand) {
  EXPECT_THAT(plain({"run", "--cmd", "--", "-vq"}), ElementsAre("run", "--cmd", "--", "-vq"));
  EXPECT_THAT(plain({"run", "-eA=b", "-qe", "C=d"}), ElementsAre("run", "-eA=b", "-qe", "C=d"));
  EXPECT_THAT(plain({"run", "--cmd"}), ElementsAre("run", "--cmd"));
}

TEST_F(Words, UnderscoresBecomeDashesWhereThatIsAnOption) {
  EXPECT_THAT(plain({"run", "--nproc_per_node", "a_b", "--nproc_per_node=2"}),
              ElementsAre("run", "--nproc-per-node", "a_b", "--nproc-per-node=2"));
  EXPECT_THAT(plain({"list", "--job_key", "1"}), ElementsAre("list", "--job-key", "1"));
  EXPECT_THAT(plain({"run", "--no_such=1"}), ElementsAre("run", "--no_such=1"));
}

TEST_F(Words, AVariableStandsInOneWordOrInTwo) {
  EXPECT_THAT(plain({"run", "--env", "A=b", "--cmd", "c"}), ElementsAre("run", "-e", "A=b", "--cmd", "c"));
  EXPECT_THAT(plain({"run", "--env", "A", "b=c", "--env=D=e", "--env=F", "--cmd"}),
              ElementsAre("run", "-e", "A=b=c", "-e", "D=e", "-e", "F=--cmd"));
  EXPECT_THAT(plain({"run", "--env", "A="}), ElementsAre("run", "-e", "A="));
  EXPECT_THAT(plain({"run", "--env", "A"}), ElementsAre("run", "--env", "A"));  // CLI11 reports the error
  EXPECT_THAT(plain({"run", "--env"}), ElementsAre("run", "--env"));
}

}  // namespace
}  // namespace remote::cli
