#include "base/log.hpp"

#include <stdexcept>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remote {

// A value that counts how often it is formatted.
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

using ::testing::ElementsAre;

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

}  // namespace
}  // namespace remote
