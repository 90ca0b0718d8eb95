#include <gtest/gtest.h>

#include "jobs/follow_connection.hpp"

namespace remote::jobs {
namespace {

using std::chrono::seconds;

// Two ranks of a launch, on the servers a and b.
class LossesTest : public testing::Test {
 protected:
  LossesTest() {
    const JobId launch = JobId::random();
    for (const char* server : {"a", "b"}) {
      Job job;
      job.server = server;
      job.launch = launch;
      job.state = JobState::running;
      jobs.push_back(job);
    }
  }

  static Job ended(Job job, const JobReason& reason = {}) {
    job.state = JobState::killed;
    job.reason = reason;
    return job;
  }

  std::vector<Job> jobs;
  FollowOptions options;
  const JobReason after_loss{.kind = JobReason::Kind::after_loss, .text = "b"};
  const Losses::Clock::time_point begin = Losses::Clock::now();
};

TEST_F(LossesTest, AServerThatTheOthersCallLostGetsAGrace) {
  Losses losses(jobs, options);
  EXPECT_FALSE(losses.gives_up("b", begin, begin + seconds(3600)));
  losses.ended(0, ended(jobs[0], after_loss), begin + seconds(5));
  EXPECT_FALSE(losses.gives_up("b", begin, begin + seconds(14)));
  EXPECT_TRUE(losses.gives_up("b", begin, begin + seconds(15)));
  EXPECT_FALSE(losses.gives_up("b", begin + seconds(6), begin + seconds(15)));  // it answered meanwhile
}

TEST_F(LossesTest, TheWordOfRanksThatHadEndedBeforeCountsToo) {
  options.ended = {ended(jobs[0], after_loss)};
  Losses losses({jobs[1]}, options);
  EXPECT_TRUE(losses.gives_up("b", begin, Losses::Clock::now() + seconds(10)));
}

TEST_F(LossesTest, AServerThatTheLaunchWentOnWithoutGetsAGrace) {
  jobs[0].attempts.push_back({.number = 1, .without = {"b"}});
  options.ended = {ended(jobs[0])};
  Losses losses({jobs[1]}, options);
  EXPECT_FALSE(losses.gives_up("b", begin, begin + seconds(9)));
  EXPECT_TRUE(losses.gives_up("b", begin, Losses::Clock::now() + seconds(10)));
}

TEST_F(LossesTest, AServerThatIsSilentAfterTheOthersEndsGetsTheTimeAndTheGrace) {
  Losses losses(jobs, options);
  losses.ended(0, ended(jobs[0]), begin + seconds(5));
  EXPECT_FALSE(losses.gives_up("b", begin, begin + seconds(69)));
  EXPECT_TRUE(losses.gives_up("b", begin, begin + seconds(70)));
}

TEST_F(LossesTest, TwoSilentServersDoNotWaitForEachOther) {
  jobs.push_back(jobs[1]);
  jobs[2].server = "c";
  Losses losses(jobs, options);
  losses.ended(0, ended(jobs[0]), begin + seconds(5));
  EXPECT_FALSE(losses.gives_up("b", begin, begin + seconds(70)));  // as far as is known, c is still running
  EXPECT_TRUE(losses.gives_up("c", begin, begin + seconds(70)));
  EXPECT_TRUE(losses.gives_up("b", begin, begin + seconds(71)));
  losses.answers("c");
  EXPECT_FALSE(losses.gives_up("b", begin, begin + seconds(72)));
}

TEST_F(LossesTest, ALaptopWithoutANetworkWaits) {
  Losses losses(jobs, options);
  EXPECT_FALSE(losses.gives_up("b", begin, begin + seconds(3600)));
  losses.ended(0, ended(jobs[0]), begin + seconds(5));
  EXPECT_FALSE(losses.gives_up("b", begin + seconds(6), begin + seconds(3600)));  // no answer since then
}

TEST_F(LossesTest, JobsOfNoLaunchAreWaitedFor) {
  jobs[1].launch = JobId::random();
  Losses losses(jobs, options);
  losses.ended(0, ended(jobs[0], after_loss), begin);
  EXPECT_FALSE(losses.gives_up("b", begin, begin + seconds(3600)));
}

}  // namespace
}  // namespace remote::jobs
