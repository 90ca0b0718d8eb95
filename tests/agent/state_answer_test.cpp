#include <mutex>
#include <thread>

#include <gmock/gmock.h>

#include "agent/job/answers.hpp"
#include "agent/job_folders.hpp"
#include "agent/started.hpp"
#include "wire/cbor.hpp"
#include "wire/frame.hpp"

namespace remote::agent {
namespace {

using std::chrono::milliseconds;
using wire::JobPhase;

// Stores the parts of an answer.
class KeptParts : public Stream {
 public:
  void send(const wire::Reply& reply) override {
    const std::lock_guard lock(mutex_);
    EXPECT_LE(wire::encode(reply).size(), wire::max_payload);
    parts_.push_back(std::get<wire::StateReply>(reply));
    sent_at_.push_back(read_boot_clock());
  }
  bool is_closed() const override { return is_closed_; }
  void close() { is_closed_ = true; }

  std::vector<wire::StateReply> parts() {
    const std::lock_guard lock(mutex_);
    return parts_;
  }
  std::vector<milliseconds> sent_at() {
    const std::lock_guard lock(mutex_);
    return sent_at_;
  }
  std::vector<wire::JobReport> jobs() {
    std::vector<wire::JobReport> jobs;
    for (const wire::StateReply& part : parts()) {
      jobs.insert(jobs.end(), part.jobs.begin(), part.jobs.end());
    }
    return jobs;
  }

 private:
  std::mutex mutex_;
  std::vector<wire::StateReply> parts_;
  std::vector<milliseconds> sent_at_;
  std::atomic<bool> is_closed_ = false;
};

class StateAnswer : public ::testing::Test {
 protected:
  void ask(wire::StateRequest request) {
    request.place = jobs.place();
    answer_state(jobs.host(), request, stream);
  }

  test::JobFolders jobs;
  KeptParts stream;
};

TEST_F(StateAnswer, HasThoseThatWereAskedFor) {
  const std::string running = jobs.make_running({{"job.out", "a\nb\n"}});
  const std::string ended = jobs.make_ended("exit 3");
  const std::string missing = test::JobFolders::new_id();
  const std::string claimed = test::JobFolders::new_id();
  const auto before = read_wall_clock();
  ask({.place = {}, .ids = {running, ended, missing, claimed}, .claim = {claimed}, .last_lines = true});
  for (const wire::StateReply& part : stream.parts()) {  // more than one on a slow machine
    EXPECT_GE(part.now, before);
    EXPECT_LE(part.now, read_wall_clock());
  }
  const auto reports = stream.jobs();
  ASSERT_EQ(reports.size(), 4U);
  EXPECT_EQ(reports[0].id, running);
  EXPECT_EQ(reports[0].phase, JobPhase::running);
  EXPECT_EQ(reports[0].last_line, "b");
  EXPECT_EQ(reports[1].phase, JobPhase::ended);
  EXPECT_EQ(reports[2].phase, JobPhase::none);
  EXPECT_FALSE(fs::exists(jobs.folder(missing)));
  EXPECT_EQ(reports[3].phase, JobPhase::none);
  EXPECT_NE(test::read_end(jobs.folder(claimed)), "");
}

TEST_F(StateAnswer, AboutNoJobsHasTheTime) {
  ask({});
  ASSERT_EQ(stream.parts().size(), 1U);
  EXPECT_GT(stream.parts()[0].now.count(), 0);
}

TEST_F(StateAnswer, ComesInParts) {
  std::vector<std::string> ids;
  for (int i = 0; i < 1200; ++i) {
    ids.push_back(test::JobFolders::new_id());
  }
  ask({.place = {}, .ids = ids});
  EXPECT_GE(stream.parts().size(), 3U);
  const auto reports = stream.jobs();
  ASSERT_EQ(reports.size(), ids.size());
  for (const wire::StateReply& part : stream.parts()) {
    EXPECT_LE(part.jobs.size(), 500U);
    EXPECT_EQ(part.now, stream.parts()[0].now);
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(reports[i].id, ids[i]);
  }
}

// Each part has the largest possible report.
TEST_F(StateAnswer, AnyPartFitsIntoAFrame) {
  std::string attempts;
  for (int i = 1; i < 1000; ++i) {
    attempts += std::to_string(i) + " 1 2 3 lost - - 0 b " + std::string(400, 'x') + ",%1b%1b%1b\n";
  }
  std::map<std::string, std::string> files{{"attempts", attempts},
                                           {"lifeline", std::string(4000, '\033') + "\n"}};
  for (int i = 0; i < 64; ++i) {
    files["debug/" + std::to_string(i)] = jobs.this_process() + " 1 2 - " + std::string(3900, 'x') + "\n";
  }
  std::vector<std::string> ids;
  for (int i = 0; i < 4; ++i) {
    ids.push_back(jobs.make_running(files));
  }
  ask({.place = {}, .ids = ids});
  const auto reports = stream.jobs();
  ASSERT_EQ(reports.size(), 4U);
  EXPECT_EQ(reports[3].waits.size(), 64U);
  EXPECT_GT(reports[3].attempts.size(), 500U);
}

// An abandoned start delays its own report, so the others are sent first.
TEST_F(StateAnswer, WhatIsReadyIsNotHeldBack) {
  const std::string abandoned = jobs.make({{"supervisor", ""}});
  const std::string running = jobs.make_running();
  ask({.place = {}, .ids = {abandoned, running}, .claim = {abandoned}});
  const auto parts = stream.parts();
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].jobs.at(0).id, running);
  EXPECT_EQ(parts[1].jobs.at(0).id, abandoned);
  EXPECT_EQ(parts[1].jobs.at(0).phase, JobPhase::none);
  const auto sent_at = stream.sent_at();
  EXPECT_GE(sent_at[1] - sent_at[0], milliseconds(300));
}

TEST_F(StateAnswer, WaitsForTheLifeline) {
  const std::string id = jobs.make_running();
  std::thread writer([&] {
    std::this_thread::sleep_for(milliseconds(300));  // how long it waits is under test
    jobs.put(id, "lifeline", "waiting for b\n");
  });
  const auto before = read_wall_clock();
  ask({.place = {}, .ids = {id}, .await_lifeline = true});
  writer.join();
  ASSERT_EQ(stream.jobs().size(), 1U);
  EXPECT_TRUE(stream.jobs()[0].lifeline);
  EXPECT_GE(stream.parts()[0].now - before, milliseconds(250)) << "the time is that of the reports";
}

TEST_F(StateAnswer, DoesNotWaitForTheLifelineOfAnEndedJob) {
  const auto begin = read_boot_clock();
  ask({.place = {}, .ids = {jobs.make_ended("exit 1")}, .await_lifeline = true});
  EXPECT_LT(read_boot_clock() - begin, milliseconds(4000));  // otherwise it waits this long
  const std::string id = jobs.make_running();
  ask({.place = {}, .ids = {id}, .await_lifeline = true});
  EXPECT_GE(read_boot_clock() - begin, milliseconds(4000));
  EXPECT_EQ(stream.jobs().size(), 2U);
}

TEST_F(StateAnswer, EndsWithItsStream) {
  stream.close();
  const auto begin = read_boot_clock();
  ask({.place = {}, .ids = {jobs.make_running(), jobs.make_running()}, .await_lifeline = true});
  EXPECT_LT(read_boot_clock() - begin, milliseconds(4000));  // otherwise it waits this long
  EXPECT_TRUE(stream.jobs().empty());
}

}  // namespace
}  // namespace remote::agent
