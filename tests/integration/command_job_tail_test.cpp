// `remote job-tail` and `remote job-wait`.

#include <ctime>

#include "base/files.hpp"
#include "base/paths.hpp"
#include "support/command_world.hpp"
#include "support/job_journal.hpp"
#include "support/waiting.hpp"

namespace remote::test {
namespace {

TEST(CommandJobTail, ShowsTheLastLinesAndEndsAsTheJob) {
  CommandWorld world;
  world.ended_job("a", "seq 30; echo err >&2; exit 4");
  const CommandResult usual = world.run({"job-tail", "--job", "1"});
  EXPECT_EQ(usual.lines().size(), 20U) << usual;
  EXPECT_EQ(usual.lines().front(), "11");
  EXPECT_EQ(usual.code, 4);
  EXPECT_EQ(usual.err, "err\njob 1 on a: failed exit 4\n");
  EXPECT_THAT(world.run({"--quiet", "job-tail", "--job", "1", "--lines", "2"}), Ends(4, "29\n30\n", "err\n"));
  EXPECT_THAT(world.run({"--quiet", "job-tail", "--job", "1", "--lines", "0"}), Ends(4, "", ""));
}

TEST(CommandJobTail, FollowsToTheEnd) {
  CommandWorld world;
  world.job("a", "echo begun; until test -e go; do sleep 0.2; done; echo ended");
  const auto running = world.start({"job-tail", "--job", "1"});
  until([&] { return running->out() == "begun\n"; }, "what is there");
  write_file_atomic(world.there("a") / "go", "");
  EXPECT_THAT(running->wait(), Ends(0, "begun\nended\n", "job 1 on a: succeeded\n"));
}

TEST(CommandJobTail, SaysThatTheRankWaitsInADebugger) {
  CommandWorld world;
  world.job("a", "exec python3 -c 'breakpoint(); print(1)'", {"--enable-stacks"});
  const auto running = world.start({"job-tail", "--job", "1"});
  until([&] { return running->err().find("job 1 on a: waiting in breakpoint()") != std::string::npos; },
        "what it waits for");
  EXPECT_THAT(running->err(), HasSubstr("remote attach --job 1\n"));
}

TEST(CommandAttach, TakesItsCommandsFromAPipe) {
  CommandWorld world;
  world.job("a", "exec python3 -uc 'x = 5\nbreakpoint()\nprint(\"x is\", x)'", {"--enable-stacks"});
  const auto attach = [&](const std::string& commands) {
    return world.run({"attach", "--job", "1"}, piped(commands));
  };
  until([&] { return attach("").code == 0; }, "it waits");
  const CommandResult looked = attach("!x = 41\np x + 1");
  EXPECT_EQ(looked.code, 0) << looked;
  EXPECT_THAT(looked.out, AllOf(HasSubstr("(Pdb) p x + 1\n42\n"), Not(HasSubstr("@remote1"))));
  EXPECT_THAT(looked.err, HasSubstr("job 1 on a still waits: remote attach --job 1\n"));
  EXPECT_THAT(attach("c\n").err, HasSubstr("job 1 on a continues\n"));
  EXPECT_THAT(world.run({"job-tail", "1"}).out, HasSubstr("x is 41\n"));
  EXPECT_EQ(attach("c\n").code, 1);
}

TEST(CommandJobTail, SaysThatTheServerIsCutOff) {
  CommandWorld world;
  world.job("a", "echo begun; exec sleep 1000");
  const auto running = world.start({"job-tail", "--job", "1"});
  until([&] { return running->out() == "begun\n"; }, "what is there");
  world.cut_off({"a"});
  until([&] { return running->err().find("the state of its jobs is unknown") != std::string::npos; },
        "that the server does not answer");
  running->interrupt();
  EXPECT_EQ(running->wait().code, 130);
}

TEST(CommandJobTail, NamesTheMtuIfPacketsAreLost) {
  CommandWorld world;
  world.job("a", "echo begun; until test -e go; do sleep 0.2; done; seq 10000");
  Faults faults;
  faults.cut = world.servers().commands() + 1;
  faults.cut_bytes = 20000;
  faults.lost_packets = true;
  world.servers().set_faults(faults);
  const auto running = world.start({"job-tail", "--job", "1"});
  until([&] { return running->out() == "begun\n"; }, "what is there");
  write_file_atomic(world.there("a") / "go", "");
  const CommandResult result = running->wait();
  EXPECT_EQ(result.lines().size(), 10001U) << result.err;
  EXPECT_THAT(result.err,
              HasSubstr("a: connection lost (the link broke (injected fault)); its processes may keep "
                        "running. Connecting again …\n hint: check the network and the server; if "
                        "small packets pass and large ones do not, lower the MTU of the VPN"));
}

TEST(CommandJobTail, NoFollowStopsAtTheEndOfWhatIsThere) {
  CommandWorld world;
  const auto job = world.job("a", "echo begun; sleep 1000");
  until(
      [&] { return read_file_if_there(world.there("a") / ".jobs" / job.id.text() / "job.out") == "begun\n"; },
      "the job's output");
  EXPECT_THAT(world.run({"job-tail", "--job", "1", "--no-follow"}), Ends(0, "begun\n", ""));
}

TEST(CommandJobTail, AnInterruptIs130AndTheJobGoesOn) {
  CommandWorld world;
  world.job("a", "echo begun; sleep 1000");
  const auto running = world.start({"job-tail", "--job", "1"});
  until([&] { return running->out() == "begun\n"; }, "what is there");
  running->interrupt();
  EXPECT_THAT(
      running->wait(),
      Ends(130, "begun\n", "stopped following; the job keeps running. To end it: remote job-kill --job 1\n"));
}

TEST(CommandJobTail, SeveralJobsHaveTheirKeysBeforeTheirLines) {
  CommandWorld world;
  world.ended_job("a", "echo one");
  world.ended_job("b", "printf two; exit 5");
  const CommandResult result = world.run({"job-tail", "--job", "1", "--job", "2"});
  EXPECT_EQ(result.code, 1);  // not 5, because it would not be clear which job it is from
  EXPECT_THAT(result.lines(), ::testing::UnorderedElementsAre("[1] one", "[2] two"));
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("job 1 on a: succeeded\n"), HasSubstr("job 2 on b: failed exit 5\n")));
}

