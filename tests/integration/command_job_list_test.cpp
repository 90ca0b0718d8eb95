// `remote job-list`.

#include <algorithm>

#include "base/files.hpp"
#include "base/shell_quote.hpp"
#include "support/command_world.hpp"
#include "support/job_journal.hpp"
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
  EXPECT_THAT(world.run({"job-list"}), Ends(0, "", "no jobs\n"));
  EXPECT_THAT(world.run({"job-list", "--stopped"}), Ends(0, "", "no jobs\n"));
  EXPECT_THAT(world.run({"job-list", "--json"}), Ends(0, "[]\n", ""));
  EXPECT_EQ(world.servers().commands(), 0);
}

TEST(CommandJobList, TheTableHasWhatRunsAndWhatEndedLately) {
  CommandWorld world;
  world.ended_job("a", "echo done; exit 3");
  world.job("b", "sleep 1000", {"--tag", "x", "--tag", "y"});
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"job-list"}, {"job-list"}, {"job-list", "--stopped"}}) {
    const CommandResult result = world.run(words);
    EXPECT_THAT(result, Ends(0, Not(""), ""));
    EXPECT_THAT(result.lines(),
                ElementsAre(MatchesRegex("KEY  STATE +SERVER  RANKS +STARTED +TIME  TAGS  COMMAND"),
                            MatchesRegex(" +1  failed exit 3  a .* echo done; exit 3"),
                            MatchesRegex(" +2  running +b +[0-9]+s ago +[0-9]+s  x,y   sleep 1000")));
  }
}

TEST(CommandJobList, WhatEndedIsDimmedAndTheRestIsCounted) {
  CommandWorld world;
  std::vector<Job> jobs(13, old_record("done"));
  for (Job& job : jobs) {
    job.id = JobId::random();
  }
  for (std::size_t i = 0; i < 2; ++i) {
    jobs[i].created_at -= std::chrono::hours(48);
    *jobs[i].ended_at -= std::chrono::hours(48);
  }
  *jobs[12].ended_at += std::chrono::minutes(1);
  world.store().add(jobs);
  const CommandResult result = world.run({"job-list"});
  EXPECT_EQ(result.lines().size(), 12U)
      << "those of the last day, and of many no more than the newest ten: " << result;
  EXPECT_EQ(result.err, "2 more that ended earlier; --stopped lists all\n");
  EXPECT_EQ(world.run({"job-list", "--stopped"}).lines().size(), 14U);
  EXPECT_THAT(world.run({"job-list"}, screen()).out, HasSubstr("\033[2msucceeded\033[0m"));
  EXPECT_THAT(world.run({"job-list", "--stopped"}, screen()).out, Not(HasSubstr("\033[2m")));
  EXPECT_THAT(world.run({"job-list", "--json"}), Ends(0, "[]\n", ""));
}

TEST(CommandJobList, OfMuchThatEndedLatelyTheNewestTen) {
  CommandWorld world;
  std::vector<Job> jobs(12, old_record("done"));
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].id = JobId::random();
    *jobs[i].ended_at += std::chrono::seconds(i);
  }
  world.store().add(jobs);
  const CommandResult result = world.run({"job-list"});
  ASSERT_EQ(result.lines().size(), 11U) << result;
  EXPECT_THAT(result.lines()[1], StartsWith("  3  succeeded"));
  EXPECT_EQ(result.err, "2 more that ended earlier; --stopped lists all\n");
}

