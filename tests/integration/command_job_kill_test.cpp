// `remote job-kill`.

#include <csignal>

#include "base/files.hpp"
#include "support/command_world.hpp"
#include "support/processes.hpp"
#include "support/waiting.hpp"

namespace remote::test {
namespace {

class CommandJobKill : public ::testing::Test {
 protected:
  CommandResult kill(std::vector<std::string> words, const Terminals& terminals = {}) {
    words.insert(words.begin(), "job-kill");
    return world.run(words, terminals);
  }
  std::string state(int key) { return std::string(to_string(world.stored(key).state)); }
  CommandWorld world;
};

TEST_F(CommandJobKill, WithoutJobsThereIsNothingToEnd) {
  EXPECT_THAT(kill({"--yes"}), Ends(0, "", "no unfinished jobs; nothing to end\n"));
  EXPECT_THAT(kill({}), Ends(0, "", "no unfinished jobs; nothing to end\n"));
  EXPECT_THAT(kill({"--tag", "x"}), Refused("no job to act on: there are no jobs"));
  EXPECT_THAT(world.run({"--quiet", "--json", "job-kill"}), Ends(0, "[]\n", ""));
  EXPECT_THAT(kill({"--job", "1"}), Refused("no job '1'"));
}

TEST_F(CommandJobKill, EndsTheOneThatIsNamedAndNoOther) {
  const auto first = world.job("a", "sleep 1000");
  const auto second = world.job("b", "sleep 1000");
  EXPECT_THAT(kill({"--job", "1"}), Ends(0, "job 1 on a: killed\n",
                                         "ending 1 job; processes still running after 10 s are killed\n"));
  EXPECT_FALSE(lives(*first.pid));
  EXPECT_TRUE(lives(*second.pid));
  EXPECT_EQ(state(1), "killed");
  EXPECT_EQ(state(2), "running");
}

TEST_F(CommandJobKill, ATagThatNoJobHasIsAMistake) {
  world.ended_job("a", "true", {"--tag", "x"});
  EXPECT_THAT(kill({"--tag", "x"}), Ends(0, "", "no unfinished job has these tags; nothing to end\n"));
  EXPECT_THAT(kill({"--tag", "nope"}), Refused("no job has the tag 'nope'"));
  EXPECT_THAT(world.run({"job-clean", "--yes", "--tag", "nope"}), Refused("no job has the tag 'nope'"));
  EXPECT_EQ(world.store().list().jobs.size(), 1U);
}

TEST_F(CommandJobKill, TagsAreAllNeeded) {
  world.job("a", "sleep 1000", {"--tag", "x"});
  world.job("a", "sleep 1000", {"--tag", "x", "--tag", "y"});
  EXPECT_THAT(kill({"--tag", "x", "--tag", "y"}), Ends(0, "job 2 on a: killed\n", Not("")));
  EXPECT_EQ(state(1), "running");
}

TEST_F(CommandJobKill, EndingAllNeedsAYesWhereNobodyCanBeAsked) {
  world.job("a", "sleep 1000");
  world.job("b", "sleep 1000");
  EXPECT_THAT(kill({}),
              Refused("job-kill: no job is named, and that would end 2 unfinished jobs\n hint: name "
                      "them by their keys, with --launch or with --tag, or add --yes\n"));
  EXPECT_EQ(state(1), "running");
  EXPECT_THAT(kill({"--yes"}),
              Ends(0, "job 1 on a: killed\njob 2 on b: killed\n", StartsWith("ending 2 jobs")));
}

TEST_F(CommandJobKill, OnATerminalItShowsThemAndAsks) {
  world.job("a", "sleep 1000");
  for (const char* answer : {"n\n", "\n"}) {
    EXPECT_THAT(
        kill({"--color", "never"}, screen(answer)),
        Ends(1, "",
             "  job 1 on a: running: sleep 1000\nEnd 1 unfinished job? [y/N] error: nothing was ended: "
             "not confirmed\n"))
        << answer;
  }
  // End of input leaves the cursor after the question.
  EXPECT_THAT(kill({"--color", "never"}, screen("\x04")),
              Ends(1, "", HasSubstr("[y/N] \nerror: nothing was ended")));
  EXPECT_THAT(kill({}, screen("yess\nn\n")),
              Ends(1, "", HasSubstr("Please answer y or n.\nEnd 1 unfinished job?")));
  EXPECT_EQ(state(1), "running");
  EXPECT_THAT(kill({}, screen("y\n")),
              Ends(0, "job 1 on a: killed\n", HasSubstr("End 1 unfinished job? [y/N] ending 1 job;")));
  EXPECT_EQ(state(1), "killed");
}

TEST_F(CommandJobKill, WhatIsNamedIsNotAskedFor) {
  world.job("a", "sleep 1000", {"--tag", "x"});
  EXPECT_THAT(kill({"--tag", "x"}, screen()), Ends(0, "job 1 on a: killed\n", Not(HasSubstr("[y/N]"))));
}

TEST_F(CommandJobKill, OneThatHadEndedIsToldWhenItIsNamed) {
  world.ended_job("a", "exit 3");
  EXPECT_THAT(kill({"--job", "1"}), Ends(0, "job 1 on a: had ended before: failed exit 3\n", ""));
  EXPECT_EQ(state(1), "failed");
}

TEST_F(CommandJobKill, TheSignalAndTheGraceAreAsGiven) {
  const auto job = world.job("a", "trap 'echo got INT; exit 0' INT; echo up; while :; do sleep 0.01; done");
  const auto out = [&] {
    return read_file_if_there(world.there("a") / ".jobs" / job.id.text() / "job.out").value_or("");
  };
  until([&] { return out() == "up\n"; }, "the job's trap");
  EXPECT_THAT(kill({"--job", "1", "--signal", "INT"}), Ends(0, Not(""), Not("")));
  EXPECT_EQ(out(), "up\ngot INT\n");
  const auto stubborn = world.job("a", "trap '' TERM; echo up; while :; do sleep 0.01; done");
  until(
      [&] {
        return read_file_if_there(world.there("a") / ".jobs" / stubborn.id.text() / "job.out") == "up\n";
      },
      "the second job's trap");
  EXPECT_THAT(kill({"--job", "2", "--grace", "0"}), Ends(0, "job 2 on a: killed\n", ""));
  EXPECT_FALSE(lives(*stubborn.pid));
}

TEST_F(CommandJobKill, WrongOptionsAreRefusedAndNothingIsEnded) {
  world.job("a", "sleep 1000");
  EXPECT_THAT(kill({"--yes", "--signal", "BANG"}),
              Refused("--signal BANG: there is no such signal\n hint: try TERM, INT or KILL"));
  EXPECT_THAT(kill({"--yes", "--grace", "-1"}), Refused("--grace"));
  EXPECT_THAT(kill({"--yes", "--grace", "soon"}), Refused("--grace"));
  EXPECT_EQ(state(1), "running");
}

TEST_F(CommandJobKill, JsonProvesTheEndOfEach) {
  world.job("a", "sleep 1000");
  const CommandResult result = kill({"--yes", "--json"});
  EXPECT_EQ(result.code, 0);
  const auto one = result.json().at(0);
  EXPECT_EQ(one["key"], 1);
  EXPECT_EQ(one["server"], "a");
  EXPECT_EQ(one["state"], "killed");
  EXPECT_EQ(one["ended"], true);
  EXPECT_GT(one["signalled"].get<int>(), 0);
  EXPECT_EQ(one["survivors"], nlohmann::json::array());
}

TEST_F(CommandJobKill, AServerThatIsNotReachedFailsAlone) {
  world.job("a", "sleep 1000");
  const auto other = world.job("b", "sleep 1000");
  world.cut_off({"b"});
  EXPECT_THAT(kill({"--yes"}),
              Ends(1, "job 1 on a: killed\njob 2 on b: may still be running\n", HasSubstr("error: b: ")));
  EXPECT_TRUE(lives(*other.pid));
  const CommandResult json = kill({"--yes", "--json"});
  EXPECT_EQ(json.code, 1);
  EXPECT_EQ(json.json(), nlohmann::json::array());
}

// The records here have them as running.
TEST_F(CommandJobKill, JobsThatAreGoneAreNotSaidToRunStill) {
  world.job("a", "sleep 1000");
  const auto removed = world.job("a", "sleep 1000");
  for (const int pid : world.servers().processes()) {
    ::kill(pid, SIGKILL);
  }
  until([&] { return world.servers().processes().empty(); }, "their end");
  fs::remove_all(world.there("a") / ".jobs" / removed.id.text());
  EXPECT_EQ(state(1), "running");
  EXPECT_EQ(state(2), "running");
  const CommandResult result = kill({"--yes"});
  EXPECT_EQ(result.code, 0) << result;
  EXPECT_THAT(result.out, AllOf(HasSubstr("job 1 on a: "), HasSubstr("job 2 on a: "),
                                Not(HasSubstr("may still be running"))));
}

TEST_F(CommandJobKill, AnInterruptWhileItWaitsIs130) {
  const auto job = world.job("a", "trap 'echo got it' TERM; echo up; while :; do sleep 0.01; done");
  const auto out = [&] {
    return read_file_if_there(world.there("a") / ".jobs" / job.id.text() / "job.out").value_or("");
  };
  until([&] { return out() == "up\n"; }, "the job's trap");
  const auto running = world.start({"job-kill", "--job", "1", "--grace", "1000"});
  until([&] { return out() == "up\ngot it\n"; }, "the signal");
  running->interrupt();
  const CommandResult result = running->wait();
  EXPECT_EQ(result.code, 130);
  EXPECT_THAT(result.err,
              ::testing::EndsWith("\ninterrupted: servers that were reached finish ending the jobs; "
                                  "see which still run with: remote job-list\n"));
}

}  // namespace
}  // namespace remote::test
