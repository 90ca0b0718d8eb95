#include "agent/launch/hang_watch.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>

#include "agent/fake_host.hpp"
#include "agent/host/files.hpp"
#include "agent/job_folders.hpp"
#include "agent/started.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

using rules::Seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A process of a job that uses one full processor.
test::Started run_busy(const std::string& id) {
  return test::Started([&] {
    std::string variable = "REMOTE_JOB_ID=" + id;
    std::string name = "sh";
    std::string option = "-c";
    std::string text = "while :; do :; done";
    char* argv[] = {name.data(), option.data(), text.data(), nullptr};
    char* variables[] = {variable.data(), nullptr};
    ::execve("/bin/sh", argv, variables);
    ::_exit(98);
  });
}

class HangWatchTest : public ::testing::Test, public rules::LaunchActs, public HangWatchActs {
 protected:
  HangWatchTest() {
    spec.server = "a";
    spec.servers = {{"a", 1, ""}};
    spec.jobs = {{id, 0}};
    spec.notifies = true;
    spec.hang = {.seconds = 6, .response = wire::HangResponse::leave};
    put_agent("echo \"$*\"");
  }

  // LaunchActs and HangWatchActs
  void broadcast(const wire::LinkMessage& message) override { sent.push_back(message); }
  void tell(const std::string& /*server*/, const wire::LinkMessage& /*message*/) override {}
  void record(const wire::LaunchEntry& /*entry*/) override {}
  void end_hung(const wire::Hang& hang, bool restart) override {
    done.push_back((restart ? "restart " : "end ") + std::to_string(hang.seconds));
    if (!restart) {
      launch->end_hung(hang, restart, now);
    }
  }
  void notify_hang(const wire::Hang& hang, bool restarts) override {
    done.push_back((restarts ? "notify of restart " : "notify ") + std::to_string(hang.seconds));
  }
  void write_status(const std::string& file, const std::string& line) override {
    jobs.put(id, file, line + "\n");
  }

  // Replaces the agent that collects the evidence with this program.
  void put_agent(const std::string& text) { test::FakeHost::put_program(agent(), text); }
  fs::path agent() { return jobs.path() / "agent"; }

  void start() {
    std::vector<std::string> servers;
    for (const wire::LaunchServer& server : spec.servers) {
      servers.push_back(server.name);
    }
    std::vector<rules::LaunchJob> all;
    for (const wire::SupervisedJob& job : spec.jobs) {
      all.push_back({.id = job.id, .rank = job.rank});
    }
    launch = std::make_unique<rules::LaunchPolicy>(
        rules::LaunchSetup{.own = spec.server, .servers = servers, .timeout = Seconds(60)}, all, now, *this);
    folder = jobs.jobs();
    watch.emplace(jobs.host(), folder, spec, EvidenceTaker{agent(), folder.jobs, "/program"}, *launch, now,
                  *this);
  }