TEST(CommandJobList, OneThatEndsInThisRoundIsShownOnceMore) {
  CommandWorld world;
  const auto job = world.job("a", "until test -e go; do sleep 0.2; done; exit 2");
  EXPECT_EQ(world.run({"--json", "job-list"}).json().at(0)["state"], "running");
  write_file_atomic(world.there("a") / "go", "");
  until([&] { return test::has_ended(world.there("a") / ".jobs" / job.id.text()); }, "the job's end");
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

// Makes the agent silent for this long after its start.
void delay_agent(const fs::path& home, int seconds) {
  std::vector<fs::path> agents;
  for (const auto& entry : fs::recursive_directory_iterator(home / ".cache/remote")) {
    if (entry.path().filename() == "remote-agent") {
      agents.push_back(entry.path());
    }
  }
  ASSERT_EQ(agents.size(), 1U);
  const fs::path moved = home / "moved-agent";
  fs::rename(agents[0], moved);
  write_file_atomic(agents[0], "#!/bin/sh\n[ $1 = try ] || sleep " + std::to_string(seconds) + "\nexec " +
                                   shell_quote(moved.string()) + " \"$@\"\n");
  fs::permissions(agents[0], fs::perms::owner_all);
}

TEST(CommandJobList, PatienceIsHowLongAServerMayBeSilent) {
  CommandWorld world;
  world.job("a", "sleep 1000");
  delay_agent(world.servers().home("a"), 2);
  EXPECT_THAT(world.run({"job-list", "--patience", "1"}),
              Ends(0, HasSubstr("unknown"), HasSubstr("a: no answer: the server sent nothing for 1 s")));
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
  const auto known = world.ended_job("a", "echo known");
  EXPECT_THAT(world.run({"job-list", "--stopped"}), Ends(0, HasSubstr("succeeded"), ""));
  EXPECT_EQ(world.run({"job-list", "--rsync"}).code, 0) << "it has to ask no server for the states";
  EXPECT_EQ(read_file(world.brought(known, "job.out")), "known\n");
}

TEST(CommandJobList, OutputThatDoesNotFitHereIsNotCopied) {
  CommandWorld world;
  const auto huge = world.ended_job("a", "echo huge");
  const auto small = world.ended_job("a", "echo small");
  const auto log = world.there("a") / ".jobs" / huge.id.text() / "job.out";
  constexpr std::uintmax_t more = std::uintmax_t{1} << 30U;
  std::filesystem::resize_file(log,
                               std::filesystem::space(world.project()).available + more);  // a sparse file
  EXPECT_THAT(
      world.run({"job-list", "--stopped", "--rsync"}),
      Ends(1, HasSubstr("succeeded"),
           AllOf(HasSubstr("a: cannot copy the output of job 1: "), HasSubstr(" are needed, but only "),
                 HasSubstr("hint: free some space on this machine's disk"))));
  EXPECT_FALSE(std::filesystem::exists(world.brought(huge, "job.out")));
  EXPECT_EQ(read_file(world.brought(small, "job.out")), "small\n");
}

TEST(CommandJobList, WatchHasAScreenOfItsOwnUntilItIsInterrupted) {
  CommandWorld world;
  world.job("a", "sleep 1000");
  const auto running = world.start({"job-list", "--watch"}, screen());
  until([&] { return running->out().find("sleep 1000") != std::string::npos; }, "the table");
  running->interrupt();
  const CommandResult result = running->wait();
  EXPECT_EQ(result.code, 130);
  EXPECT_THAT(
      result.out,
      StartsWith("\033[?1049h\033[?25l\033[?7l\033[H\033[2K\033[1mremote job-list --watch   proj   "));
  EXPECT_THAT(result.out, ::testing::EndsWith("\033[?7h\033[?25h\033[?1049l"));
  EXPECT_THAT(result.out, Not(HasSubstr("\033[2J")));
}

TEST(CommandJobList, TheTitleOfAWatchFitsTheWindow) {
  CommandWorld world;
  const std::string name(90, 'n');
  world.configure("name: " + name + "\nservers:\n  a: {hostname: a}\n");
  const auto running = world.start({"job-list", "--watch", "--color", "never"}, screen());
  until([&] { return running->out().find("no jobs") != std::string::npos; }, "the screen");
  const std::string out = running->out();
  EXPECT_THAT(out, HasSubstr("--watch   " + name.substr(0, 73) + "…\033[0m"));
}

TEST(CommandJobList, WatchKeepsWhatEndedAndTellsWarningsWithinItsScreen) {
  CommandWorld world;
  world.ended_job("a", "exit 3");
  world.job("b", "sleep 1000");
  world.cut_off({"b"});
  const auto running = world.start({"job-list", "--watch"}, screen());
  until([&] { return running->out().find("warning:") != std::string::npos; }, "the second look");
  running->interrupt();
  const CommandResult result = running->wait();
  const std::string second = result.out.substr(result.out.rfind("\033[H"));
  EXPECT_THAT(
      second,
      AllOf(
          HasSubstr("failed exit 3"), HasSubstr("unknown (no answer"),
          HasSubstr("warning:\033[0m b: cannot connect: injected fault; the state of its jobs is unknown")));
}

TEST(CommandJobList, WatchDoesNotScrollWhenThereIsMoreThanTheWindowHas) {
  CommandWorld world;
  std::vector<Job> jobs(40, old_record("sleep"));
  for (Job& job : jobs) {
    job.id = JobId::random();
    job.state = JobState::running;
    job.ended_at.reset();
    job.result.reset();
  }
  world.store().add(jobs);
  const auto running = world.start({"job-list", "--watch", "--offline"}, screen());
  until([&] { return running->out().find("more lines") != std::string::npos; }, "the table");
  running->interrupt();
  const std::string out = running->wait().out;
  EXPECT_EQ(std::ranges::count(out, '\n'), 23) << "24 rows";
  EXPECT_THAT(out, AllOf(HasSubstr("… 20 more lines; a larger window shows them"), HasSubstr("\033[2K 40  "),
                         Not(HasSubstr("\033[2K  1  "))));
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
