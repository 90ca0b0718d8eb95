#include "jobs/refresh.hpp"

#include <gmock/gmock.h>
#include <remote/error.hpp>
#include <sys/stat.h>

#include "jobs/kill.hpp"
#include "support/job_journal.hpp"
#include "support/job_world.hpp"
#include "support/waiting.hpp"

namespace remote::jobs {
namespace {

using std::chrono::seconds;
using test::JobWorld;

class RefreshJobs : public ::testing::Test {
 protected:
  News refresh_all(std::vector<Job> jobs) { return refresh(world.site(), std::move(jobs), seconds(20)); }
  JobWorld world;
};

TEST_F(RefreshJobs, OneExecAServerAndNoneForEndedJobs) {
  const auto jobs = world.run_all(
      {world.job("a", "exec sleep 300"), world.job("a", "exit 3"), world.job("b", "exec sleep 300")});
  ASSERT_TRUE(test::eventually([&] { return test::has_ended(world.folder(jobs[1])); }));
  int before = world.servers.commands();
  News news = refresh_all(jobs);
  EXPECT_EQ(world.servers.commands() - before, 2);
  EXPECT_EQ(news.jobs[0].state, JobState::running);
  EXPECT_EQ(news.jobs[1].state, JobState::failed);
  EXPECT_EQ(news.jobs[2].state, JobState::running);
  EXPECT_EQ(world.store.list().jobs[1].state, JobState::failed);
  before = world.servers.commands();
  EXPECT_EQ(refresh_all({news.jobs[1]}).jobs[0].state, JobState::failed);
  EXPECT_EQ(world.servers.commands(), before);
}

TEST_F(RefreshJobs, SilenceIsUnknownAndNeverStored) {
  const auto jobs = world.run_all({world.job("a", "exec sleep 300"), world.job("b", "exec sleep 300")});
  for (const auto member : {&test::Faults::before, &test::Faults::after, &test::Faults::cut}) {
    world.break_next(member, 30);
    const News news = refresh_all(jobs);
    ASSERT_EQ(news.silent.size(), 1U);
    const std::size_t silent = news.silent[0].server() == "a" ? 0 : 1;
    EXPECT_EQ(news.jobs[silent].state, JobState::unknown);
    EXPECT_EQ(news.jobs[silent].reason.kind, JobReason::Kind::no_answer);
    EXPECT_EQ(news.jobs[1 - silent].state, JobState::running);
    for (const Job& job : world.store.list().jobs) {
      EXPECT_EQ(job.state, JobState::running);
    }
  }
}

// Each piece of the answer takes a while, and together they take longer than the silence limit.
TEST_F(RefreshJobs, ALongAnswerIsHeardToItsEnd) {
  std::vector<NewJob> entries(8, world.job("a", "exit 3"));
  for (NewJob& entry : entries) {
    entry = world.job("a", "exit 3");
  }
  const auto jobs = world.run_all(entries);
  for (const Job& job : jobs) {
    ASSERT_TRUE(test::eventually([&] { return test::has_ended(world.folder(job)); }));
  }
  world.servers.add_program("stat", "sleep 0.4\nexec /usr/bin/stat \"$@\"\n");
  const News news = refresh(world.site(), jobs, seconds(2));
  EXPECT_TRUE(news.silent.empty());
  for (const Job& job : news.jobs) {
    EXPECT_EQ(job.state, JobState::failed);
  }
}

TEST_F(RefreshJobs, AForgottenServerHidesNoOthers) {
  const auto jobs = world.run_all({world.job("a", "exec sleep 300"), world.job("b", "exec sleep 300")});
  world.config.servers.pop_back();
  const News news = refresh_all(jobs);
  EXPECT_EQ(news.jobs[0].state, JobState::running);
  EXPECT_EQ(news.jobs[1].state, JobState::unknown);
  ASSERT_EQ(news.silent.size(), 1U);
  EXPECT_EQ(news.silent[0].server(), "b");
}

TEST_F(RefreshJobs, NewsAreTrueAlsoWhereTheyCannotBeSaved) {
  const auto jobs = world.run_all({world.job("a", "exit 3"), world.job("b", "exec sleep 300")});
  ASSERT_TRUE(test::eventually([&] { return test::has_ended(world.folder(jobs[0])); }));
  Store full(world.store_folder(), [](std::string_view) { throw Error("cannot write", "the disk is full"); });
  const News news = refresh({world.config, full, world.servers, Cancel()}, jobs, seconds(20));
  EXPECT_TRUE(news.silent.empty());
  ASSERT_TRUE(news.unsaved);
  EXPECT_EQ(news.unsaved->reason(), "the disk is full");
  EXPECT_EQ(news.jobs[0].state, JobState::failed);
  EXPECT_EQ(news.jobs[1].state, JobState::running);
}

TEST_F(RefreshJobs, ALostJobIsAskedAboutAgainAndFound) {
  const Job job = world.run("a", "echo up; exec sleep 300");
  ASSERT_TRUE(
      test::eventually([&] { return world.file(job, "job.out") == "up\n"; }));  // it is done with its folder
  const std::filesystem::path elsewhere = world.servers.home("a") / "elsewhere";
  std::filesystem::rename(world.folder(job), elsewhere);
  News news = refresh_all({job});
  EXPECT_EQ(news.jobs[0].state, JobState::running) << "its folder is gone, its processes are not";
  EXPECT_THAT(news.jobs[0].reason.text, ::testing::HasSubstr("its folder"));
  // as recorded by a program that checked only the folder
  Job lost = job;
  lost.state = JobState::lost;
  lost.reason = {.kind = JobReason::Kind::folder_gone};
  EXPECT_EQ(refresh_all({lost}).jobs[0].state, JobState::running);
  std::filesystem::rename(elsewhere, world.folder(job));
  news = refresh_all({lost});
  EXPECT_EQ(news.jobs[0].state, JobState::running);
  EXPECT_EQ(news.jobs[0].reason.kind, JobReason::Kind::none);
  // an unknown state does not update it
  std::filesystem::rename(world.servers.home("a") / "proj", elsewhere);
  kill(world.site(), {job}, {.grace = seconds(2), .by = {.kind = JobReason::Kind::by_user, .text = "ada"}});
  EXPECT_EQ(refresh_all({lost}).jobs[0], lost);
  EXPECT_EQ(refresh_all({job}).jobs[0].state, JobState::unknown);
}

}  // namespace
}  // namespace remote::jobs
