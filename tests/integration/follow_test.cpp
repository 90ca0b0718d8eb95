#include "jobs/follow.hpp"

#include <atomic>
#include <csignal>
#include <fstream>
#include <map>
#include <mutex>
#include <numeric>

#include <gtest/gtest.h>
#include <remote/error.hpp>

#include "base/strings.hpp"
#include "ssh/path.hpp"
#include "support/job_journal.hpp"
#include "support/job_world.hpp"
#include "support/no_threads.hpp"
#include "support/processes.hpp"
#include "support/waiting.hpp"

namespace remote::jobs {
namespace {

using std::chrono::milliseconds;
using test::eventually;
using test::JobWorld;
using clock = std::chrono::steady_clock;

// The events that following reported.
struct Heard {
  std::mutex mutex;
  std::map<std::size_t, std::string> out;
  std::map<std::size_t, std::string> err;
  std::map<std::size_t, Job> ended;
  std::vector<Event> news;
  std::vector<std::string> settled;
  std::function<void()> on_output;
  std::function<void(const Event&)> on_link;

  FollowEvents events() {
    FollowEvents result;
    result.output = [this](std::size_t index, ssh::Stream stream, std::string_view data) {
      {
        const std::lock_guard lock(mutex);
        EXPECT_FALSE(ended.contains(index)) << "output after the end was told";
        (stream == ssh::Stream::out ? out : err)[index].append(data);
      }
      if (on_output) {
        on_output();
      }
    };
    result.ended = [this](std::size_t index, const Job& job) {
      const std::lock_guard lock(mutex);
      EXPECT_FALSE(ended.contains(index)) << "its end was told twice";
      ended[index] = job;
    };
    result.link = [this](const Event& event) {
      {
        const std::lock_guard lock(mutex);
        news.push_back(event);
      }
      if (on_link) {
        on_link(event);
      }
    };
    result.settled = [this](const std::string& server) {
      const std::lock_guard lock(mutex);
      settled.push_back(server);
    };
    return result;
  }
};

class FollowJobs : public ::testing::Test {
 protected:
  FollowResult follow_all(const std::vector<Job>& jobs, const FollowOptions& options = {},
                          const Cancel& cancel = Cancel()) {
    return follow({world.config, world.store, world.servers, cancel}, jobs, options, heard.events());
  }
  void expect_all_heard(const std::vector<Job>& jobs) {
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      EXPECT_TRUE(heard.out[i] == world.file(jobs[i], "job.out"))
          << i << ": " << heard.out[i].size() << " of " << world.file(jobs[i], "job.out").size();
      EXPECT_TRUE(heard.err[i] == world.file(jobs[i], "job.err")) << i;
    }
  }
  JobWorld world;
  Heard heard;
};

// Two megabytes, in pieces with pauses, so that the job is followed while it writes.
const std::string talker =
    "i=0; while [ $i -lt 40 ]; do head -c 39000 /dev/urandom | base64 -w 70; echo err $i >&2; "
    "i=$((i + 1)); sleep 0.01; done; printf 'no newline'; exit 7";

TEST_F(FollowJobs, HearsAllOfOneJob) {
  const std::vector<Job> jobs{world.run("a", talker)};
  const FollowResult result = follow_all(jobs);
  EXPECT_TRUE(result.errors.empty());
  expect_all_heard(jobs);
  EXPECT_EQ(heard.settled, std::vector<std::string>{"a"});
  EXPECT_GT(heard.out[0].size(), 2000000U);
  EXPECT_EQ(result.jobs[0].state, JobState::failed);
  EXPECT_EQ(result.jobs[0].result, ExitStatus::exited(7));
  EXPECT_EQ(heard.ended[0].state, JobState::failed);
  EXPECT_EQ(world.store.list().jobs.at(0).state, JobState::failed);
}

TEST_F(FollowJobs, LosesNothingWhenTheLinkIsCutTwentyTimes) {
  const std::vector<Job> jobs{world.run("a", talker)};
  std::atomic<int> cuts{0};
  const auto arm = [&] {
    test::Faults faults;
    if (cuts < 20) {
      faults.cut = world.servers.commands() + 1;
      faults.cut_bytes = static_cast<std::size_t>(1000 + cuts * 7919);
    }
    world.servers.set_faults(faults);
  };
  heard.on_link = [&](const Event& event) {
    if (std::holds_alternative<LinkLost>(event)) {
      ++cuts;
      arm();
    }
  };
  arm();
  const auto begin = clock::now();
  const FollowResult result = follow_all(jobs);
  EXPECT_TRUE(result.errors.empty());
  EXPECT_EQ(cuts, 20);
  EXPECT_EQ(heard.news.size(), 40U) << "each cut and each return is told once";
  expect_all_heard(jobs);
  EXPECT_EQ(result.jobs[0].state, JobState::failed);
  EXPECT_LT(clock::now() - begin, std::chrono::seconds(80))
      << "otherwise the pauses add up to 83 s";  // up to 5 s each
  EXPECT_EQ(heard.settled, std::vector<std::string>{"a"}) << "it is told once";
}

TEST_F(FollowJobs, AHintAboutLostPacketsIsToldOncePerServer) {
  const std::vector<Job> jobs{world.run("a", talker)};
  std::vector<std::string> hints;
  const auto arm = [&] {
    test::Faults faults;
    faults.cut = hints.size() < 3 ? world.servers.commands() + 1 : 0;
    faults.cut_bytes = 1000;
    faults.lost_packets = !hints.empty();
    world.servers.set_faults(faults);
  };
  heard.on_link = [&](const Event& event) {
    if (const auto* lost = std::get_if<LinkLost>(&event)) {
      hints.push_back(lost->hint);
      arm();
    }
  };
  arm();
  EXPECT_TRUE(follow_all(jobs).errors.empty());
  EXPECT_EQ(hints, (std::vector<std::string>{"", ssh::path_hint, ""}));
}

// The server's login shells hang before they answer, while a file exists.
class Hanging : public ssh::Connector {
 public:
  explicit Hanging(test::LocalServers& servers) : servers_(servers), mark_(servers.bin() / "hang") {}
  void hang(bool on) const {
    if (on) {
      std::ofstream(mark_).flush();
    } else {
      std::filesystem::remove(mark_);
    }
  }
  std::unique_ptr<ssh::Connection> connect(const config::Server& server, const Cancel& cancel,
                                           ssh::ConnectLimit limit) override {
    auto connection = servers_.connect(server, cancel, limit);
    connection->set_answer_time(milliseconds(2000));
    return connection;
  }

