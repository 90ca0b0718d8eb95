#include "jobs/start_script.hpp"

#include <gtest/gtest.h>
#include <remote/error.hpp>

#include "jobs/keep_program.hpp"
#include "jobs/start_jobs.hpp"
#include "server/agent_command.hpp"
#include "wire/cbor.hpp"

namespace remote::jobs {
namespace {

const std::string id_a = "0123456789abcdef0123456789abcdef";
const std::string id_b = "ffffffffffffffffffffffffffffffff";
const JobId job_a = *JobId::parse(id_a);
const JobId job_b = *JobId::parse(id_b);

TEST(StartScript, WrongNamesNeverReachAServer) {
  const auto request = [](const std::string& command, Env env) {
    return jobs_to_start({.folder = {"~/p", ".jobs"}, .requests = {{job_a, {command, "", std::move(env)}}}});
  };
  for (const char* name : {"", "1A", "A-B", "A B", "A=B", "É", "REMOTE_JOB_ID", "UID", "PPID"}) {
    EXPECT_THROW(request("true", {{name, "x"}}), Error) << name;
  }
  EXPECT_THROW(request(std::string("a\0b", 3), {}), Error);
  EXPECT_THROW(request("true", {{"A", std::string("a\0b", 3)}}), Error);
}

TEST(StartScript, TheRequestHasAllJobs) {
  StartRequest first{job_a, {"echo one", "enter", {{"RANK", "0"}, {"SAME", "it's"}}}};
  StartRequest second{job_b, {"echo two", "enter", {{"RANK", "1"}, {"SAME", "it's"}}}, "slurm"};
  second.files = {{"batch.sh", "#!/bin/sh\n"}};
  wire::LaunchSpec launch;
  launch.tokens = {"secret"};
  const wire::LeaseToTake lease{.terms = {.gpus = 2}, .waits = true};
  const wire::JobsToStart request = jobs_to_start(
      {.folder = {"~/p", ".jobs"}, .requests = {first, second}, .launch = launch, .lease = lease});
  EXPECT_EQ(request.place.project + " " + request.place.jobs_folder, "~/p .jobs");
  EXPECT_EQ(request.program.digest, server_program().digest);
  EXPECT_GT(request.program.size, 10'000U);
  EXPECT_EQ(request.launch, launch);
  EXPECT_EQ(request.lease, lease);
  ASSERT_EQ(request.jobs.size(), 2U);
  EXPECT_EQ(request.jobs[0].id, id_a);
  EXPECT_EQ(request.jobs[0].backend, "local");
  EXPECT_TRUE(request.jobs[0].files.empty());
  EXPECT_EQ(request.jobs[1].id, id_b);
  EXPECT_EQ(request.jobs[1].backend, "slurm");
  ASSERT_EQ(request.jobs[1].files.size(), 1U);
  EXPECT_EQ(request.jobs[1].files[0].name + " " + request.jobs[1].files[0].text, "batch.sh #!/bin/sh\n");
  // Values that both jobs share are sent once.
  EXPECT_EQ(request.spec, (wire::JobSpec{.project = "~/p",
                                         .variables = {{"SAME", "it's"}},
                                         .activate = "enter",
                                         .is_leased = true,
                                         .command = "echo one"}));
  EXPECT_EQ(request.jobs[0].spec, (wire::OwnSpec{.variables = {{"RANK", "0"}}}));
  EXPECT_EQ(request.jobs[1].spec, (wire::OwnSpec{.variables = {{"RANK", "1"}}, .command = "echo two"}));
}

TEST(StartScript, AnActivationOfItsOwnIsSentWithTheJob) {
  StartRequest first{job_a, {"true", "enter", {}}};
  first.process.environment.emplace().code = "~/p";
  StartRequest second{job_b, {"true", "enter and more", {}}};
  EXPECT_EQ(make_specs({"~/p", ".jobs"}, {first, second}, false).own[1].activate, "enter and more");
  second.process.activate = first.process.activate;
  EXPECT_EQ(make_specs({"~/p", ".jobs"}, {first, second}, false).own[1].activate, "enter")
      << "only a shell can do it";
  EXPECT_EQ(make_specs({"~/p", ".jobs"}, {first, first}, false).own[1], wire::OwnSpec());
  second.process.tree = "x";
  EXPECT_THROW(make_specs({"~/p", ".jobs"}, {first, second}, false), std::logic_error);
}

TEST(StartScript, AContainerIsPartOfTheSpec) {
  StartRequest request{job_a, {"true", "", {}}};
  request.process.container = servers::ContainerRun{
      {ContainerEngine::podman, "image", {"-v", "/a:/b"}, "sub"}, true, "module load podman\n"};
  const auto container = [&] { return make_specs({"~/p", ".jobs"}, {request}, false).common.container; };
  EXPECT_EQ(container(), (wire::JobContainer{.engine = "podman",
                                             .image = "image",
                                             .is_rootless = true,
                                             .args = {"-v", "/a:/b"},
                                             .prologue = "module load podman\n",
                                             .workdir = "sub"}));
  request.process.container->container.args.push_back(std::string("a\0b", 3));
  EXPECT_THROW(container(), Error);
}

TEST(StartScript, TheRequestIsShort) {
  const auto request = jobs_to_start({.folder = {"~/p", ".jobs"}, .requests = {{job_a, {"true", "", {}}}}});
  EXPECT_LT(wire::encode(request).size(), 1000U);
}

}  // namespace
}  // namespace remote::jobs
