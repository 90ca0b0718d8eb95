// job-kill with the program and a real sshd: process trees from torchrun, many processes, many equal jobs,
// and processes that cannot be killed.

#include <algorithm>
#include <csignal>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/strings.hpp"
#include "jobs/stacks.hpp"
#include "support/job_journal.hpp"
#include "support/processes.hpp"
#include "support/ssh_job_world.hpp"
#include "support/waiting.hpp"

namespace remote::jobs {
namespace {

using test::eventually;
using test::SshJobWorld;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Kills a process that only the test can stop.
struct EndedByTheTest {
  pid_t pid = 0;
  ~EndedByTheTest() {
    if (pid > 1) {
      ::kill(pid, SIGKILL);
    }
  }
};

TEST(KillOverSsh, AJobOfTwoHundredProcesses) {
  SshJobWorld world;
  // Half of them have their own session and ignore TERM.
  world.run_all(
      {"i=0; while [ $i -lt 50 ]; do sleep 1000 & sleep 1000 & "
       "(setsid sh -c 'trap \"\" TERM; sleep 1000; sleep 1000' &); i=$((i + 1)); done; wait"});
  ASSERT_TRUE(eventually([&] { return world.processes().size() >= 202; }));
  const ExecResult result = world.remote({"job-kill", "--job", "1", "--grace", "1"});
  EXPECT_TRUE(result.status.success()) << result.err;
  EXPECT_EQ(result.out, "job 1 on one: killed\n");
  // The agent that answered may still be exiting.
  EXPECT_TRUE(eventually([&] { return world.processes().empty(); }));
}

TEST(KillOverSsh, OneOfFiftyWithTheSameCommand) {
  SshJobWorld world;
  const auto jobs = world.run_all(std::vector<std::string>(50, "sleep 1000 & sleep 1000 & wait"));
  const auto processes = [&] {
    std::map<std::string, std::vector<pid_t>> by_job;
    for (const pid_t pid : world.processes()) {
      const std::string environment = test::environment_of(pid);
      const std::size_t at = environment.find("REMOTE_JOB_ID=");
      by_job[at == std::string::npos ? "" : environment.substr(at + 14, 32)].push_back(pid);
    }
    return by_job;
  };
  std::map<std::string, std::vector<pid_t>> before;
  ASSERT_TRUE(eventually([&] {
    before = processes();
    before.erase("");  // without their guards
    // the shell and its two children
    return before.size() == 50 &&
           std::all_of(before.begin(), before.end(), [](const auto& one) { return one.second.size() == 3; });
  }));
  const ExecResult result = world.remote({"job-kill", "--job", "23"});
  EXPECT_TRUE(result.status.success()) << result.err;
  EXPECT_EQ(result.out, "job 23 on one: killed\n");
  before.erase(jobs[22].id.text());
  auto after = processes();
  after.erase("");
  EXPECT_EQ(after, before);
  const ExecResult listing = world.remote({"job-list", "--json"});
  std::size_t running = 0;
  for (std::size_t at = 0; (at = listing.out.find("\"state\": \"running\"", at)) != std::string::npos; ++at) {
    ++running;
  }
  EXPECT_EQ(running, 49U);
}

class KillTorchrun : public ::testing::TestWithParam<bool> {};

// torchrun starts each worker in its own session; torchrun's agent may be dead and the workers orphans.
TEST_P(KillTorchrun, LeavesNothing) {
  const bool agent_is_dead = GetParam();
  SubprocessSpec look;
  look.argv = {"/usr/bin/python3", "-c",
               "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"};
  if (::access("/usr/bin/python3", X_OK) != 0 || !run_subprocess(look).status.success()) {
    GTEST_SKIP() << "there is no torch here";
  }
  SshJobWorld world;
  make_folders(world.home() / "proj");
  write_file_atomic(world.home() / "proj/work.py",
                    "import os, signal, time\n"
                    "if os.environ['RANK'] == '0':\n"
                    "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                    "print('up', os.environ['RANK'], flush=True)\n"
                    "time.sleep(1000)\n");
  // -r and -t with a rank that does not exist: torch 1.13 fails under Python 3.11 without them. Also sets the
  // variables that a launch sets for torch: Debian 13's torchrun does not run without them.
  const auto jobs = world.run_all(
      {fmt::format(
          "exec /usr/bin/python3 -m torch.distributed.run --nnodes=1 --node_rank=0 --nproc_per_node=2 "
          "--master_addr=127.0.0.1 --master_port={} --monitor_interval=0.1 -r 9:1 -t 9:1 work.py",
          test::free_port())},
      wire::StartupFiles::python);
  const auto workers = [&] {
    std::vector<pid_t> pids = world.processes(jobs[0].id.text());
    std::erase_if(pids, [](pid_t pid) {
      const std::string line = test::command_line(pid);
      return !contains(line, "work.py") || contains(line, "torch.distributed");
    });
    return pids;
  };
  ASSERT_TRUE(eventually([&] {
    const std::string out = read_file_if_there(world.file(jobs[0], "job.out")).value_or("");
    return contains(out, "up 0") && contains(out, "up 1");
  })) << read_file_if_there(world.file(jobs[0], "job.err")).value_or("");
  ASSERT_EQ(workers().size(), 2U);
  if (agent_is_dead) {
    const std::string record = read_file(world.file(jobs[0], "pid"));
    ::kill(parse_number<pid_t>(split_words(record).at(0)).value(), SIGKILL);
    ASSERT_TRUE(eventually([&] { return test::has_ended(world.file(jobs[0], "")); }));
    ASSERT_EQ(workers().size(), 2U) << "they are orphans now";
  }
  const ExecResult result = world.remote({"job-kill", "--job", "1", "--grace", "1"});
  EXPECT_TRUE(result.status.success()) << result.err;
  EXPECT_EQ(result.out,
            agent_is_dead
                ? "job 1 on one: had ended before: failed SIGKILL; its leftover processes were ended now\n"
                : "job 1 on one: killed\n");
  EXPECT_EQ(world.processes(jobs[0].id.text()), std::vector<pid_t>{});
  EXPECT_TRUE(eventually([&] { return world.processes().empty(); })) << "the agent ends after its answer";
}

INSTANTIATE_TEST_SUITE_P(Agent, KillTorchrun, ::testing::Values(false, true),
                         [](const auto& dead) { return dead.param ? "Dead" : "Alive"; });

// A login without permission, here root without CAP_KILL, cannot kill another user's process.
TEST(KillOverSsh, WhatCannotBeKilledIsNamedAndTheJobIsNotCalledKilled) {
  SubprocessSpec able;
  able.argv = {"setpriv", "--bounding-set=-kill", "--inh-caps=-kill", "true"};
  if (::geteuid() != 0 || !find_program("setpriv") || !run_subprocess(able).status.success()) {
    GTEST_SKIP() << "needs root, to have a process of another user";
  }
  SshJobWorld world(
      {"ForceCommand exec setpriv --bounding-set=-kill --inh-caps=-kill sh -c "
       "\"$SSH_ORIGINAL_COMMAND\""});
  EndedByTheTest other;
  world.run_all(
      {"setpriv --reuid=65534 --regid=65534 --clear-groups sleep 1000 & echo $! >~/other; sleep 1000 & "
       "wait"});
  ASSERT_TRUE(eventually([&] {
    const auto text = read_file_if_there(world.home() / "other").value_or("");
    other.pid = parse_number<pid_t>(std::string(trim(text))).value_or(0);
    return other.pid > 1 && test::command_line(other.pid).starts_with("sleep");
  }));
  const ExecResult first = world.remote({"job-kill", "--job", "1", "--grace", "0"});
  EXPECT_EQ(first.status, ExitStatus::exited(1)) << first.err;
  EXPECT_EQ(first.out, "job 1 on one: NOT ended\n");
  EXPECT_TRUE(
      contains(first.err, fmt::format("still there: pid {} (sleep, user nobody, state S)", other.pid)))
      << first.err;
  EXPECT_EQ(std::count(first.err.begin(), first.err.end(), '\n'), 1) << "all others are gone\n" << first.err;
  EXPECT_EQ(::kill(other.pid, 0), 0);
  const ExecResult listing = world.remote({"job-list", "--json"});
  EXPECT_TRUE(contains(listing.out, "\"state\": \"running\"")) << listing.out;
  const ExecResult table = world.remote({"job-list"});
  EXPECT_TRUE(contains(table.out, fmt::format("asked to end, but its process {} still runs", other.pid)))
      << table.out;
  // The job is gone once that process is gone.
  ::kill(other.pid, SIGKILL);
  ASSERT_TRUE(eventually([&] {
    return contains(world.remote({"job-list", "--stopped", "--json"}).out, "\"state\": \"killed\"");
  }));
  const ExecResult second = world.remote({"job-kill", "--job", "1"});
  EXPECT_TRUE(second.status.success()) << second.err;
}

}  // namespace
}  // namespace remote::jobs
