#include "jobs/verdict.hpp"

#include <gtest/gtest.h>

#include "cli/show/jobs.hpp"
#include "jobs/reason_text.hpp"

namespace remote::jobs {
namespace {

Job rank(int number, State state, std::optional<std::int64_t> ended, std::string_view reason = "") {
  Job job;
  job.key = number + 1;
  job.rank = number;
  job.server = number < 2 ? "a" : "b";
  job.state = state;
  job.ended_at = ended;
  job.reason = parse_reason(reason);
  return job;
}

TEST(Verdict, TheEarliestFailureCountsAndTheRestIsAftermath) {
  const std::vector<Job> jobs = {
      rank(0, State::failed, 104), rank(1, State::killed, 107, "ended after rank 2"),
      rank(2, State::failed, 101), rank(3, State::killed, 106, "ended after rank 2"),
      rank(4, State::succeeded, 90)};
  const Verdict verdict = verdict_of(jobs);
  ASSERT_EQ(verdict.first, jobs[2]);
  EXPECT_EQ(verdict.ahead_ms, 3000);
  EXPECT_FALSE(verdict.exact);
  EXPECT_EQ(cli::aftermath(verdict), "2 others were ended after it, 1 aborted after it, 1 succeeded");
}

TEST(Verdict, WhatTheLaunchEndedIsNeverTheFirst) {
  const std::vector<Job> jobs = {rank(0, State::killed, 100, "ended after rank 1"),
                                 rank(1, State::failed, 101)};
  const Verdict verdict = verdict_of(jobs);
  ASSERT_EQ(verdict.first, jobs[1]);
  EXPECT_FALSE(verdict.ahead_ms);
  EXPECT_EQ(cli::aftermath(verdict), "1 other was ended after it");
}

TEST(Verdict, AnEndWithoutATimeComesAfterThoseWithOne) {
  const std::vector<Job> jobs = {rank(0, State::lost, std::nullopt), rank(1, State::failed, 101)};
  EXPECT_EQ(verdict_of(jobs).first, jobs[1]);
  EXPECT_EQ(cli::aftermath(verdict_of(jobs)), "1 other aborted after it");
}

TEST(Verdict, PartsOfASecondDecideWithinIt) {
  std::vector<Job> jobs = {rank(0, State::failed, 101), rank(1, State::killed, 106, "ended after rank 2"),
                           rank(2, State::failed, 101), rank(3, State::failed, 101)};
  jobs[0].failed_ms = 101400;
  jobs[1].failed_ms = 106100;
  jobs[2].failed_ms = 101150;
  jobs[3].failed_ms = 101900;
  Verdict verdict = verdict_of(jobs);
  ASSERT_EQ(verdict.first, jobs[2]);
  EXPECT_EQ(verdict.ahead_ms, 250);
  EXPECT_TRUE(verdict.exact);
  EXPECT_EQ(cli::aftermath(verdict), "1 other was ended after it, 2 aborted after it");
  // the end itself may come later than that of a victim
  jobs[2].ended_at = 104;
  EXPECT_EQ(verdict_of(jobs).first, jobs[2]);
}

TEST(Verdict, AJobOfWhichOnlyTheSecondIsKnownFailedAtItsEnd) {
  std::vector<Job> jobs = {rank(0, State::failed, 101), rank(1, State::failed, 101),
                           rank(2, State::failed, 102)};
  jobs[1].failed_ms = 101700;
  jobs[2].failed_ms = 102000;
  Verdict verdict = verdict_of(jobs);
  ASSERT_EQ(verdict.first, jobs[1]);
  EXPECT_EQ(verdict.ahead_ms, 0);
  EXPECT_FALSE(verdict.exact);
  jobs[0].ended_at = 99;
  verdict = verdict_of(jobs);
  ASSERT_EQ(verdict.first, jobs[0]);
  EXPECT_EQ(verdict.ahead_ms, 2000);
  EXPECT_FALSE(verdict.exact);
}

TEST(Verdict, ALostServerIsNamed) {
  const std::vector<Job> jobs = {rank(0, State::killed, 100, "ended after the loss of b"),
                                 rank(1, State::killed, 100, "ended after the loss of b"),
                                 rank(2, State::unknown, std::nullopt)};
  const Verdict verdict = verdict_of(jobs);
  EXPECT_EQ(verdict.first, std::nullopt);
  EXPECT_EQ(verdict.lost_server, "b");
  EXPECT_EQ(cli::aftermath(verdict), "2 others were ended after it, 1 is unknown");
}

TEST(Verdict, AKillOfTheUserIsNoFailure) {
  const std::vector<Job> jobs = {rank(0, State::killed, 100, "SIGTERM by ada@laptop"),
                                 rank(1, State::killed, 100, "SIGTERM by ada@laptop")};
  const Verdict verdict = verdict_of(jobs);
  EXPECT_EQ(verdict.first, std::nullopt);
  EXPECT_EQ(cli::aftermath(verdict), "2 others were killed");
}

}  // namespace
}  // namespace remote::jobs