 private:
  test::LocalServers& servers_;
  std::filesystem::path mark_;
};

TEST_F(FollowJobs, AServerThatHasAnsweredIsWaitedForWhileItsShellsHang) {
  const std::vector<Job> jobs{world.run("a", talker)};
  Hanging server(world.servers);
  std::atomic<int> losses{0};
  heard.on_link = [&](const Event& event) {
    if (std::holds_alternative<LinkLost>(event)) {
      server.hang(++losses == 1);
    }
  };
  test::Faults faults;
  faults.cut = world.servers.commands() + 1;
  faults.cut_bytes = 100000;
  world.servers.set_faults(faults);
  const FollowResult result = follow({world.config, world.store, server, Cancel()}, jobs, {}, heard.events());
  EXPECT_TRUE(result.errors.empty());
  EXPECT_EQ(losses, 2) << "the cut, and the silence after it";
  expect_all_heard(jobs);
}

TEST_F(FollowJobs, AServerWhoseShellHangsFromTheBeginningIsAnError) {
  const std::vector<Job> jobs{world.run("a", "exec sleep 1000")};
  Hanging server(world.servers);
  server.hang(true);
  const FollowResult result = follow({world.config, world.store, server, Cancel()}, jobs, {}, heard.events());
  ASSERT_FALSE(result.errors.empty());
  EXPECT_EQ(result.errors[0].cause(), Cause::timeout);
  server.hang(false);
}

TEST_F(FollowJobs, FollowsSeveralJobsOnSeveralServersThroughCuts) {
  std::vector<NewJob> entries;
  for (int i = 0; i < 6; ++i) {
    entries.push_back(world.job(i % 2 == 0 ? "a" : "b", talker));
  }
  const std::vector<Job> jobs = world.run_all(std::move(entries));
  std::atomic<int> cuts{0};
  heard.on_link = [&](const Event& event) {
    if (std::holds_alternative<LinkLost>(event) && ++cuts < 8) {
      world.break_next(&test::Faults::cut, 150000);
    }
  };
  test::Faults faults;
  faults.cut = world.servers.commands() + 2;
  faults.cut_bytes = 100000;
  world.servers.set_faults(faults);
  const FollowResult result = follow_all(jobs);
  EXPECT_TRUE(result.errors.empty());
  EXPECT_GE(cuts, 3);
  expect_all_heard(jobs);
  EXPECT_EQ(heard.ended.size(), 6U);
}

TEST_F(FollowJobs, TwelveJobsWhereAConnectionTakesOneChannel) {
  std::vector<NewJob> entries;
  for (int i = 0; i < 12; ++i) {
    entries.push_back(
        world.job("a", "echo begin; while ! [ -e ~/go ]; do sleep 0.2; done; echo end $REMOTE_JOB_ID"));
  }
  const std::vector<Job> jobs = world.run_all(std::move(entries));
  test::Faults faults;
  faults.max_channels = 1;
  world.servers.set_faults(faults);
  // They end only when all are followed at the same time.
  heard.on_output = [&] {
    const std::lock_guard lock(heard.mutex);
    if (heard.out.size() == 12) {
      std::ofstream(world.servers.home("a") / "go") << "";
    }
  };
  const auto begin = clock::now();
  const FollowResult result = follow_all(jobs);
  EXPECT_TRUE(result.errors.empty());
  expect_all_heard(jobs);
  EXPECT_EQ(heard.ended.size(), 12U);
  EXPECT_LT(clock::now() - begin, test::patience);
}

TEST_F(FollowJobs, BeginsWithTheLastLinesAndKeepsItsPlaceWhenCut) {
  const Job job = world.run("a", "seq 1 5000; while ! [ -e ~/go ]; do sleep 0.2; done; seq 5001 9000");
  ASSERT_TRUE(eventually([&] { return world.file(job, "job.out").ends_with("5000\n"); }));
  world.break_next(&test::Faults::cut, 260);  // around FollowBegins
  std::atomic<bool> lost{false};
  heard.on_link = [&](const Event&) { lost = true; };
  heard.on_output = [&] { std::ofstream(world.servers.home("a") / "go") << ""; };
  FollowOptions options;
  options.lines = 50;
  const FollowResult result = follow_all({job}, options);
  EXPECT_TRUE(result.errors.empty());
  const std::string all = world.file(job, "job.out");
  EXPECT_EQ(heard.out[0], all.substr(all.find("\n4951\n") + 1));
  EXPECT_TRUE(lost);
}

TEST_F(FollowJobs, OnlyWaitsForTheSilentOnes) {
  const std::vector<Job> jobs =
      world.run_all({world.job("a", "echo one; sleep 0.3"), world.job("a", "echo two; sleep 0.3; exit 4")});
  FollowOptions options;
  options.silent = {false, true};
  const FollowResult result = follow_all(jobs, options);
  EXPECT_TRUE(result.errors.empty());
  EXPECT_EQ(heard.out[0], "one\n");
  EXPECT_EQ(heard.out.count(1), 0U);
  EXPECT_EQ(heard.ended[1].result, ExitStatus::exited(4));
}

TEST_F(FollowJobs, ShowsWhatAnEndedJobLeft) {
  const Job job = world.run("a", "echo out; echo err >&2; exit 3");
  ASSERT_TRUE(eventually([&] { return test::has_ended(world.folder(job)); }));
  const FollowResult result = follow_all({job});
  EXPECT_TRUE(result.errors.empty());
  EXPECT_EQ(heard.out[0], "out\n");
  EXPECT_EQ(heard.err[0], "err\n");
  EXPECT_EQ(result.jobs[0].result, ExitStatus::exited(3));
}

TEST_F(FollowJobs, StopsAtTheEndOfWhatIsThereAlsoWhenMoreKeepsComing) {
  const Job job = world.run("a", "while :; do echo y; done");
  ASSERT_TRUE(eventually([&] { return world.file(job, "job.out").size() > 100; }));
  FollowOptions options;
  options.follow = false;
  options.lines = 10;
  const auto begin = clock::now();
  const FollowResult result = follow_all({job}, options);
  EXPECT_LT(clock::now() - begin, test::patience);
  EXPECT_TRUE(result.errors.empty());
  EXPECT_GE(heard.out[0].size(), 20U);
  EXPECT_EQ(result.jobs[0].state, JobState::running);
}

TEST_F(FollowJobs, FollowsAJobWhoseSupervisorWasKilled) {
  const Job job = world.run("a", "echo one; while ! [ -e ~/go ]; do sleep 0.2; done; echo two");
  const auto supervisor = parse_number<int>(split_words(world.file(job, "supervisor")).at(0));
  ASSERT_TRUE(supervisor);
  ASSERT_EQ(::kill(*supervisor, SIGKILL), 0);
  heard.on_output = [&] { std::ofstream(world.servers.home("a") / "go") << ""; };
  const FollowResult result = follow_all({job});
  EXPECT_TRUE(result.errors.empty());
  EXPECT_EQ(heard.out[0], "one\ntwo\n");
  EXPECT_EQ(result.jobs[0].state, JobState::lost) << "nobody was there to see its result";
}

// A shell that prints on both streams, with and without a final newline, before it reads its script.
TEST_F(FollowJobs, PassesByWhatALoginShellPrints) {
  const Job job = world.run("a", talker);
  const auto sh = world.servers.bin() / "sh";
  const auto real = std::filesystem::read_symlink(sh);
  std::filesystem::remove(sh);
  std::ofstream(sh) << "#!" << real.string() << "\n"
                    << "[ \"$1\" != -c ] || { echo Welcome; printf 'disk quota\\nfine\\n' >&2; }\n"
                    << "exec " << real.string() << " \"$@\"\n";
  std::filesystem::permissions(sh, std::filesystem::perms::owner_all);
  const FollowResult result = follow_all({job});
  EXPECT_TRUE(result.errors.empty());
  expect_all_heard({job});
}

TEST_F(FollowJobs, GivesUpOnAShellThatRunsNothing) {
  const Job job = world.run("a", "exec sleep 60");
  const auto sh = world.servers.bin() / "sh";
  std::filesystem::remove(sh);
  std::ofstream(sh) << "#!/bin/dash\nexit 0\n";
  std::filesystem::permissions(sh, std::filesystem::perms::owner_all);
  const auto begin = clock::now();
  const FollowResult result = follow_all({job});
  ASSERT_EQ(result.errors.size(), 1U);
  EXPECT_NE(result.errors[0].reason().find("its login shell ended"), std::string::npos);
  EXPECT_LT(clock::now() - begin, test::patience);
}

TEST_F(FollowJobs, ASlowScreenLosesNothing) {
  const std::vector<Job> jobs{world.run("a", talker)};
  heard.on_output = [] { std::this_thread::sleep_for(milliseconds(10)); };  // slow reader
  EXPECT_TRUE(follow_all(jobs).errors.empty());
  expect_all_heard(jobs);
}

// A job that cannot be followed does not end the following of other jobs.
TEST_F(FollowJobs, OneBadJobDoesNotHideTheOthers) {
  std::vector<Job> jobs = world.run_all({world.job("a", talker), world.job("b", "echo b; sleep 0.2")});
  Job missing = world.job("a", "true").job;      // unknown to the server
  Job homeless = world.job("gone", "true").job;  // not in configs.yaml
  jobs.insert(jobs.begin(), {missing, homeless});
  const FollowResult result = follow_all(jobs);
  EXPECT_EQ(result.errors.size(), 2U);
  EXPECT_EQ(heard.ended.size(), 2U);
  EXPECT_TRUE(heard.out[2] == world.file(jobs[2], "job.out"));
  EXPECT_EQ(heard.out[3], "b\n");
}

// Both servers, but b is unreachable.
class WithoutB : public ssh::Connector {
 public:
  explicit WithoutB(test::LocalServers& servers) : servers_(servers) {}
  std::unique_ptr<ssh::Connection> connect(const config::Server& server, const Cancel& cancel,
                                           ssh::ConnectLimit limit) override {
    if (server.name == "b") {
      throw ssh::Unreachable("cannot connect", "no route");
    }
    return servers_.connect(server, cancel, limit);
  }

