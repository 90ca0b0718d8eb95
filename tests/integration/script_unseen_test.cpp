#include <unistd.h>

#include "base/subprocess.hpp"
#include "support/processes.hpp"
#include "support/script_test.hpp"
#include "support/waiting.hpp"

// Jobs whose folder is no longer visible, with every sh that servers have.

namespace remote::jobs {
namespace {

class UnseenJob : public test::ScriptTest {
 protected:
  // A job with two processes besides its supervisor.
  JobId two_processes() {
    const JobId id = start("setsid sleep 1000 & echo up; exec sleep 1000");
    until_out(id, "up");
    return id;
  }
  // It runs, cannot be removed, and can be stopped with all its processes.
  void expect_it_is_seen_to_run_and_is_ended(const JobId& id) {
    const wire::JobReport reply = status(id);
    EXPECT_EQ(reply.phase, Phase::running);
    EXPECT_NE(reply.reason.find("its folder"), std::string::npos) << reply.reason;
    ASSERT_TRUE(reply.pid);
    EXPECT_TRUE(test::lives(*reply.pid));
    EXPECT_EQ(status(id, true).phase, Phase::running) << "a claim changes nothing";
    const wire::CleanedJob kept = clean(id);
    EXPECT_EQ(kept.outcome, CleanOutcome::running);
    const wire::StopResult reply_to_kill = kill(id, SIGTERM, 5);
    EXPECT_EQ(reply_to_kill.outcome, StopOutcome::killed);
    EXPECT_GE(reply_to_kill.signalled, 2);
    // Without the folder its supervisor cannot be identified. It records the end there, and exits.
    EXPECT_TRUE(test::eventually([&] { return servers.processes().empty(); }));
  }
};

TEST_P(UnseenJob, ThatRunsWithoutItsFolderIsNotDead) {
  const JobId id = two_processes();
  fs::remove_all(place() / ".jobs");  // like `git clean -fdx`
  expect_it_is_seen_to_run_and_is_ended(id);
  EXPECT_EQ(status(id).phase, Phase::none);
  EXPECT_EQ(clean(id).outcome, CleanOutcome::none);
}

TEST_P(UnseenJob, OfAProjectThatWasMovedIsNotDeadAndIsSeenAgain) {
  const JobId running = two_processes();
  const JobId ended = start("exit 3");
  wait_end(ended);
  const fs::path elsewhere = servers.home("a") / "elsewhere";
  fs::rename(place(), elsewhere);
  EXPECT_EQ(status(ended).phase, Phase::unknown);
  EXPECT_NE(status(ended).reason.find("the folder of the project"), std::string::npos)
      << status(ended).reason;
  EXPECT_EQ(status(running).phase, Phase::running);
  EXPECT_EQ(clean(ended).outcome, CleanOutcome::failed);
  EXPECT_EQ(kill(ended).outcome, StopOutcome::refused);
  EXPECT_FALSE(fs::exists(place())) << "nothing is made in its place";
  fs::rename(elsewhere, place());
  EXPECT_EQ(result_of(status(ended)), ExitStatus::exited(3));
  EXPECT_EQ(status(running).reason, "");
  fs::rename(place(), elsewhere);
  expect_it_is_seen_to_run_and_is_ended(running);
  EXPECT_FALSE(fs::exists(place())) << "nothing is made in its place";
  fs::rename(elsewhere, place());
  EXPECT_EQ(status(running).phase, Phase::ended);
}

// A launch that is interrupted before the first byte of the start request has arrived.
TEST_P(UnseenJob, ThatMayNotHaveStartedYetNeverWillAlsoWithoutAProject) {
  const JobId id = JobId::random();
  const auto kill_it = [&](const std::vector<JobId>& claim) {
    return kill_all({id}, SIGTERM, 0, claim).at(id).outcome;
  };
  EXPECT_EQ(kill_it({}), StopOutcome::refused);
  EXPECT_FALSE(fs::exists(place()));
  EXPECT_EQ(kill_it({id}), StopOutcome::none);
  EXPECT_EQ(start_all({{id, "echo late", "", {}}}).at(0).outcome, StartOutcome::exists);
}

// As after job-clean, while the launch's lifeline or a following client is still stopping its jobs.
TEST_P(UnseenJob, ThatWasRemovedIsNotMadeAgain) {
  const JobId removed = start("exit 3");
  wait_end(removed);
  EXPECT_EQ(clean(removed).outcome, CleanOutcome::removed);
  EXPECT_EQ(kill(removed, SIGTERM, 0).outcome, StopOutcome::none);
  EXPECT_EQ(status(removed).phase, Phase::none);
  EXPECT_FALSE(fs::exists(place() / ".jobs" / removed.text()));
  // A job that may not have started yet leaves a mark, so that it never starts.
  const JobId late = JobId::random();
  kill_all({late}, SIGTERM, 0, {late});
  EXPECT_TRUE(fs::exists(place() / ".jobs" / late.text()));
}

TEST_P(UnseenJob, ThatOneHasNoRightToSeeIsUnknown) {
  if (::geteuid() != 0 || !find_program("setpriv")) {
    GTEST_SKIP() << "needs root, to be another user";
  }
  const JobId id = two_processes();
  status(id);  // starts this user's agent first
  test::AsNobody nobody(servers);
  const std::vector<fs::path> barriers{place(), place() / ".jobs", folder(id)};
  for (std::size_t i = 0; i < barriers.size(); ++i) {
    SCOPED_TRACE(barriers[i]);
    for (std::size_t k = 0; k < barriers.size(); ++k) {
      fs::permissions(barriers[k], k == i ? fs::perms::owner_all : fs::perms::all);
    }
    for (const bool claim : {false, true}) {
      StateQuestion question{.folder = jobs_folder, .ids = {id}};
      question.claim = claim ? std::vector{id} : std::vector<JobId>{};
      const wire::JobReport reply = ask_state(nobody.agent(), question).jobs.at(id);
      EXPECT_EQ(reply.phase, Phase::unknown);
      EXPECT_NE(reply.reason.find("no permission to read"), std::string::npos) << reply.reason;
    }
    const wire::CleanedJob kept = ask_clean(nobody.agent(), jobs_folder, {id}).at(id);
    EXPECT_EQ(kept.outcome, CleanOutcome::failed);
    const wire::StopResult refused =
        ask_stop(nobody.agent(), {.folder = jobs_folder, .ids = {id}}).results.at(id);
    EXPECT_EQ(refused.outcome, StopOutcome::refused);
  }
  EXPECT_EQ(status(id).phase, Phase::running);
  EXPECT_EQ(kill(id).outcome, StopOutcome::killed);
}

INSTANTIATE_TEST_SUITE_P(Shells, UnseenJob, test::every_shell, test::shell_name);

}  // namespace
}  // namespace remote::jobs
