#include "agent/launch/job_looker.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include "agent/job_folders.hpp"

namespace remote::agent {
namespace {

TEST(JobLooker, FindsHowJobsEnded) {
  test::JobFolders jobs;
  const JobsFolder folder = jobs.jobs();
  const std::string running = jobs.make_running();
  const std::string failed = jobs.make_running();
  jobs.put(failed, "journal.jsonl", test::format_end("exit 7 1700000000000 supervisor\n"));
  WatchedJob first(jobs.host(), folder, running, false, false);
  WatchedJob second(jobs.host(), folder, failed, false, false);
  JobLooker looker;
  for (int round = 1; round <= 2; ++round) {
    EXPECT_FALSE(looker.is_busy());
    looker.start({{4, &first, 0}, {5, &second, 1}}, rules::Seconds(round));
    EXPECT_TRUE(looker.is_busy());
    pollfd ready{looker.fd(), POLLIN, 0};
    ASSERT_EQ(::poll(&ready, 1, 60'000), 1);
    const std::vector<JobLooker::Found> found = looker.take();
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].index, 4U);
    EXPECT_FALSE(found[0].look.has_ended);
    EXPECT_EQ(found[1].index, 5U);
    ASSERT_TRUE(found[1].look.failure);
    EXPECT_EQ(found[1].look.failure->ending.code, 7);
    EXPECT_EQ(looker.began(), rules::Seconds(round));
    EXPECT_EQ(::poll(&ready, 1, 0), 0) << "everything was taken";
  }
}

}  // namespace
}  // namespace remote::agent