 private:
  test::LocalServers& servers_;
};

TEST_F(FollowJobs, AServerThatCannotBeReachedIsAnErrorAndTheOtherIsFollowed) {
  const std::vector<Job> jobs = world.run_all({world.job("a", "echo a"), world.job("b", "echo b")});
  WithoutB connector(world.servers);
  const FollowResult result =
      follow({world.config, world.store, connector, Cancel()}, jobs, {}, heard.events());
  ASSERT_EQ(result.errors.size(), 1U);
  EXPECT_EQ(result.errors[0].server(), "b");
  EXPECT_EQ(heard.out[0], "a\n");
}

TEST_F(FollowJobs, WithoutThreadsNothingIsFollowedAndThatIsSaid) {
  const std::vector<Job> jobs = world.run_all({world.job("a", "echo a"), world.job("b", "echo b")});
  const test::NoThreads none;
  const FollowResult result = follow_all(jobs);
  ASSERT_EQ(result.errors.size(), 2U);
  EXPECT_EQ(result.errors[1].server(), "b");
  EXPECT_EQ(result.errors[1].what_failed(), "cannot start a thread");
}

TEST_F(FollowJobs, AServerThatIsGoneForGoodIsGivenUpOnceTheOthersHaveEnded) {
  std::vector<NewJob> entries{world.job("a", "until [ -e ~/go ]; do sleep 0.2; done; exit 1"),
                              world.job("b", "echo b")};
  entries[0].job.launch = entries[1].job.launch = JobId::random();
  const std::vector<Job> jobs = world.run_all(std::move(entries));
  WithoutB connector(world.servers);
  heard.on_link = [&](const Event&) { std::ofstream(world.servers.home("a") / "go") << ""; };
  FollowOptions options;
  options.patience = std::chrono::seconds(600);
  options.lost_after = std::chrono::seconds(0);
  options.loss_grace = std::chrono::seconds(1);
  const FollowResult result =
      follow({world.config, world.store, connector, Cancel()}, jobs, options, heard.events());
  ASSERT_EQ(result.errors.size(), 1U);
  EXPECT_EQ(result.errors[0].server(), "b");
  EXPECT_EQ(result.gone, std::vector<std::string>{"b"});
  EXPECT_EQ(heard.ended[0].state, JobState::failed);
  EXPECT_EQ(heard.ended[1].state, JobState::unknown);
  EXPECT_EQ(result.jobs[1].state, JobState::unknown);
  EXPECT_EQ(world.store.list().jobs.at(1).state, JobState::running) << "silence is not stored";
}

TEST_F(FollowJobs, WithPatienceAServerThatIsAwayAtFirstIsTriedAgain) {
  const std::vector<Job> jobs = world.run_all({world.job("b", "echo b")});
  class AwayAtFirst : public ssh::Connector {
   public:
    explicit AwayAtFirst(test::LocalServers& servers) : servers_(servers) {}
    std::unique_ptr<ssh::Connection> connect(const config::Server& server, const Cancel& cancel,
                                             ssh::ConnectLimit limit) override {
      if (++calls < 3) {
        throw ssh::Unreachable("cannot connect", "no route");
      }
      return servers_.connect(server, cancel, limit);
    }
    int calls = 0;

   private:
    test::LocalServers& servers_;
  } connector(world.servers);
  FollowOptions options;
  options.patience = std::chrono::seconds(60);
  const FollowResult result =
      follow({world.config, world.store, connector, Cancel()}, jobs, options, heard.events());
  EXPECT_TRUE(result.errors.empty());
  EXPECT_EQ(connector.calls, 3);
  EXPECT_EQ(heard.out[0], "b\n");
}

TEST_F(FollowJobs, CancelEndsItAtOnceAndTheJobGoesOn) {
  const std::vector<Job> jobs =
      world.run_all({world.job("a", "echo here; exec sleep 300"), world.job("b", "exec sleep 300")});
  Cancel cancel;
  clock::time_point when;
  heard.on_output = [&] {
    when = clock::now();
    cancel.cancel();
  };
  EXPECT_THROW(follow_all(jobs, {}, cancel), Interrupted);
  EXPECT_LT(clock::now() - when, test::patience);
  EXPECT_TRUE(heard.ended.empty());
  // Nothing of the following is left on the servers, and all of the jobs are.
  EXPECT_TRUE(eventually([&] {
    for (const int pid : world.servers.processes()) {
      if (test::command_line(pid).find(std::string("remote-agent\0serve", 18)) != std::string::npos) {
        return false;
      }
    }
    return true;
  }));
  for (const Job& job : jobs) {
    const auto pid = parse_number<int>(split_words(world.file(job, "pid")).at(0));
    EXPECT_EQ(::kill(*pid, 0), 0);
  }
}

}  // namespace
}  // namespace remote::jobs
