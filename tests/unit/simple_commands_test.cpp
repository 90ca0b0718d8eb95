// Which programs a shell line runs, and with which variables.

#include "base/simple_commands.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/command.hpp"

namespace remote {
namespace {

using ::testing::ElementsAre;

// "A=1 B=2"
std::string set_variables(std::string_view line) {
  std::string text;
  for (const auto& [name, value] : find_set_variables(line)) {
    text += (text.empty() ? "" : " ") + name + "=" + value;
  }
  return text;
}

TEST(SimpleCommands, OperatorsEndThem) {
  EXPECT_THAT(simple_commands("a 1 && b|c;d # e\nf >g 2>&1"),
              ElementsAre("a 1 ", "", " b", "c", "d ", "f  "));
}

TEST(SimpleCommands, AProgramMayStartAnother) {
  const auto program = [](std::string_view line) {
    const std::vector<std::string> words = shell_words(line);
    const std::size_t at = skip_starter(words, 0);
    return at < words.size() ? words[at] : "";
  };
  EXPECT_EQ(program("nice -n 5 train.py"), "train.py");
  EXPECT_EQ(program("/usr/bin/env -u A B=1 x"), "B=1");
  EXPECT_EQ(program("conda run -n x python"), "python");
  EXPECT_EQ(program("python x"), "python");
  EXPECT_EQ(program("env"), "");
}

TEST(SimpleCommands, NoWordStartsNothing) {
  EXPECT_EQ(skip_starter({}, 0), 0U);
  EXPECT_EQ(skip_starter({"command", "-v", "train.py"}, 0), 0U) << "it only asks for the program";
}

TEST(SimpleCommands, VariablesOfTheProgramAreFound) {
  const std::pair<const char*, const char*> lines[] = {{"A=0 python3 train.py", "A=0"},
                                                       {"A=0 B='1 2' train.py", "A=0 B=1 2"},
                                                       {"A= train.py", "A="},
                                                       {"export A=0; python train.py", "A=0"},
                                                       {"export A=0 B=1 && python train.py", "A=0 B=1"},
                                                       {"A=0; python train.py", "A=0"},
                                                       {"env A=0 python train.py", "A=0"},
                                                       {"nice -n 5 env -u B A=0 python train.py", "A=0"},
                                                       {"cd sub && A=0 ./solve", "A=0"},
                                                       {"bash -c 'A=0 python train.py'", "A=0"},
                                                       {"A=1 bash -c 'python train.py'", "A=1"},
                                                       {"export A=0; A=1 python train.py", "A=1"},
                                                       {"A=0 python train.py | tee log", "A=0"},
                                                       {"if true; then A=0 python train.py; fi", "A=0"},
                                                       {"A= python prepare.py && python train.py", ""},
                                                       {"A=$LOCAL_RANK python train.py", ""},
                                                       {"python train.py A=0", ""},
                                                       {"echo A=0", ""},
                                                       {"python train.py; export A=0", ""},
                                                       {"", ""}};
  for (const auto& [line, variables] : lines) {
    EXPECT_EQ(set_variables(line), variables) << line;
  }
  EXPECT_THAT(with_set_variables({{"A", "1"}}, "A=0 x"),
              ElementsAre(std::pair("A", "1"), std::pair("A", "0")));
}

TEST(SimpleCommands, ALineMayEndBeforeItsProgram) {
  for (const char* line :
       {"sleep 9 &", "nohup python train.py > log 2>&1 &\n", "(sleep 9 &)", "a & echo $!", "a & disown",
        "cd sub && setsid -f python train.py", "tmux new -d 'python train.py'",
        "tmux new-session -s x -d train", "screen -dmS x python train.py"}) {
    EXPECT_TRUE(goes_into_background(line)) << line;
  }
  for (const char* line : {"a && b", "a & wait", "a & b", "a 2>&1", "a &> log", "a |& tee log", "echo '&'",
                           "tmux ls", "setsid python train.py", "", "echo tmux new -d", "echo \\&"}) {
    EXPECT_FALSE(goes_into_background(line)) << line;
  }
}

}  // namespace
}  // namespace remote
