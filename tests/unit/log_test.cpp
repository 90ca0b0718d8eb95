#include "base/log.hpp"

#include <stdexcept>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/command_world.hpp"

namespace remote {

// A value that counts how often it is made text.
struct Counting {
  int* count;
};

}  // namespace remote

template <>
struct fmt::formatter<remote::Counting> : fmt::formatter<int> {
  template <typename Context>
  auto format(const remote::Counting& value, Context& context) const {
    return fmt::formatter<int>::format(++*value.count, context);
  }
};

namespace remote {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Log : public testing::Test {
 protected:
  ~Log() override { set_log(LogLevel::off, nullptr); }

  void collect(LogLevel upto) {
    set_log(upto, [this](LogLevel level, std::string_view server, std::string_view text) {
      lines_.push_back(fmt::format("{} {} {}", level == LogLevel::info ? "info" : "debug", server, text));
    });
  }

  std::vector<std::string> lines_;
};

TEST_F(Log, LinesUpToTheLevelGoToTheSink) {
  log_info("node-1", "before {}", 1);
  collect(LogLevel::info);
  log_info("node-1", "info {}", 2);
  log_debug("", "debug {}", 3);
  collect(LogLevel::debug);
  log_debug("", "debug {}", 4);
  set_log(LogLevel::off, nullptr);
  log_info("", "after");
  EXPECT_THAT(lines_, ElementsAre("info node-1 info 2", "debug  debug 4"));
}

TEST_F(Log, NothingIsFormattedThatNobodyTakes) {
  int count = 0;
  log_info("", "{}", Counting{&count});
  collect(LogLevel::info);
  log_debug("", "{}", Counting{&count});
  EXPECT_EQ(count, 0);
  log_info("", "{}", Counting{&count});
  EXPECT_EQ(count, 1);
}

TEST_F(Log, ALineMayQuoteAnything) {
  collect(LogLevel::info);
  log_info("", "{}", "a\nb\x1b[2J");
  EXPECT_THAT(lines_, ElementsAre("info  a\\nb\\x1b[2J"));
}

TEST_F(Log, ASinkThatThrowsEndsNothing) {
  set_log(LogLevel::info,
          [](LogLevel, std::string_view, std::string_view) { throw std::runtime_error("full"); });
  EXPECT_NO_THROW(log_info("", "line"));
}

TEST_F(Log, TheSinkIsCalledOnceAtATime) {
  collect(LogLevel::info);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([] {
      for (int line = 0; line < 500; ++line) {
        log_info("", "{}", line);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(lines_.size(), 8U * 500U);
}

TEST_F(Log, VerboseTellsWhatIsDoneWhere) {
  test::CommandWorld world;
  const std::vector<std::string> command{"run", "--cmd", "true"};
  EXPECT_THAT(world.run(command).err, Not(HasSubstr("side by side")));
  const std::string brief = world.run({"run", "--cmd", "true", "-v"}).err;
  EXPECT_THAT(brief, AllOf(HasSubstr("2 servers side by side"), HasSubstr(" a: command: begins"),
                           HasSubstr(" b: command: exit 0 after"), HasSubstr("the last of them")));
  EXPECT_THAT(brief, Not(HasSubstr("started ")));
  // The pretended servers' shells are local commands.
  EXPECT_THAT(world.run({"run", "--cmd", "true", "-vv"}).err, HasSubstr("started "));
  EXPECT_THAT(world.run(command).err, Not(HasSubstr("side by side"))) << "the log ends with its command";
}

TEST_F(Log, NoSecretIsInIt) {
  test::CommandWorld world;
  world.configure(
      "name: proj\n"
      "python: {manager: system, index_url: 'http://me:SECRET1@127.0.0.1:1/simple'}\n"
      "servers:\n"
      "  a: {hostname: a, password: SECRET2}\n"
      "  b: {hostname: b, password_command: echo SECRET3}\n");
  write_file_atomic(world.project() / "requirements.txt", "# nothing\n");
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
    const test::CommandResult result = world.run(command);
    EXPECT_THAT(result.err, AllOf(HasSubstr("begins, "), Not(HasSubstr("SECRET")))) << command.front();
  }
}

}  // namespace
}  // namespace remote
