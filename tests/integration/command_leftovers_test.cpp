// Processes that a job leaves behind when it ends: they are listed, their output is copied, and they are
// stopped.

#include <csignal>

#include <unistd.h>

#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "support/command_world.hpp"
#include "support/processes.hpp"
#include "support/waiting.hpp"

namespace remote::test {
namespace {

class CommandLeftovers : public ::testing::Test {
 protected:
  void until_nothing_runs() {
    until([&] { return world.servers().processes().empty(); }, "the end of all processes");
  }
  CommandWorld world;
};

TEST_F(CommandLeftovers, AreListedUntilTheyAreEnded) {
  world.ended_job("a", "sleep 1000 & setsid sleep 1000 & exit 3", {"--tag", "x"});
  // A process shows no environment while it becomes another program.
  until([&] { return world.servers().count_running("sleep") == 2; }, "both to be what they become");
  for (int i = 0; i < 2; ++i) {
    const CommandResult list = world.run({"job-list"});
    ASSERT_EQ(list.lines().size(), 2U) << list;
    EXPECT_THAT(list.lines()[1], HasSubstr("failed exit 3 (ended, 2 processes left)"));
  }
  EXPECT_EQ(world.run({"job-list", "--json"}).json().at(0)["processes_left"], 2);
  EXPECT_THAT(world.run({"job-wait"}), Ends(0, "", HasSubstr("nothing to wait for")));
  EXPECT_THAT(
      world.run({"job-wait", "1"}).err,
      HasSubstr("2 processes still run behind the command, by `&`, nohup or tmux, which a job does not "
                "need: `remote job-kill 1` ends them"));
  EXPECT_THAT(world.run({"job-kill", "--tag", "x"}),
              Ends(0, "job 1 on a: had ended before: failed exit 3; its leftover processes were ended now\n",
                   Not("")));
  EXPECT_THAT(world.run({"job-list"}).out, Not(HasSubstr("left")));
  EXPECT_EQ(world.run({"job-list", "--json"}).json().size(), 0U);
  EXPECT_EQ(world.stored(1).state, JobState::failed);
  until_nothing_runs();
}

TEST_F(CommandLeftovers, AreForgottenWhenTheyEndByThemselves) {
  const Job job = world.ended_job("a", "(until test -e go; do sleep 0.2; done) & true");
  EXPECT_THAT(world.run({"job-list"}).out, HasSubstr("succeeded (ended, "));
  write_file_atomic(world.there("a") / "go", "");
  until_nothing_runs();
  EXPECT_THAT(world.run({"job-list"}).out, Not(HasSubstr("left")));
  EXPECT_EQ(world.run({"job-list", "--json"}).json().size(), 0U);
}

TEST_F(CommandLeftovers, AreNamedAtTheEndOfALaunchThatIsFollowed) {
  const CommandResult end =
      world.run({"launch", "--nproc-per-node", "1", "--server", "a", "--follow", "--cmd",
                 "(until test -e go; do sleep 0.2; done) >/dev/null 2>&1 & true"});
  EXPECT_EQ(end.code, 0) << end;
  EXPECT_THAT(end.err, AllOf(HasSubstr("the rank succeeded\n"), HasSubstr(" behind the command, by `&`"),
                             HasSubstr("`remote job-kill --launch 1` ends")));
  write_file_atomic(world.there("a") / "go", "");
  until_nothing_runs();
}

TEST_F(CommandLeftovers, WhatTheyWriteIsBroughtToo) {
  const Job job = world.ended_job("a", "(until test -e go; do sleep 0.2; done; echo late) & echo early");
  const auto out = [&] { return read_file(world.brought(job, "job.out")); };
  EXPECT_EQ(world.run({"job-rsync"}).code, 0);
  EXPECT_EQ(out(), "early\n");
  EXPECT_FALSE(fs::exists(world.brought(job, "complete")));
  write_file_atomic(world.there("a") / "go", "");
  until_nothing_runs();
  EXPECT_EQ(world.run({"job-rsync"}).code, 0);
  EXPECT_EQ(out(), "early\nlate\n");
  EXPECT_TRUE(fs::exists(world.brought(job, "complete")));
}

// A daemon that other processes may not inspect, like ssh-agent.
TEST_F(CommandLeftovers, WhatMayBeOfAKilledJobIsNamed) {
  if (::geteuid() != 0 || !find_program("setpriv")) {
    GTEST_SKIP() << "needs root, to give up its rights";
  }
  world.servers().add_program(
      "sh",
      "gone=-sys_ptrace,-sys_admin,-perfmon\n"
      "exec /usr/bin/setpriv --bounding-set=$gone --inh-caps=$gone /bin/dash \"$@\"\n");
  const Job job = world.job("a", undumpable_daemon("up") + "; exec sleep 1000");
  until([&] { return fs::exists(world.there("a") / "up"); }, "the daemon");
  // The daemon is a child of the job's guard while the guard is alive.
  const fs::path supervisor = world.there("a") / ".jobs" / job.id.text() / "supervisor";
  ::kill(std::stoi(read_file(supervisor)), SIGKILL);
  EXPECT_THAT(world.run({"job-kill", "--job", "1"}),
              Ends(0, "job 1 on a: the processes known to be its own were killed; see below\n",
                   HasSubstr("  job 1 on a: may belong to this job, and was not killed: pid ")));
}

}  // namespace
}  // namespace remote::test
