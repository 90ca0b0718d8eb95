#include <unistd.h>

#include "base/subprocess.hpp"
#include "support/processes.hpp"
#include "support/program_as.hpp"
#include "support/script_test.hpp"

// Jobs whose folder cannot be seen any more, under every sh that servers have.

namespace remote::jobs {
namespace {

class UnseenJob : public test::ScriptTest {
 protected:
  // A job of two processes beside its supervisor.
  JobId two_processes() {
    const JobId id = start("setsid sleep 1000 & echo up; exec sleep 1000");
    until_out(id, "up");
    return id;
  }
  CleanReply clean(const JobId& id) { return run(clean_action(jobs_folder, {id})).jobs.at(0); }
  // Runs, cannot be removed, and is ended with all its processes.
  void expect_it_is_seen_to_run_and_is_ended(const JobId& id) {
    const StatusReply reply = status(id);
    EXPECT_EQ(reply.phase, Phase::running);
    EXPECT_NE(reply.reason.find("its folder"), std::string::npos) << reply.reason;
    ASSERT_TRUE(reply.pid);
    EXPECT_TRUE(test::lives(*reply.pid));
    EXPECT_EQ(status(id, true).phase, Phase::running) << "a claim changes nothing";
    const CleanReply kept = clean(id);
    EXPECT_EQ(kept.outcome, CleanReply::Outcome::running);
    const KillReply reply_to_kill = kill(id, SIGTERM, 5);
    EXPECT_EQ(reply_to_kill.outcome, KillReply::Outcome::killed);
    EXPECT_GE(reply_to_kill.signalled, 2);
    EXPECT_EQ(servers.processes(), std::vector<pid_t>{});
  }
};

TEST_P(UnseenJob, ThatRunsWithoutItsFolderIsNotDead) {
  const JobId id = two_processes();
  fs::remove_all(place() / ".jobs");  // as `git clean -fdx` does
  expect_it_is_seen_to_run_and_is_ended(id);
  EXPECT_EQ(status(id).phase, Phase::none);
  EXPECT_EQ(clean(id).outcome, CleanReply::Outcome::none);
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
  EXPECT_EQ(clean(ended).outcome, CleanReply::Outcome::failed);
  EXPECT_EQ(kill(ended).outcome, KillReply::Outcome::refused);
  EXPECT_FALSE(fs::exists(place())) << "nothing is made in its place";
  fs::rename(elsewhere, place());
  EXPECT_EQ(status(ended).result(), ExitStatus::exited(3));
  EXPECT_EQ(status(running).reason, "");
  fs::rename(place(), elsewhere);
  expect_it_is_seen_to_run_and_is_ended(running);
  EXPECT_FALSE(fs::exists(place())) << "nothing is made in its place";
  fs::rename(elsewhere, place());
  EXPECT_EQ(status(running).phase, Phase::ended);
}

// A launch that is interrupted before the first byte of its start has come.
TEST_P(UnseenJob, ThatMayNotHaveStartedYetNeverWillAlsoWithoutAProject) {
  const JobId id = JobId::random();
  const auto kill_it = [&](const std::vector<JobId>& claim) {
    return run(kill_action(jobs_folder, {id}, {SIGTERM, 0, "ada"}, claim)).jobs.at(0).outcome;
  };
  EXPECT_EQ(kill_it({}), KillReply::Outcome::refused);
  EXPECT_FALSE(fs::exists(place()));
  EXPECT_EQ(kill_it({id}), KillReply::Outcome::none);
  EXPECT_EQ(start_all({{id, "echo late", "", {}}}).at(0).outcome, StartReply::Outcome::exists);
}

TEST_P(UnseenJob, ThatOneHasNoRightToSeeIsUnknown) {
  if (::geteuid() != 0 || !find_program("setpriv")) {
    GTEST_SKIP() << "needs root, to be another user";
  }
  const JobId id = two_processes();
  for (const fs::path& path :
       {servers.bin().parent_path(), servers.home("a").parent_path(), servers.home("a")}) {
    fs::permissions(path, fs::perms::all);
  }
  const auto as_nobody = [&](const auto& action) {
    return test::program_output(*connection,
                                test::program_as("exec " + find_program("setpriv")->string() +
                                                     " --reuid=65534 --regid=65534 --clear-groups",
                                                 action.script.input()));
  };
  const std::vector<fs::path> barriers{place(), place() / ".jobs", folder(id)};
  for (std::size_t i = 0; i < barriers.size(); ++i) {
    SCOPED_TRACE(barriers[i]);
    for (std::size_t k = 0; k < barriers.size(); ++k) {
      fs::permissions(barriers[k], k == i ? fs::perms::owner_all : fs::perms::all);
    }
    for (const bool claim : {false, true}) {
      const auto claims = claim ? std::vector{id} : std::vector<JobId>{};
      const auto reply =
          read_answer<StatusAnswer>(as_nobody(status_action(jobs_folder, {id}, claims))).jobs.at(0);
      EXPECT_EQ(reply.phase, Phase::unknown);
      EXPECT_NE(reply.reason.find("no right to look into"), std::string::npos) << reply.reason;
    }
    const auto kept = read_answer<CleanAnswer>(as_nobody(clean_action(jobs_folder, {id}))).jobs.at(0);
    EXPECT_EQ(kept.outcome, CleanReply::Outcome::failed);
    const auto refused =
        read_answer<KillAnswer>(as_nobody(kill_action(jobs_folder, {id}, {SIGTERM, 0, "nobody"}))).jobs.at(0);
    EXPECT_EQ(refused.outcome, KillReply::Outcome::refused);
  }
  EXPECT_EQ(status(id).phase, Phase::running);
  EXPECT_EQ(kill(id).outcome, KillReply::Outcome::killed);
}

INSTANTIATE_TEST_SUITE_P(Shells, UnseenJob, test::every_shell, test::shell_name);

}  // namespace
}  // namespace remote::jobs