TEST(CommandJobTail, ByDefaultTheNewestRunningMasterIsFollowed) {
  CommandWorld world;
  world.job("a", "echo old; sleep 1000", {"--tag", "master"});
  world.job("a", "echo other; sleep 1000", {"--tag", "x"});
  const auto follow = [&](std::vector<std::string> words, const std::string& wanted) {
    words.insert(words.begin(), "job-tail");
    const auto running = world.start(words);
    until([&] { return !running->out().empty(); }, "some output");
    running->interrupt();
    EXPECT_EQ(running->wait().out, wanted);
  };
  follow({}, "old\n");
  follow({"--tag", "x"}, "other\n");
}

TEST(CommandJobTail, WhatCannotBeFollowedIsWrongUsageWithAHint) {
  CommandWorld world;
  EXPECT_THAT(world.run({"job-tail"}), Refused("error: no job to follow: no job is running\n hint: "));
  EXPECT_THAT(world.run({"job-tail", "--job", "1"}),
              Refused("error: no job '1': there are no jobs\n hint: start one: remote job-run"));
  world.job("a", "sleep 1000");
  EXPECT_THAT(world.run({"job-tail"}),
              Refused("no running job is tagged master; running: 1\n hint: the newest is job 1; "
                      "follow it with: remote job-tail --job 1"));
  EXPECT_THAT(world.run({"job-tail", "--tag", "x"}), Refused("no running job is tagged x; running: 1"));
  EXPECT_THAT(world.run({"job-tail", "--job", "9"}), Refused("the nearest keys are 1"));
  EXPECT_THAT(world.run({"job-tail", "--lines", "-1"}), Refused("--lines"));
  EXPECT_THAT(world.run({"job-tail", "--lines", "many"}), Refused("--lines"));
}

