// `remote job-list`.

#include "base/files.hpp"
#include "support/command_world.hpp"
#include "support/waiting.hpp"

namespace remote::test {
namespace {

std::vector<int> keys_of(const CommandResult& result) {
  std::vector<int> keys;
  for (const auto& job : result.json()) {
    keys.push_back(job.at("key").get<int>());
  }
  return keys;
}

TEST(CommandJobList, WithoutJobsSaysSoOnStderr) {
  CommandWorld world;
  EXPECT_THAT(world.run({"job-list"}), Ends(0, "", "no unfinished jobs; --stopped lists the others too\n"));
  EXPECT_THAT(world.run({"job-list", "--stopped"}), Ends(0, "", "no jobs\n"));
  EXPECT_THAT(world.run({"job-list", "--json"}), Ends(0, "[]\n", ""));
  EXPECT_EQ(world.servers().commands(), 0);
}

TEST(CommandJobList, TheTableHasTheUnfinishedOnesAndWithStoppedAll) {
  CommandWorld world;
  world.ended_job("a", "echo done; exit 3");
  world.job("b", "sleep 1000", {"--tag", "x", "--tag", "y"});
  const CommandResult running = world.run({"job-list"});
  EXPECT_THAT(running, Ends(0, Not(""), ""));
  EXPECT_THAT(running.lines(),
              ElementsAre(MatchesRegex("KEY  STATE +SERVER  RANK +STARTED +TIME  TAGS  COMMAND"),
                          MatchesRegex(" +2  running  b +[0-9]+s ago +[0-9]+s  x,y   sleep 1000")));
  const CommandResult all = world.run({"job-list", "--stopped"});
  ASSERT_EQ(all.lines().size(), 3U) << all;
  EXPECT_THAT(all.lines()[1], MatchesRegex(" +1  failed exit 3  a .* echo done; exit 3"));
}

TEST(CommandJobList, OneThatEndsInThisRoundIsShownOnceMore) {
  CommandWorld world;
  const auto job = world.job("a", "until test -e go; do sleep 0.01; done; exit 2");
  EXPECT_EQ(world.run({"--json", "job-list"}).json().at(0)["state"], "running");
  write_file_atomic(world.there("a") / "go", "");
  until([&] { return std::filesystem::exists(world.there("a") / ".jobs" / job.id.text() / "result"); },
        "the job's end");
  EXPECT_EQ(world.run({"--json", "job-list"}).json().at(0)["state"], "failed");
  EXPECT_THAT(world.run({"--json", "job-list"}), Ends(0, "[]\n", ""));
}

TEST(CommandJobList, JsonHasTheFieldsOfTheContract) {
  CommandWorld world;
  const auto job = world.ended_job("a", "kill -KILL $$");
  const CommandResult result = world.run({"job-list", "--stopped", "--json"});
  EXPECT_EQ(result.code, 0);
  const auto one = result.json().at(0);
  for (const char* name :
       {"key", "id", "server", "state", "pid", "exit_code", "signal", "tags", "command", "launch", "rank",
        "world_size", "created_at", "started_at", "ended_at", "checked_at"}) {
    EXPECT_TRUE(one.contains(name)) << name;
  }
  EXPECT_EQ(one["id"], job.id.text());
  EXPECT_EQ(one["exit_code"], nullptr);
  EXPECT_EQ(one["signal"], "SIGKILL");
  EXPECT_FALSE(one["ended_at"].is_null());
}

TEST(CommandJobList, TagsAreAllNeeded) {
  CommandWorld world;
  world.job("a", "sleep 1000", {"--tag", "x"});
  world.job("a", "sleep 1000", {"--tag", "x", "--tag", "y"});
  EXPECT_THAT(keys_of(world.run({"job-list", "--json", "--tag", "x"})), ElementsAre(1, 2));
  EXPECT_THAT(keys_of(world.run({"job-list", "--json", "--tag", "y", "--tag", "x"})), ElementsAre(2));
  EXPECT_THAT(world.run({"job-list", "--json", "--tag", "z"}), Ends(0, "[]\n", ""));
}

TEST(CommandJobList, HiddenOnesAreShownWhenAskedFor) {
  CommandWorld world;
  std::vector<Job> jobs = {old_record("seen"), old_record("unseen")};
  jobs[1].hidden = true;
  world.store().add(jobs);
  EXPECT_THAT(keys_of(world.run({"job-list", "--stopped", "--json"})), ElementsAre(1));
  EXPECT_THAT(keys_of(world.run({"job-list", "--stopped", "--hidden", "--json"})), ElementsAre(1, 2));
}

TEST(CommandJobList, AServerThatIsNotReachedMakesItsJobsUnknown) {
  CommandWorld world;
  world.job("a", "sleep 1000");
  world.job("b", "sleep 1000");
  world.cut_off({"b"});
  const CommandResult result = world.run({"job-list", "--json"});
  EXPECT_THAT(result, Ends(0, Not(""),
                           AllOf(StartsWith("warning: b: "), HasSubstr("the state of its jobs is unknown"))));
  EXPECT_EQ(result.json()[0]["state"], "running");
  EXPECT_EQ(result.json()[1]["state"], "unknown");
}

TEST(CommandJobList, PatienceIsHowLongAServerMayBeSilent) {
  CommandWorld world;
  world.job("a", "sleep 1000");
  world.servers().add_program("date", "sleep 2\nexec /bin/date \"$@\"\n");
  EXPECT_THAT(world.run({"job-list", "--patience", "1"}),
              Ends(0, HasSubstr("unknown"), HasSubstr("a: no answer: nothing came from the server for 1 s")));
  EXPECT_THAT(world.run({"job-list", "--patience", "60"}), Ends(0, HasSubstr("running"), ""));
  EXPECT_THAT(world.run({"job-list", "--patience", "0"}), Refused("--patience"));
}

TEST(CommandJobList, OfflineAsksNoServer) {
  CommandWorld world;
  world.job("a", "sleep 1000");
  const int asked = world.servers().commands();
  EXPECT_EQ(world.run({"job-list", "--offline", "--json"}).json()[0]["state"], "running");
  EXPECT_EQ(world.servers().commands(), asked);
}

TEST(CommandJobList, RsyncBringsTheOutputToo) {
  CommandWorld world;
  const auto job = world.ended_job("a", "echo brought");
  EXPECT_THAT(world.run({"job-list", "--stopped"}), Ends(0, HasSubstr("succeeded"), ""));
  EXPECT_FALSE(std::filesystem::exists(world.brought(job, "job.out")));
  EXPECT_THAT(world.run({"job-list", "--stopped", "--rsync"}), Ends(0, HasSubstr("succeeded"), ""));
  EXPECT_EQ(read_file(world.brought(job, "job.out")), "brought\n");
}

TEST(CommandJobList, WatchShowsItAnewUntilItIsInterrupted) {
  CommandWorld world;
  world.job("a", "sleep 1000");
  const auto running = world.start({"job-list", "--watch"}, screen());
  until([&] { return running->out().find("sleep 1000") != std::string::npos; }, "the table");
  running->interrupt();
  const CommandResult result = running->wait();
  EXPECT_EQ(result.code, 130);
  EXPECT_THAT(result.out, StartsWith("\033[H\033[2J\033[1mKEY\033[0m"));
}

TEST(CommandJobList, WatchIntoAPipeDoesNotClearAScreen) {
  CommandWorld world;
  const auto running = world.start({"--json", "job-list", "--watch"});
  until([&] { return running->out() == "[]\n"; }, "the first list");
  running->interrupt();
  EXPECT_THAT(running->wait(), Ends(130, "[]\n", ""));
}

TEST(CommandJobList, StatesAreColouredOnATerminal) {
  CommandWorld world;
  world.job("a", "sleep 1000");
  EXPECT_THAT(world.run({"job-list"}, screen()).out, HasSubstr("\033[32mrunning"));
}

TEST(CommandJobList, WhatARecordSaysDoesNotReachTheTerminalRaw) {
  CommandWorld world;
  std::vector<Job> jobs = {old_record("echo \033]0;title\007")};
  world.store().add(jobs);
  const CommandResult result = world.run({"job-list", "--stopped", "--color", "never"}, screen());
  EXPECT_THAT(result.out, AllOf(Not(HasSubstr("\033")), HasSubstr("\\x1b]0;title")));
}

TEST(CommandJobList, ARecordThatCannotBeReadIsAWarning) {
  CommandWorld world;
  std::vector<Job> jobs = {old_record("good"), old_record("bad")};
  world.store().add(jobs);
  write_file_atomic(world.store().record_file(jobs[1].id), "{");
  std::filesystem::remove(world.store().folder() / "index");
  const CommandResult result = world.run({"job-list", "--stopped", "--json"});
  EXPECT_THAT(result, Ends(0, Not(""), AllOf(StartsWith("warning: "), HasSubstr("job.json"))));
  EXPECT_THAT(keys_of(result), ElementsAre(1));
}

}  // namespace
}  // namespace remote::test
