#include <csignal>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/job/answers.hpp"
#include "agent/jobs_place.hpp"

// The request to stop jobs, and the subcommand for scripts.

namespace remote::agent {
namespace {

using Outcome = KillResult::Entry::Outcome;
using test::eventually;
using test::HostFolder;
using test::JobsPlace;

class KeptStream : public Stream {
 public:
  void send(const wire::Reply& reply) override {
    parts.push_back(std::get<wire::StopReply>(reply));
    for (const wire::StopResult& result : parts.back().results) {
      outcomes[result.id] = result.outcome;
    }
    for (const wire::JobReport& report : parts.back().jobs) {
      reports[report.id] = report;
    }
  }
  bool is_closed() const override { return is_gone; }

  bool is_gone = false;
  std::vector<wire::StopReply> parts;
  std::map<std::string, Outcome> outcomes;
  std::map<std::string, wire::JobReport> reports;
};

struct StopAnswer : ::testing::Test {
  JobsPlace jobs;
  KeptStream stream;

  wire::StopRequest ask(std::vector<std::string> ids) const {
    return {.place = {.project = jobs.place.project.string(), .jobs_folder = ".jobs"},
            .ids = std::move(ids),
            .grace_s = 5,
            .by = {.text = "ada@laptop"}};
  }
  // The exit status of `remote-agent stop` with these arguments.
  int run_program(std::vector<std::string> words, const std::string& input = "") const {
    std::array<int, 2> pipe{};
    EXPECT_EQ(::pipe(pipe.data()), 0);
    EXPECT_EQ(::write(pipe[1], input.data(), input.size()), static_cast<ssize_t>(input.size()));
    ::close(pipe[1]);
    test::Started child([&] {
      ::dup2(pipe[0], 0);
      std::vector<char*> argv;
      for (std::string& word : words) {
        argv.push_back(word.data());
      }
      ::_exit(run_stop(static_cast<int>(argv.size()), argv.data()));
    });
    ::close(pipe[0]);
    return child.wait();
  }
};

TEST_F(StopAnswer, HasTheResultsAndTheJobsAsTheyAreNow) {
  const std::string running = jobs.start("echo up; exec sleep 1000");
  const std::string ended = jobs.start("exit 5");
  ASSERT_TRUE(eventually([&] { return jobs.record(ended)->has_result(); }));
  const std::string missing = JobsPlace::new_id();
  const std::string dead = JobsPlace::new_id();  // its starter has died
  wire::StopRequest request = ask({running, ended, missing, dead});
  request.claim = {dead};
  request.dead = {dead};
  const wire::Moment before = read_wall_clock();
  answer_stop(jobs.host(), request, stream);
  ASSERT_EQ(stream.parts.size(), 2U);
  EXPECT_GE(stream.parts[0].now, before);
  EXPECT_TRUE(stream.parts[0].results.empty()) << "only tells the time, before anything is stopped";
  ASSERT_EQ(stream.parts[1].results.size(), 4U);
  EXPECT_EQ(stream.outcomes[running], Outcome::killed);
  EXPECT_EQ(stream.outcomes[ended], Outcome::ended);
  EXPECT_EQ(stream.outcomes[missing], Outcome::none);
  EXPECT_EQ(stream.outcomes[dead], Outcome::none);
  EXPECT_EQ(stream.reports[running].phase, wire::JobPhase::ended);
  ASSERT_TRUE(stream.reports[running].stop);
  EXPECT_EQ(stream.reports[running].stop->by, (wire::StoppedBy{.text = "ada@laptop"}));
  ASSERT_TRUE(stream.reports[running].end);
  EXPECT_EQ(stream.reports[running].end->how, wire::ProcessEnd::signalled(SIGTERM));
  EXPECT_EQ(stream.reports[ended].end->how, wire::ProcessEnd::exited(5));
  EXPECT_FALSE(stream.reports[ended].stop);
  EXPECT_EQ(stream.reports[missing].phase, wire::JobPhase::none);
  EXPECT_EQ(stream.reports[dead].phase, wire::JobPhase::none);
}

TEST_F(StopAnswer, GoesOnWithoutTheClient) {
  const std::string id = jobs.start("trap '' TERM; echo up; while :; do sleep 0.1; done");
  stream.is_gone = true;
  *jobs.host().cancelled = true;
  wire::StopRequest request = ask({id});
  request.grace_s = 1;
  answer_stop(jobs.host(), request, stream);
  EXPECT_THAT(jobs.find_processes(id), ::testing::IsEmpty());
  EXPECT_TRUE(jobs.record(id)->has_result());
}

TEST_F(StopAnswer, ComesInParts) {
  std::vector<std::string> ids;
  for (int i = 0; i < 1200; ++i) {
    ids.push_back(JobsPlace::new_id());
  }
  answer_stop(jobs.host(), ask(ids), stream);
  EXPECT_GE(stream.parts.size(), 3U);
  std::vector<std::string> answered;
  for (const wire::StopReply& part : stream.parts) {
    EXPECT_LE(part.results.size(), 500U);
    EXPECT_EQ(part.results.size(), part.jobs.size());
    for (const wire::StopResult& result : part.results) {
      answered.push_back(result.id);
    }
  }
  EXPECT_EQ(answered, ids);
  stream.parts.clear();
  answer_stop(jobs.host(), ask({}), stream);
  EXPECT_EQ(stream.parts.size(), 2U) << "the time, and one part at least";
}

TEST_F(StopAnswer, AProgramForScripts) {
  const std::string folder = jobs.jobs();
  const std::string first = jobs.start("echo up; exec sleep 1000");
  const std::string second = jobs.start("echo up; exec sleep 1000");
  EXPECT_EQ(run_program({folder, "15", "5", "rank:3", first}), 0);
  EXPECT_EQ(jobs.record(first)->end->how, wire::ProcessEnd::signalled(SIGTERM));
  EXPECT_EQ(jobs.record(first)->recorded.stop->by,
            (wire::StoppedBy{.cause = wire::StopCause::rank, .number = 3}));
  EXPECT_EQ(run_program({folder}, "15\n5\nagain\n" + second + "\n"), 1) << "who started it is gone";
  EXPECT_FALSE(jobs.find_processes(second).empty());
  EXPECT_EQ(run_program({folder}, "15\n5\nlost:n3\n" + second + "\n\n"), 0);
  EXPECT_THAT(jobs.find_processes(second), ::testing::IsEmpty());
  EXPECT_EQ(jobs.record(second)->recorded.stop->by,
            (wire::StoppedBy{.cause = wire::StopCause::lost, .text = "n3"}));

  for (const std::vector<std::string>& words : {std::vector<std::string>{},
                                                {"relative", "15", "5", "launch"},
                                                {folder, "15", "5"},
                                                {folder, "0", "5", "launch", first},
                                                {folder, "15", "-1", "launch", first},
                                                {folder, "15", "5", "launch", "../x"}}) {
    EXPECT_EQ(run_program(words), 2);
  }
}

TEST_F(StopAnswer, TheProgramFailsIfSomethingIsLeft) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root, to be another user";
  }
  const std::string id = jobs.start("echo up; exec sleep 1000");
  for (fs::path path = jobs.job(id); path != fs::temp_directory_path(); path = path.parent_path()) {
    fs::permissions(path, fs::perms(0755));
  }
  for (const auto& entry : fs::directory_iterator(jobs.job(id))) {
    fs::permissions(entry.path(), fs::perms(0644));
  }
  std::vector<std::string> words{jobs.jobs(), "15", "0", "launch", id};
  test::Started child([&] {
    test::become(65534);
    std::vector<char*> argv;
    for (std::string& word : words) {
      argv.push_back(word.data());
    }
    ::_exit(run_stop(static_cast<int>(argv.size()), argv.data()));
  });
  EXPECT_EQ(child.wait(), 1);
  EXPECT_FALSE(jobs.find_processes(id).empty());
}

}  // namespace
}  // namespace remote::agent
