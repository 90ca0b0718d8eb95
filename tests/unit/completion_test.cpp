#include "cli/completion/completion.hpp"

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remote::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using Words = std::vector<std::string>;

class CompletionTest : public testing::Test {
 protected:
  CompletionTest() {
    app.fallthrough();
    app.add_option("--project", text)->type_name("DIR");
    app.add_option("--color", text)->check(CLI::IsMember({"auto", "never"}));
    app.add_flag("-v,--verbose", flag, "Tell more");
    CLI::App* run = app.add_subcommand("run", "Run a command");
    completers[run->add_option("--server", texts)->allow_extra_args(false)] = NameKind::servers;
    run->add_option("--env", pairs)->type_name("NAME VALUE");
    run->add_option("--cmd", text);
    run->add_flag("-q", flag, "Short only");
    run->add_option("--internal", text)->group("");
    CLI::App* init = app.add_subcommand("init", "Begin");
    init->add_option("--server", texts)->type_name("NAME=ADDRESS")->allow_extra_args(false);
    init->add_option("--key", text)->type_name("FILE");
    CLI::App* sandbox = app.add_subcommand("sandbox", "Practice");
    sandbox->add_subcommand("up", "Start");
    sandbox->add_subcommand("down", "Stop");
    CLI::App* list = app.add_subcommand("job-list", "Jobs");
    completers[list->add_option("--tag", texts)] = NameKind::tags;
    completers[list->add_option("--job", texts)] = NameKind::jobs;
    completers[list->add_option("--launch", texts)] = NameKind::launches;
    CLI::App* completion = app.add_subcommand("completion", "Shell");
    completion->add_option("shell", text)->check(CLI::IsMember({"bash", "zsh"}));
    CLI::App* torch = app.add_subcommand("torch", "Launch");
    completers[torch->add_option("launch", text)] = NameKind::defined;
    completers[app.add_subcommand("help", "Help")->add_option("command", texts)] = NameKind::help;
    CLI::App* start = app.add_subcommand("start", "Start");
    completers[start->add_option("launch", text)] = NameKind::defined;
    start->add_option("--nproc", text);
    with_command = {run, start};
    app.add_subcommand("__secret", "")->group("");
  }

  Completion all(const Words& words) {
    return complete(
        app, words, completers,
        [](NameKind kind) -> std::vector<Completion::Word> {
          switch (kind) {
            case NameKind::servers:
              return {{"gpu-1", "10.0.0.1"}, {"gpu-2", ""}, {"cpu", ""}};
            case NameKind::jobs:
              return {{"1", ""}, {"12", ""}, {"13", "", true}};
            case NameKind::launches:
              return {{"1", ""}, {"last", ""}};
            case NameKind::past:
              return {{"3", ""}, {"nightly", ""}, {"last", ""}};
            case NameKind::tags:
              return {{"master", ""}};
            case NameKind::defined:
              return {{"small", ""}, {"full", "train.py"}};
            case NameKind::help:
              return {{"run", ""}, {"debugging", ""}};
            case NameKind::signals:
              break;
          }
          return {};
        },
        with_command);
  }
  Words words_for(const Words& words) {
    Words found;
    for (const auto& word : all(words).words) {
      found.push_back(word.text);
    }
    return found;
  }

  CLI::App app{"Test", "remote"};
  std::map<const CLI::Option*, NameKind> completers;
  std::set<const CLI::App*> with_command;
  std::string text;
  std::vector<std::string> texts;
  std::vector<std::pair<std::string, std::string>> pairs;
  bool flag = false;
};

TEST_F(CompletionTest, Subcommands) {
  EXPECT_THAT(words_for({""}),
              ElementsAre("run", "init", "sandbox", "job-list", "completion", "torch", "help", "start"));
  EXPECT_THAT(words_for({"in"}), ElementsAre("init"));
  EXPECT_THAT(words_for({"-v", "--color", "auto", "r"}), ElementsAre("run"));
  EXPECT_THAT(words_for({"sandbox", ""}), ElementsAre("up", "down"));
  EXPECT_THAT(words_for({"help", ""}), ElementsAre("run", "debugging"));
  EXPECT_THAT(words_for({"help", "d"}), ElementsAre("debugging"));
  EXPECT_THAT(words_for({"__"}), IsEmpty());
  EXPECT_EQ(all({"in"}).words.at(0).description, "Begin");
}

TEST_F(CompletionTest, OptionsOfTheCommandAndTheGlobalOnes) {
  EXPECT_THAT(words_for({"run", "--"}),
              ElementsAre("--help", "--server", "--env", "--cmd", "--project", "--color", "--verbose"));
  EXPECT_THAT(words_for({"run", "-"}), Contains("-q"));
  EXPECT_THAT(words_for({"run", ""}), Contains("--server")) << "nothing else can follow";
  EXPECT_THAT(words_for({"run", "--int"}), IsEmpty());
  EXPECT_THAT(words_for({"run", "--", "--"}), IsEmpty());
}

