#include <gtest/gtest.h>

#include "jobs/from_wire.hpp"
#include "jobs/start.hpp"

namespace remote::jobs {
namespace {

wire::LaunchSpec spec_of_two() {
  wire::LaunchSpec spec;
  spec.tokens = {"of-b"};
  spec.servers = {{"a", 2, ""}, {"b", 1, ""}};
  spec.address = "10.0.0.1";
  spec.port = 4000;
  spec.notifies = true;
  spec.activate = ". venv/bin/activate\n";
  return spec;
}

TEST(LaunchSpec, IsCompletedForEachServer) {
  std::vector<Job> jobs(2);
  jobs[0].id = JobId::random();
  jobs[1].id = JobId::random();
  jobs[1].rank = 1;
  wire::LaunchSpec expected = spec_of_two();
  expected.server = "a";
  expected.jobs = {{jobs[0].id.text(), 0}, {jobs[1].id.text(), 1}};
  EXPECT_EQ(spec_for(spec_of_two(), "a", jobs), expected);
}

TEST(LaunchSpec, OnlyTheCoordinatorNeedsAPython) {
  const wire::LaunchSpec spec = spec_for(spec_of_two(), "b", {});
  EXPECT_EQ(spec.activate, "");
  EXPECT_TRUE(spec.notifies) << "the others send it their last lines";
}

TEST(LaunchSpec, HasTheCausesOfRestarts) {
  using wire::RestartOn;
  EXPECT_TRUE(to_restart_on({}).empty()) << "any";
  EXPECT_EQ(to_restart_on({RestartCause::exit, RestartCause::signal, RestartCause::oom, RestartCause::lost,
                           RestartCause::hang, RestartCause::lifeline}),
            (std::vector{RestartOn::exit, RestartOn::signal, RestartOn::out_of_memory, RestartOn::lost,
                         RestartOn::hang, RestartOn::lost}));
}

TEST(LaunchSpec, HasTheResponseToAHang) {
  EXPECT_EQ(to_hang_response(OnHang::leave), wire::HangResponse::leave);
  EXPECT_EQ(to_hang_response(OnHang::kill), wire::HangResponse::end);
  EXPECT_EQ(to_hang_response(OnHang::restart), wire::HangResponse::restart);
}

}  // namespace
}  // namespace remote::jobs