TEST(CommandJobTail, ATagFindsAJobThatHasEnded) {
  CommandWorld world;
  world.ended_job("a", "echo older", {"--tag", "x"});
  world.ended_job("a", "echo ended", {"--tag", "x"});
  EXPECT_THAT(world.run({"--quiet", "job-tail", "--tag", "x"}), Ends(0, "ended\n", ""));
  // Still running according to the local record.
  world.job("a", "echo quick; exit 4", {"--tag", "y"});
  EXPECT_THAT(world.run({"--quiet", "job-tail", "--tag", "y"}), Ends(4, "quick\n", ""));
  EXPECT_THAT(world.run({"job-tail", "--tag", "nope"}), Refused("no job to follow"));
}

TEST(CommandJobTail, AJobIsFoundByTheBeginningOfItsId) {
  CommandWorld world;
  const auto job = world.ended_job("a", "echo found");
  EXPECT_THAT(world.run({"--quiet", "job-tail", "--job", job.id.text().substr(0, 6)}),
              Ends(0, "found\n", ""));
}

TEST(CommandJobTail, AKeyNeedsNoOption) {
  CommandWorld world;
  world.ended_job("a", "echo found");
  EXPECT_THAT(world.run({"--quiet", "job-tail", "1"}), Ends(0, "found\n", ""));
  EXPECT_THAT(world.run({"job-wait", "1"}), Ends(0, "", "job 1 on a: succeeded\n"));
  EXPECT_THAT(world.run({"job-tail", "2"}), Refused("no job '2'"));
  EXPECT_THAT(world.run({"job-stacks", "1"}), Refused("none of these jobs is running"));
  EXPECT_THAT(world.run({"job-kill", "1"}), Ends(0, "job 1 on a: had ended before: succeeded\n", ""));
  EXPECT_THAT(world.run({"job-clean", "1", "--yes"}), Ends(0, "", "1 job removed\n"));
}

TEST(CommandJobTail, ADelayIsTakenAndHasNoEffect) {
  CommandWorld world;
  world.ended_job("a", "echo found");
  EXPECT_THAT(
      world.run({"job-tail", "--job", "1", "--delay", "5"}),
      Ends(0, "found\n", HasSubstr("--delay has no effect: output is shown as soon as it is written\n")));
}

TEST(CommandJobTail, AServerThatIsNotReachedIsAnError) {
  CommandWorld world;
  world.job("a", "sleep 1000");
  world.cut_off({"a"});
  EXPECT_THAT(world.run({"job-tail", "--job", "1"}), Ends(1, "", HasSubstr("error: a: ")));
}

TEST(CommandJobTail, AfterAPromptWithoutANewlineTheNoticeHasItsOwnLine) {
  CommandWorld world;
  world.ended_job("a", "printf 100%%");
  EXPECT_THAT(world.run({"job-tail", "--job", "1"}, screen()), Ends(0, "100%", "\njob 1 on a: succeeded\n"));
  EXPECT_THAT(world.run({"job-tail", "--job", "1"}), Ends(0, "100%", "job 1 on a: succeeded\n"));
}

TEST(CommandJobWait, WithoutJobsThereIsNothingToWaitFor) {
  CommandWorld world;
  EXPECT_THAT(world.run({"job-wait"}), Ends(0, "", "no unfinished jobs; nothing to wait for\n"));
  EXPECT_THAT(world.run({"job-wait", "--json", "--quiet"}), Ends(0, "[]\n", ""));
  EXPECT_THAT(world.run({"job-wait", "--job", "1"}), Refused("no job '1'"));
  EXPECT_THAT(world.run({"job-wait", "--tag", "x"}), Refused("no job to act on: there are no jobs"));
}