TEST_F(CompletionTest, Values) {
  EXPECT_THAT(words_for({"run", "--server", "g"}), ElementsAre("gpu-1", "gpu-2"));
  EXPECT_EQ(all({"run", "--server", "g"}).words.at(0).description, "10.0.0.1");
  EXPECT_THAT(words_for({"run", "--server=g"}), ElementsAre("--server=gpu-1", "--server=gpu-2"));
  EXPECT_THAT(words_for({"run", "--server", "gpu-1", "--server", "c"}), ElementsAre("cpu"));
  EXPECT_THAT(words_for({"run", "--server", "gpu-1", "--s"}), ElementsAre("--server"));
  EXPECT_THAT(words_for({"job-list", "--job", ""}), ElementsAre("1", "12"));
  EXPECT_THAT(words_for({"job-list", "--tag", ""}), ElementsAre("master"));
  EXPECT_THAT(words_for({"job-list", "--launch", "l"}), ElementsAre("last"));
  EXPECT_THAT(words_for({"--color", ""}), ElementsAre("auto", "never"));
  EXPECT_THAT(words_for({"run", "--color=n"}), ElementsAre("--color=never"));
  EXPECT_THAT(words_for({"completion", "z"}), ElementsAre("zsh"));
  EXPECT_THAT(words_for({"init", "--server", ""}), IsEmpty()) << "a new server has a new name";
  EXPECT_THAT(words_for({"run", "--cmd", ""}), IsEmpty());
}

TEST_F(CompletionTest, NamesBehindACommand) {
  EXPECT_THAT(words_for({"torch", ""}), ElementsAre("small", "full"));
  EXPECT_THAT(words_for({"torch", "-v", "f"}), ElementsAre("full"));
  EXPECT_THAT(words_for({"torch", "full", ""}), Contains("--verbose")) << "there is one name";
  EXPECT_THAT(words_for({"torch", "x"}), IsEmpty());
}

TEST_F(CompletionTest, AnOptionTakesAsManyWordsAsItHasValues) {
  EXPECT_THAT(words_for({"run", "--env", "A", "--"}), IsEmpty()) << "the second value of --env";
  EXPECT_THAT(words_for({"run", "--env", "A", "B", "--se"}), ElementsAre("--server"));
  EXPECT_THAT(words_for({"run", "--cmd", "init", "--k"}), IsEmpty()) << "a value is no subcommand";
  EXPECT_THAT(words_for({"--project", "run", "i"}), ElementsAre("init"));
}

TEST_F(CompletionTest, FilesAndFolders) {
  EXPECT_EQ(all({"init", "--key", ""}).kind, Completion::Kind::files);
  EXPECT_EQ(all({"--project", "x"}).kind, Completion::Kind::folders);
  EXPECT_EQ(all({"run", "--server", ""}).kind, Completion::Kind::words);
}

TEST_F(CompletionTest, TheCommandAndItsWordsAreFiles) {
  const auto files = [&](const Words& words) { return all(words).kind == Completion::Kind::files; };
  EXPECT_TRUE(files({"run", "--", ""}));
  EXPECT_TRUE(files({"run", "--", "python", "tr"}));
  EXPECT_TRUE(files({"run", "--server", "cpu", "--", "python", "--lr"}));
  EXPECT_TRUE(files({"run", "pyth"}));
  EXPECT_TRUE(files({"run", "python", "--s"})) << "its options are not ours";
  EXPECT_TRUE(files({"start", "--", "sm"}));
  EXPECT_TRUE(files({"start", "train.py", "da"}));
  EXPECT_THAT(words_for({"start", "sm"}), ElementsAre("small"));
  EXPECT_THAT(words_for({"start", "small", "--n"}), ElementsAre("--nproc"));
  EXPECT_TRUE(files({"start", "small", "--nproc", "2", "--", "tr"}));
  EXPECT_FALSE(files({"run", "--s"}));
  EXPECT_FALSE(files({"init", "x"}));
}

TEST_F(CompletionTest, RanksAreOfferedWhenTheirKeyIsBegun) {
  EXPECT_THAT(words_for({"job-list", "--job", ""}), ElementsAre("1", "12"));
  EXPECT_THAT(words_for({"job-list", "--job", "1"}), ElementsAre("1", "12", "13"));
}

TEST_F(CompletionTest, OddLinesDoNoHarm) {
  EXPECT_THAT(words_for({}), Not(IsEmpty()));
  EXPECT_THAT(words_for({"--nonsense", "--also=x", "run", "--server"}), ElementsAre("--server"));
  EXPECT_THAT(words_for({"run", "--verbose=x", "--nonsense=", "-"}), Not(IsEmpty()));
  EXPECT_THAT(words_for({"run", "--verbose="}), IsEmpty());
  EXPECT_THAT(words_for({"=", "-", "--", ""}), IsEmpty());
}

TEST(ProjectOnLine, IsTheShellsWordUnquoted) {
  EXPECT_EQ(project_on_line({"--project", "a\\ b", "run", ""}), "a b");
  EXPECT_EQ(project_on_line({"run", "--project='a b'", ""}), "a b");
  EXPECT_EQ(project_on_line({"run", "--project", "half"}), "") << "it is being typed";
  EXPECT_EQ(project_on_line({"run", ""}), "");
}

}  // namespace
}  // namespace remote::cli
