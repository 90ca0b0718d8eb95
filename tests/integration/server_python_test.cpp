// Runs the tests of the Python programs on the servers.
#include <gtest/gtest.h>

#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "support/paths.hpp"

namespace remote::jobs {
namespace {

// Runs one of the tests in tests/python.
void expect_script(const std::string& name) {
  SubprocessSpec spec;
  spec.set_env = {{"REMOTE_AGENT", test::remote_agent}};
  spec.argv = {"python3", "-B", test::source_folder + ("/tests/python/" + name)};
  const ExecResult result = run_subprocess(std::move(spec));
  EXPECT_TRUE(result.status.success()) << result.err;
}

// LEASE_LAUNCHES in the environment sets the number of simulated launches.
TEST(LeaseJobs, HaveTheirGpusAloneAndWaitForThem) {
  expect_script("test_lease_jobs.py");
}

TEST(RunAgent, TheCopyRunsAlsoFromMemory) {
  expect_script("test_run_agent.py");
}

TEST(Stacks, DoNotEndARankThatExits) {
  expect_script("test_exit.py");
}

TEST(Flight, TheDumpsAreRead) {
  expect_script("test_flight.py");
}

TEST(Post, SendsANotificationOnceWithoutItsUrlInAnyAnswer) {
  expect_script("test_post.py");
}

}  // namespace
}  // namespace remote::jobs
