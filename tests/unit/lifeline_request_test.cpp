#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jobs/start.hpp"

namespace remote::jobs {
namespace {

using ::testing::HasSubstr;

TEST(LifelineRequest, SaysAfterWhatTheRanksStartAgain) {
  Lifeline lifeline;
  lifeline.restarts = 3;
  lifeline.least = 1;
  EXPECT_THAT(lifeline_request(lifeline, "a", {}), HasSubstr("\nagain 3 1 any\n"));
  lifeline.restart_on = {RestartCause::oom, RestartCause::lost};
  EXPECT_THAT(lifeline_request(lifeline, "a", {}), HasSubstr("\nagain 3 1 oom,lost\n"));
}

TEST(LifelineRequest, SaysWhatIsDoneWhenTheLaunchStandsStill) {
  Lifeline lifeline;
  lifeline.hang_s = 60;
  lifeline.on_hang = OnHang::kill;
  EXPECT_THAT(lifeline_request(lifeline, "a", {}), HasSubstr("\nhang 60 kill\n"));
}

}  // namespace
}  // namespace remote::jobs
