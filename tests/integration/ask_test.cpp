#include "jobs/ask.hpp"

#include <gtest/gtest.h>
#include <remote/error.hpp>
#include <sys/stat.h>

#include "support/job_world.hpp"
#include "support/waiting.hpp"

namespace remote::jobs {
namespace {

using std::chrono::seconds;
using test::JobWorld;

class AskServers : public ::testing::Test {
 protected:
  News ask_all(std::vector<Job> jobs) {
    return ask(world.config, world.store, world.servers, std::move(jobs), seconds(20), Cancel());
  }
  JobWorld world;
};

TEST_F(AskServers, OneExecAServerAndNoneForEndedJobs) {
  const auto jobs = world.run_all(
      {world.job("a", "exec sleep 300"), world.job("a", "exit 3"), world.job("b", "exec sleep 300")});
  ASSERT_TRUE(test::eventually([&] { return !world.file(jobs[1], "result").empty(); }));
  int before = world.servers.commands();
  News news = ask_all(jobs);
  EXPECT_EQ(world.servers.commands() - before, 2);
  EXPECT_EQ(news.jobs[0].state, State::running);
  EXPECT_EQ(news.jobs[1].state, State::failed);
  EXPECT_EQ(news.jobs[2].state, State::running);
  EXPECT_EQ(world.store.list().jobs[1].state, State::failed);
  before = world.servers.commands();
  EXPECT_EQ(ask_all({news.jobs[1]}).jobs[0].state, State::failed);
  EXPECT_EQ(world.servers.commands(), before);
}

TEST_F(AskServers, SilenceIsUnknownAndNeverStored) {
  const auto jobs = world.run_all({world.job("a", "exec sleep 300"), world.job("b", "exec sleep 300")});
  for (const auto member : {&test::Faults::before, &test::Faults::after, &test::Faults::cut}) {
    test::Faults faults;
    faults.*member = world.servers.commands() + 1;
    faults.cut_bytes = 30;
    world.servers.set_faults(faults);
    const News news = ask_all(jobs);
    ASSERT_EQ(news.silent.size(), 1U);
    const std::size_t silent = news.silent[0].server() == "a" ? 0 : 1;
    EXPECT_EQ(news.jobs[silent].state, State::unknown);
    EXPECT_EQ(news.jobs[silent].reason.kind, JobReason::Kind::no_answer);
    EXPECT_EQ(news.jobs[1 - silent].state, State::running);
    for (const Job& job : world.store.list().jobs) {
      EXPECT_EQ(job.state, State::running);
    }
  }
}

TEST_F(AskServers, AForgottenServerHidesNoOthers) {
  const auto jobs = world.run_all({world.job("a", "exec sleep 300"), world.job("b", "exec sleep 300")});
  world.config.servers.pop_back();
  const News news = ask_all(jobs);
  EXPECT_EQ(news.jobs[0].state, State::running);
  EXPECT_EQ(news.jobs[1].state, State::unknown);
  ASSERT_EQ(news.silent.size(), 1U);
  EXPECT_EQ(news.silent[0].server(), "b");
}

TEST_F(AskServers, NewsAreTrueAlsoWhereTheyCannotBeSaved) {
  const auto jobs = world.run_all({world.job("a", "exit 3"), world.job("b", "exec sleep 300")});
  ASSERT_TRUE(test::eventually([&] { return !world.file(jobs[0], "result").empty(); }));
  Store full(world.store_folder(), [](std::string_view) { throw Error("cannot write", "the disk is full"); });
  const News news = ask(world.config, full, world.servers, jobs, seconds(20), Cancel());
  EXPECT_TRUE(news.silent.empty());
  ASSERT_TRUE(news.unsaved);
  EXPECT_EQ(news.unsaved->reason(), "the disk is full");
  EXPECT_EQ(news.jobs[0].state, State::failed);
  EXPECT_EQ(news.jobs[1].state, State::running);
}

}  // namespace
}  // namespace remote::jobs