TEST(CommandJobWait, TellsEachEndAndIsZeroOnlyIfAllSucceeded) {
  CommandWorld world;
  world.job("a", "until test -e go; do sleep 0.2; done", {"--tag", "x"});
  world.job("b", "until test -e go; do sleep 0.2; done; exit 6", {"--tag", "x"});
  const auto running = world.start({"job-wait", "--tag", "x"});
  until([&] { return running->err() == "waiting for 2 jobs\n"; }, "the first words");
  write_file_atomic(world.there("a") / "go", "");
  until([&] { return running->err() == "waiting for 2 jobs\njob 1 on a: succeeded\n"; }, "the first end");
  write_file_atomic(world.there("b") / "go", "");
  EXPECT_THAT(running->wait(),
              Ends(1, "", "waiting for 2 jobs\njob 1 on a: succeeded\njob 2 on b: failed exit 6\n"));
  EXPECT_THAT(world.run({"job-wait", "--job", "1"}), Ends(0, "", "job 1 on a: succeeded\n"));
  EXPECT_THAT(world.run({"job-wait", "--tag", "x"}), Ends(1, "", HasSubstr("job 2 on b: failed exit 6\n")));
}

// If a server is too slow for a quick request, it is still waited for, and its reports arrive later.
TEST(CommandJobWait, EndsThatASlowServerTellsLateAreToldAsOldOnes) {
  CommandWorld world;
  for (int i = 0; i < 2; ++i) {
    const Job job = world.job("a", "true", {"--tag", "x"});
    const auto folder = world.there("a") / ".jobs" / job.id.text();
    until([&] { return test::has_ended(folder); }, "its end");
  }
  const std::time_t ended = std::time(nullptr);
  until([&] { return std::time(nullptr) > ended + 1; }, "the next second");  // ends have a resolution of 1 s
  world.servers().set_faults({.connect = 3});                                // each job has used one
  EXPECT_THAT(world.run({"job-wait", "--tag", "x"}),
              Ends(0, "",
                   AllOf(testing::StartsWith("waiting for 2 jobs\n"), HasSubstr("\njob 1 on a: succeeded\n"),
                         HasSubstr("\njob 2 on a: succeeded\n"),
                         testing::EndsWith("\n2 of them had already ended, and count, too; --since last "
                                           "waits only for the newest\n"))));
}

TEST(CommandJobWait, JsonIsTheJobsAsTheyEnded) {
  CommandWorld world;
  world.job("a", "exit 2");
  const CommandResult result = world.run({"job-wait", "--job", "1", "--json"});
  EXPECT_EQ(result.code, 1);
  ASSERT_EQ(result.json().size(), 1U);
  EXPECT_EQ(result.json()[0]["state"], "failed");
  EXPECT_EQ(result.json()[0]["exit_code"], 2);
}

TEST(CommandJobWait, AnInterruptSaysThatSeveralJobsKeepRunning) {
  CommandWorld world;
  world.job("a", "sleep 1000");
  world.job("b", "sleep 1000");
  const auto running = world.start({"job-wait"});
  until([&] { return running->err() == "waiting for 2 jobs\n"; }, "the first words");
  running->interrupt();
  EXPECT_THAT(running->wait(), Ends(130, "", "waiting for 2 jobs\nstopped waiting; the jobs keep running\n"));
}

TEST(CommandJobWait, AnInterruptIs130AndTheJobGoesOn) {
  CommandWorld world;
  world.job("a", "sleep 1000");
  const auto running = world.start({"job-wait"});
  until([&] { return running->err() == "waiting for 1 job\n"; }, "the first words");
  running->interrupt();
  EXPECT_THAT(running->wait(), Ends(130, "", "waiting for 1 job\nstopped waiting; the job keeps running\n"));
  EXPECT_EQ(world.run({"--json", "job-list"}).json()[0]["state"], "running");
}

TEST(CommandJobWait, AServerThatIsNotReachedIsTriedAgain) {
  CommandWorld world;
  world.job("a", "until test -e go; do sleep 0.2; done");
  world.cut_off({"a"});
  const auto running = world.start({"job-wait"});
  until([&] { return running->err().ends_with("a: not reached (injected fault). Trying again …\n"); },
        "the first attempt's end");
  world.servers().set_faults({});
  until([&] { return running->err().ends_with("a: connected again, continuing where it stopped\n"); },
        "the connection");
  write_file_atomic(world.there("a") / "go", "");
  EXPECT_THAT(running->wait(), Ends(0, "", ::testing::EndsWith("job 1 on a: succeeded\n")));
}

}  // namespace
}  // namespace remote::test
