#include <gtest/gtest.h>
#include <remote/error.hpp>

#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "jobs/kill.hpp"
#include "jobs/refresh.hpp"
#include "support/job_reports.hpp"
#include "support/job_world.hpp"
#include "support/waiting.hpp"

namespace remote::jobs {
namespace {

using test::JobWorld;

class KillJobs : public ::testing::Test {
 protected:
  KillResult kill_all(const std::vector<Job>& jobs) {
    KillRequest options;
    options.grace = std::chrono::seconds(2);
    options.by.text = "ada@laptop";
    return kill(world.site(), jobs, options);
  }
  JobWorld world;
};

TEST_F(KillJobs, EndsJobsOnTwoServersAndLeavesNothing) {
  const auto jobs = world.run_all({world.job("a", "setsid sleep 300 & trap '' TERM; sleep 300; sleep 300"),
                                   world.job("b", "exec sleep 300"), world.job("b", "exec sleep 300")});
  const KillResult result = kill_all(jobs);
  EXPECT_TRUE(result.errors.empty());
  ASSERT_EQ(result.entries.size(), 3U);
  for (const KillResult::Entry& entry : result.entries) {
    EXPECT_EQ(entry.outcome, StopOutcome::killed);
    EXPECT_EQ(entry.job.state, JobState::killed);
  }
  EXPECT_TRUE(test::eventually([&] { return world.servers.processes().empty(); }));
}

TEST_F(KillJobs, WhatWasDoneIsToldAlsoWhereItCannotBeSaved) {
  const auto jobs = world.run_all({world.job("a", "exec sleep 300"), world.job("b", "exec sleep 300")});
  Store full(world.store_folder(), [](std::string_view) { throw Error("cannot write", "the disk is full"); });
  std::optional<Error> unsaved;
  const KillResult killed =
      kill({world.config, full, world.servers, Cancel()}, jobs,
           {.grace = std::chrono::seconds(2), .by = {.kind = JobReason::Kind::by_user, .text = "ada"}}, {},
           &unsaved);
  EXPECT_TRUE(killed.errors.empty());
  ASSERT_EQ(killed.entries.size(), 2U);
  std::vector<Job> ended;
  for (const KillResult::Entry& entry : killed.entries) {
    EXPECT_EQ(entry.outcome, StopOutcome::killed);
    ended.push_back(entry.job);
  }
  ASSERT_TRUE(unsaved);
  EXPECT_EQ(unsaved->reason(), "the disk is full");
  const CleanResult cleaned = clean({world.config, full, world.servers, Cancel()}, ended);
  EXPECT_TRUE(cleaned.errors.empty());
  ASSERT_EQ(cleaned.entries.size(), 2U);
  for (const CleanResult::Entry& entry : cleaned.entries) {
    EXPECT_FALSE(entry.removed) << "its record is here";
    EXPECT_NE(entry.reason.find("the disk is full"), std::string::npos) << entry.reason;
  }
  EXPECT_EQ(world.store.list().jobs.size(), 2U);
}

TEST_F(KillJobs, AServerThatIsSilentIsAnErrorAndTheOtherIsDone) {
  for (const auto member : {&test::Faults::before, &test::Faults::after, &test::Faults::cut}) {
    world.servers.set_faults({});
    const auto jobs = world.run_all({world.job("a", "exec sleep 300"), world.job("b", "exec sleep 300")});
    world.break_next(member, 5);
    const KillResult result = kill_all(jobs);
    // If only the answer was lost, a second request finds that the jobs have ended.
    ASSERT_EQ(result.errors.size() + result.entries.size(), 2U);
    ASSERT_GE(result.entries.size(), 1U);
    if (member != &test::Faults::cut) {
      EXPECT_EQ(result.errors.size(), member == &test::Faults::before ? 1U : 0U);
    }
    for (const KillResult::Entry& entry : result.entries) {
      EXPECT_TRUE(result.errors.empty() || result.errors[0].server() != entry.job.server);
      EXPECT_EQ(entry.job.state, JobState::killed);
      EXPECT_EQ(entry.outcome, StopOutcome::killed);
    }
    world.servers.set_faults({});
    // A second request reports both as ended, and which ended before it.
    EXPECT_TRUE(kill_all(jobs).errors.empty());
    for (const Job& job : world.store.list().jobs) {
      EXPECT_EQ(job.state, JobState::killed);
    }
  }
  EXPECT_TRUE(test::eventually([&] { return world.servers.processes().empty(); }));
}

TEST_F(KillJobs, AJobWhoseFolderIsGoneIsEndedAndWasStarted) {
  const auto jobs = world.run_all({world.job("a", "exec sleep 300"), world.job("a", "exec sleep 300")});
  // A supervisor that has not started its job yet would exit with its folder.
  ASSERT_TRUE(test::eventually([&] { return world.servers.count_running("sleep") == 2; }));
  std::filesystem::remove_all(world.servers.home("a") / "proj/.jobs");
  KillResult result = kill_all({jobs[0]});
  ASSERT_EQ(result.entries.size(), 1U);
  EXPECT_EQ(result.entries[0].outcome, StopOutcome::killed);
  EXPECT_EQ(ask_over(*world.servers.connect("a"), world.store, {jobs[1]}, Cancel()).at(0).state,
            JobState::running);
  EXPECT_EQ(kill_all({jobs[1]}).entries.at(0).outcome, StopOutcome::killed);
  EXPECT_TRUE(test::eventually([&] { return world.servers.processes().empty(); }));
  result = kill_all({jobs[0]});
  EXPECT_EQ(result.entries.at(0).outcome, StopOutcome::ended);
  EXPECT_EQ(result.entries.at(0).job.state, JobState::lost);
}

// As after the server's address in configs.yaml was changed and the project was prepared there.
TEST_F(KillJobs, AnotherMachineAtTheAddressClaimsNoEnd) {
  const auto jobs = world.run_all({world.job("a", "exec sleep 300")});
  EXPECT_EQ(kill_all(jobs).entries.at(0).outcome, StopOutcome::killed);
  std::filesystem::remove_all(world.folder(jobs[0]));
  Job job = jobs[0];
  job.machine = "12ab";
  for (const JobState state : {JobState::running, JobState::lost}) {
    job.state = state;  // older versions stored `lost`
    job.reason = {.kind = state == JobState::lost ? JobReason::Kind::other_machine : JobReason::Kind::none};
    const KillResult result = kill_all({job});
    ASSERT_EQ(result.entries.size(), 1U);
    EXPECT_EQ(result.entries[0].outcome, StopOutcome::refused);
    EXPECT_EQ(result.entries[0].reason,
              "another machine answers at the server's address than the one that ran it");
  }
}

}  // namespace
}  // namespace remote::jobs