  bool wait_for_thread() {
    pollfd ready{watch->fd(), POLLIN, 0};
    return ::poll(&ready, 1, 20'000) == 1;
  }
  // Takes samples until this time.
  void go_to(double until) {
    while (now < Seconds(until)) {
      now += watch->every();
      watch->step(now);
      ASSERT_TRUE(wait_for_thread());
      watch->step(now);
    }
  }
  // Steps without advancing the time until this is true.
  bool step_until(const std::function<bool()>& condition) {
    return test::eventually([&] {
      watch->step(now);
      return condition();
    });
  }
  std::string read(const std::string& name) { return jobs.read(id, name); }
  // The first line that the program of put_agent() prints.
  std::string evidence() { return "why " + folder.jobs.string() + " /program 2 " + id + "\n"; }
  bool has(const std::string& name) { return exists(jobs.folder(id) / name); }
  std::optional<wire::Stillness> last_stillness() {
    return sent.empty() ? std::nullopt : std::optional(std::get<wire::Stillness>(sent.back()));
  }

  test::JobFolders jobs;
  std::string id = jobs.make_running();
  wire::LaunchSpec spec;
  std::vector<wire::LinkMessage> sent;
  std::vector<std::string> done;
  Seconds now{1000};
  std::unique_ptr<rules::LaunchPolicy> launch;
  JobsFolder folder;
  std::optional<HangWatch> watch;
};

TEST_F(HangWatchTest, FindsAHangAndKeepsItsEvidence) {
  const auto rank = test::run_sleep({"REMOTE_JOB_ID=" + id});
  start();
  EXPECT_EQ(watch->every(), Seconds(1));
  go_to(1006);
  EXPECT_FALSE(has("hung"));
  go_to(1007);  // six seconds after the first sample
  ASSERT_TRUE(step_until([&] { return !done.empty(); }));
  EXPECT_EQ(read("why"), evidence());
  EXPECT_FALSE(has("why.new"));
  EXPECT_THAT(split_words(read("hung")), ElementsAre(testing::MatchesRegex("[0-9]{13}"), "6"));
  EXPECT_THAT(done, ElementsAre("notify 6"));

  jobs.put(id, "job.out", "a line");
  go_to(1008);
  EXPECT_THAT(split_words(read("hung")),
              ElementsAre(testing::MatchesRegex("[0-9]{13}"), "6", testing::MatchesRegex("[0-9]{13}")));
  go_to(1016);
  EXPECT_TRUE(step_until([&] { return done.size() == 2; })) << "it hangs again";
}

TEST_F(HangWatchTest, EndsOrRestartsTheLaunch) {
  spec.hang->response = wire::HangResponse::end;
  start();
  go_to(1007);
  ASSERT_TRUE(step_until([&] { return !done.empty(); }));
  EXPECT_THAT(done, ElementsAre("end 6"));

  done.clear();
  jobs.put(id, "hung", "");
  spec.hang->response = wire::HangResponse::restart;
  start();
  go_to(1014);
  ASSERT_TRUE(step_until([&] { return !done.empty(); }));
  EXPECT_THAT(done, ElementsAre("restart 6", "notify of restart 6"));

  done.clear();
  jobs.put(id, "hung", "");
  spec.notifies = false;
  start();
  go_to(1021);
  ASSERT_TRUE(step_until([&] { return !done.empty(); }));
  EXPECT_THAT(done, ElementsAre("restart 6"));
}

TEST_F(HangWatchTest, ABusyRankHangsOnlyIfItsEvidenceShowsThatItWaits) {
  const auto rank = run_busy(id);
  put_agent("exit 0");
  start();
  const auto pause = [] { ::usleep(120'000); };  // a few ticks of processor time for each sample
  for (int i = 0; i < 9; ++i) {
    pause();
    now += Seconds(1);
    watch->step(now);
    ASSERT_TRUE(wait_for_thread());
    watch->step(now);
  }
  ASSERT_TRUE(step_until([&] { return !has("why.new"); }));
  EXPECT_THAT(done, IsEmpty());
  EXPECT_FALSE(has("why"));
  EXPECT_FALSE(has("hung"));

  put_agent("echo waits; exit 42");
  for (int i = 0; i < 20 && done.empty(); ++i) {
    pause();
    now += Seconds(1);
    watch->step(now);
    ASSERT_TRUE(wait_for_thread());
    watch->step(now);
  }
  ASSERT_TRUE(step_until([&] { return !done.empty(); }));
  EXPECT_EQ(read("why"), "waits\n");
}

TEST_F(HangWatchTest, ReportsWhatTheRanksDo) {
  spec.servers = {{"c", 1, ""}, {"a", 1, ""}};  // a member reports
  start();
  go_to(1001);
  EXPECT_EQ(last_stillness(), (wire::Stillness{0, 0}));
  go_to(1003);
  EXPECT_EQ(last_stillness(), (wire::Stillness{2, 2}));
  jobs.put(id, "job.err", "x");
  go_to(1004);
  EXPECT_EQ(last_stillness(), (wire::Stillness{0, 3}));
  go_to(1005);
  jobs.put(id, "debug/1.7", jobs.this_process() + " 0 88 - train.py\n");
  go_to(1006);
  EXPECT_EQ(last_stillness()->silent_seconds, 0) << "a rank waits in a debugger";
  fs::remove(jobs.folder(id) / "debug/1.7");
  go_to(1007);
  EXPECT_EQ(last_stillness()->silent_seconds, 1);
}

TEST_F(HangWatchTest, CountsTheProcessorTimeOfTheJobsProcesses) {
  spec.servers = {{"c", 1, ""}, {"a", 1, ""}};
  const auto stranger = run_busy(std::string(32, 'f'));
  start();
  go_to(1001);
  ::usleep(200'000);  // of processor time that is not the job's
  go_to(1002);
  EXPECT_EQ(last_stillness(), (wire::Stillness{1, 1}));
  const auto rank = run_busy(id);
  ::usleep(300'000);  // of processor time
  go_to(1003);
  EXPECT_EQ(last_stillness(), (wire::Stillness{2, 0}));
}

TEST_F(HangWatchTest, JobsThatHaveNotBegunOrHaveEndedDoNotCount) {
  spec.servers = {{"c", 1, ""}, {"a", 1, ""}};
  const std::string spare = jobs.make({{"job.out", ""}, {"job.err", ""}});
  const std::string queued = jobs.make_running({{"queue", "1"}});
  spec.jobs = {{id, 0}, {spare, 1}, {queued, 2}};
  start();
  go_to(1002);
  EXPECT_EQ(last_stillness(), (wire::Stillness{1, 1}));
  watch->hear("c", wire::TakeEvidence{7}, now);
  ASSERT_TRUE(step_until([&] { return std::holds_alternative<wire::EvidenceTaken>(sent.back()); }));
  EXPECT_EQ(read("why.new"), evidence());

  launch->job(0).ended = true;
  go_to(1004);
  EXPECT_EQ(last_stillness(), wire::Stillness{});
  watch->hear("c", wire::TakeEvidence{8}, now);
  ASSERT_TRUE(step_until([&] { return std::holds_alternative<wire::EvidenceTaken>(sent.back()); }));
  EXPECT_EQ(sent.back(), wire::LinkMessage(wire::EvidenceTaken{8, true})) << "nothing runs here";
  launch->job(1).ended = launch->job(2).ended = true;
  watch->hear("c", wire::TakeEvidence{9}, now);
  EXPECT_EQ(sent.back(), wire::LinkMessage(wire::EvidenceTaken{9, true}));
}

TEST_F(HangWatchTest, ARemovedJobIsNotReported) {
  spec.servers = {{"c", 1, ""}, {"a", 1, ""}};
  start();
  go_to(1002);
  const std::size_t count = sent.size();
  fs::remove(jobs.folder(id) / "job.out");
  go_to(1004);
  EXPECT_EQ(sent.size(), count);
}

TEST_F(HangWatchTest, AMemberFollowsTheCoordinator) {
  spec.servers = {{"c", 1, ""}, {"a", 1, ""}};
  start();
  const auto take = [&](int number) {
    watch->hear("c", wire::TakeEvidence{number}, now);
    return step_until([&] {
      return !sent.empty() && sent.back() == wire::LinkMessage(wire::EvidenceTaken{number, false});
    });
  };
  ASSERT_TRUE(take(1));
  EXPECT_TRUE(has("why.new"));
  watch->hear("c", wire::DropEvidence{}, now);
  EXPECT_FALSE(has("why.new"));
  EXPECT_FALSE(has("why"));
  ASSERT_TRUE(take(2));
  watch->hear("c", wire::Hangs{77}, now);
  EXPECT_TRUE(has("why"));
  EXPECT_THAT(split_words(read("hung")), ElementsAre(testing::_, "77"));
  watch->hear("c", wire::Continued{}, now);
  EXPECT_EQ(split_words(read("hung")).size(), 3U);
  jobs.put(id, "hung", "1 77 2\n");
  watch->hear("c", wire::Continued{}, now);
  EXPECT_EQ(read("hung"), "1 77 2\n") << "once";
  EXPECT_THAT(done, IsEmpty());
}

TEST_F(HangWatchTest, KeepsEvidenceThatComesAfterTheDecision) {
  spec.servers = {{"c", 1, ""}, {"a", 1, ""}};
  put_agent("sleep 1; echo late");
  start();
  watch->hear("c", wire::TakeEvidence{1}, now);
  watch->hear("c", wire::Hangs{77}, now);
  EXPECT_TRUE(has("hung"));
  ASSERT_TRUE(step_until([&] { return has("why"); }));
  EXPECT_EQ(read("why"), "late\n");
}

TEST_F(HangWatchTest, DoesNotFollowALinkOfTheJob) {
  spec.servers = {{"c", 1, ""}, {"a", 1, ""}};
  test::JobFolders::put_file(jobs.path() / "precious", "mine");
  fs::create_symlink(jobs.path() / "precious", jobs.folder(id) / "why.new");
  start();
  const auto take = [&](int number) {
    watch->hear("c", wire::TakeEvidence{number}, now);
    return step_until([&] {
      return !sent.empty() && sent.back() == wire::LinkMessage(wire::EvidenceTaken{number, false});
    });
  };
  ASSERT_TRUE(take(1));
  std::ifstream file(jobs.path() / "precious");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "mine");
  fs::remove(jobs.folder(id) / "why.new");
  ASSERT_EQ(::mkfifo((jobs.folder(id) / "why.new").c_str(), 0600), 0);
  EXPECT_TRUE(take(2)) << "nor waits for a reader of a FIFO";
}

TEST_F(HangWatchTest, AHangOnRecordIsNotFoundAtOnce) {
  jobs.put(id, "hung", "1700000000000 6\n");
  start();
  go_to(1005);
  EXPECT_THAT(done, IsEmpty());
  EXPECT_EQ(split_words(read("hung")).size(), 3U) << "silence counts from the start of this supervisor";
  go_to(1008);
  EXPECT_TRUE(step_until([&] { return !done.empty(); }));
}

TEST_F(HangWatchTest, ItsEndEndsTheProcessThatTakesEvidence) {
  spec.servers = {{"c", 1, ""}, {"a", 1, ""}};
  put_agent("echo $$ >'" + (jobs.path() / "pid").string() + "'; sleep 1000");
  start();
  watch->hear("c", wire::TakeEvidence{1}, now);
  ASSERT_TRUE(test::eventually([&] { return !read_first_line(jobs.path() / "pid").empty(); }));
  const int pid = std::stoi(read_first_line(jobs.path() / "pid"));
  const auto begin = std::chrono::steady_clock::now();
  watch.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, test::patience);
  EXPECT_TRUE(test::eventually([&] { return ::kill(pid, 0) != 0; }));
}

}  // namespace
}  // namespace remote::agent
