// --jsonl: each line on stdout is an event, from `begin` to `end`, with every command.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/command_world.hpp"

namespace remote::test {
namespace {

using Json = nlohmann::json;

std::vector<Json> events_of(const CommandResult& result) {
  std::vector<Json> events;
  for (const std::string& line : result.lines()) {
    events.push_back(Json::parse(line));
  }
  EXPECT_GE(events.size(), 2U) << result;
  EXPECT_EQ(events.front()["event"], "begin") << result;
  EXPECT_EQ(events.front()["version"], 1);
  EXPECT_EQ(events.back()["event"], "end") << result;
  EXPECT_EQ(events.back()["exit_code"], result.code);
  return events;
}

std::vector<Json> named(const std::vector<Json>& events, const std::string& name) {
  std::vector<Json> found;
  std::ranges::copy_if(events, std::back_inserter(found),
                       [&](const Json& event) { return event["event"] == name; });
  return found;
}

class CommandJsonl : public ::testing::Test {
 protected:
  CommandWorld world;
  std::vector<Json> run(std::vector<std::string> words, int code) {
    const std::string command = words.front();
    words.push_back("--jsonl");
    const CommandResult result = world.run(words);
    EXPECT_EQ(result.code, code) << result;
    std::vector<Json> events = events_of(result);
    EXPECT_EQ(events.front()["command"], command);
    return events;
  }
};

TEST_F(CommandJsonl, OutputOfACommandComesLineByLine) {
  const auto events = run({"run", "--cmd", "printf 'a\\nb'; echo c >&2; exit 3", "--server", "b"}, 3);
  std::vector<std::string> lines;
  for (const Json& event : named(events, "output")) {
    EXPECT_EQ(event["server"], "b");
    lines.push_back(event["stream"].get<std::string>() + " " + event["text"].get<std::string>());
  }
  EXPECT_THAT(lines, UnorderedElementsAre("out a", "out b", "err c"));
  const auto results = named(events, "result");
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0]["value"][0]["exit_code"], 3);
  EXPECT_FALSE(results[0]["value"][0].contains("stdout"));
}

TEST_F(CommandJsonl, ALaunchIsFollowedToItsVerdict) {
  const auto events =
      run({"launch", "--nproc-per-node", "2", "--follow", "--failure-grace", "0", "--cmd",
           "echo here; [ $RANK != 2 ] || { echo broken >&2; exit 5; }; [ $RANK = 2 ] || sleep 600"},
          1);
  const auto launched = named(events, "launched");
  ASSERT_EQ(launched.size(), 1U);
  EXPECT_EQ(launched[0]["world_size"], 4);
  EXPECT_EQ(launched[0]["jobs"].size(), 4U);
  const auto output = named(events, "output");
  ASSERT_FALSE(output.empty());
  EXPECT_EQ(output[0]["rank"], 0);
  EXPECT_EQ(output[0]["text"], "here");
  EXPECT_EQ(named(events, "ended").size(), 4U);
  const auto verdicts = named(events, "verdict");
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0]["first"]["rank"], 2);
  EXPECT_EQ(verdicts[0]["first"]["exit_code"], 5);
  EXPECT_EQ(verdicts[0]["last_lines"][0], "broken");
}

TEST_F(CommandJsonl, TailAndWaitTellEachEnd) {
  ASSERT_EQ(world.run({"job-run", "--server", "a", "--cmd", "echo one; echo two"}).code, 0);
  auto events = run({"job-wait", "1"}, 0);
  ASSERT_EQ(named(events, "ended").size(), 1U);
  EXPECT_EQ(named(events, "ended")[0]["job"]["state"], "succeeded");
  events = run({"job-tail", "1"}, 0);
  const auto output = named(events, "output");
  ASSERT_EQ(output.size(), 2U);
  EXPECT_EQ(output[1]["text"], "two");
  EXPECT_EQ(output[1]["job"], 1);
  EXPECT_TRUE(output[1]["rank"].is_null());
}

TEST_F(CommandJsonl, DataIsAResult) {
  ASSERT_EQ(world.run({"job-run", "--server", "a", "--cmd", "true"}).code, 0);
  ASSERT_EQ(world.run({"job-wait", "1"}).code, 0);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"job-list", "--stopped"},
                                                {"status"},
                                                {"servers"},
                                                {"servers", "--verbose"},
                                                {"check"},
                                                {"launch", "--dry-run", "--cmd", "true"},
                                                {"job-kill", "1"},
                                                {"job-run", "--server", "b", "--cmd", "exec sleep 1000"},
                                                {"job-stacks", "2"},
                                                {"job-clean", "1", "--yes"}}) {
    std::vector<std::string> all = words;
    all.push_back("--jsonl");
    const auto events = events_of(world.run(all));
    EXPECT_EQ(named(events, "result").size(), 1U) << words.front();
  }
}

TEST_F(CommandJsonl, ErrorsAreEvents) {
  auto events = run({"job-tail", "77"}, 2);
  ASSERT_EQ(named(events, "error").size(), 1U);
  EXPECT_EQ(named(events, "error")[0]["usage"], true);
  events = events_of(world.run({"job-tial", "--jsonl"}));
  EXPECT_THAT(named(events, "error")[0]["hint"].get<std::string>(), HasSubstr("job-tail"));
  events = run({"job-run", "--jsonl", "--cmd", "true", "--server", "gamma"}, 2);
  EXPECT_EQ(named(events, "error").size(), 1U);
}

TEST_F(CommandJsonl, OutputAsItComesIsNotOneJsonValue) {
  ASSERT_EQ(world.run({"job-run", "--server", "a", "--cmd", "true"}).code, 0);
  EXPECT_THAT(world.run({"job-tail", "1", "--json"}), Refused("--jsonl"));
  EXPECT_THAT(world.run({"job-run", "--server", "a", "--cmd", "true", "--follow", "--json"}),
              Refused("--jsonl"));
  EXPECT_THAT(world.run({"launch", "--cmd", "true", "--follow", "--json"}), Refused("--jsonl"));
  EXPECT_EQ(world.run({"job-list", "--stopped", "--json"}).json().size(), 1U);
}

}  // namespace
}  // namespace remote::test
