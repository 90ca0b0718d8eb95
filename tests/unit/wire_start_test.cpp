#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "support/wire_refusals.hpp"
#include "wire/cbor.hpp"
#include "wire/frame.hpp"
#include "wire/json.hpp"
#include "wire/request.hpp"

// The messages that start jobs: they arrive as they were sent, and impossible values are rejected.

namespace remote::wire {
namespace {

const std::string start_id = std::string(31, 'a') + "1";

ServerProgram start_program() {
  return {std::string(64, 'b'), 400'000};
}

LaunchSpec full_launch() {
  LaunchSpec spec;
  spec.tokens = {std::string(64, 'e'), std::string(64, 'f')};
  spec.server = "b";
  spec.servers = {{"a é", 2, "node-a"}, {"b", 1, "node-b"}, {"c", 1, ""}};
  spec.jobs = {{start_id, 2}};
  spec.program = std::string(64, 'b');
  spec.address = "fe80::1%eth0";
  spec.port = 65535;
  spec.grace_seconds = 5;
  spec.timeout_seconds = 61;
  spec.needed = 2;
  spec.ends_alone = spec.is_whole = spec.notifies = true;
  spec.activate = ". venv/bin/activate\n";
  spec.lease_seconds = 60;
  spec.restarts = RestartSpec{.most = 3,
                              .least = 2,
                              .causes = {RestartOn::out_of_memory, RestartOn::hang},
                              .final_codes = {2, 120},
                              .spares = 1,
                              .numbers_own_ranks = true,
                              .checkpoint_files = "ckpt-*.pt",
                              .checkpoint_complete = "ckpt-*.done",
                              .checkpoint_folders = {"out", "runs/x"}};
  spec.hang = HangSpec{600, HangResponse::restart};
  return spec;
}

JobSpec full_spec() {
  return {.program = std::string(64, 'b'),
          .project = "~/my proj",
          .variables = {{"_A1", "\xff"}, {"B", ""}},
          .defaults = {{"C", "1"}},
          .activate = ". activate.sh\n",
          .environment = PythonEnvironment{EnvironmentManager::conda, "a", "b", "c", "d", "e", true},
          .startup_files = StartupFiles::torch_agent,
          .tree = std::string(64, 'c'),
          .container = JobContainer{"podman", "image", true, {"-v", "/a:/a"}, "module load x", "sub"},
          .programs = {"remote-mpi-rank", "b"},
          .is_leased = true,
          .command = "echo all"};
}

JobsToStart start_message() {
  JobsToStart request;
  request.place = {"~/my proj", ".jobs"};
  request.program = start_program();
  NewJob second{std::string(31, 'a') + "2", "slurm", {{{"A", "\xff"}}, "enter", "echo \"it's\""}, {}};
  second.files = {{"batch.sh", "#!/bin/sh\n"}, {"init_file", ""}};
  request.jobs = {{start_id, "local", {}, {}}, second};
  request.spec = full_spec();
  request.launch = full_launch();
  request.lease = LeaseToTake{{2, 3, max_leased_memory, {0, 3}}, true, true, true};
  return request;
}

std::vector<StartedJob> started_jobs() {
  return {{start_id, StartOutcome::started, 4121, ""},
          {std::string(31, 'a') + "2", StartOutcome::queued, std::nullopt, "Slurm job 7"},
          {std::string(31, 'a') + "3", StartOutcome::exists, std::nullopt, ""},
          {std::string(31, 'a') + "4", StartOutcome::failed, std::nullopt, "is the disk full?"}};
}

template <typename Message, typename Any>
Message send_and_receive(const Message& message) {
  return std::get<Message>(decode<Any>(encode(Any(message))));
}

TEST(WireStart, JobsArriveWithAllTheirFields) {
  const JobsToStart sent = start_message();
  const auto received = decode<JobsToStart>(encode(sent));
  EXPECT_EQ(received.place.project + " " + received.place.jobs_folder, "~/my proj .jobs");
  EXPECT_EQ(received.program.digest, sent.program.digest);
  EXPECT_EQ(received.program.size, 400'000U);
  ASSERT_EQ(received.jobs.size(), 2U);
  EXPECT_EQ(received.jobs[0].id, start_id);
  EXPECT_EQ(received.jobs[0].backend, "local");
  EXPECT_EQ(received.jobs[0].spec, OwnSpec());
  EXPECT_TRUE(received.jobs[0].files.empty());
  EXPECT_EQ(received.jobs[1].backend, "slurm");
  EXPECT_EQ(received.jobs[1].spec, sent.jobs[1].spec) << "the user's bytes";
  ASSERT_EQ(received.jobs[1].files.size(), 2U);
  EXPECT_EQ(received.jobs[1].files[0].name + " " + received.jobs[1].files[0].text, "batch.sh #!/bin/sh\n");
  EXPECT_EQ(received.jobs[1].files[1].name + received.jobs[1].files[1].text, "init_file");
  EXPECT_EQ(received.spec, sent.spec);
  EXPECT_EQ(received.launch, sent.launch);
  EXPECT_EQ(received.lease, sent.lease);
  JobsToStart alone = sent;
  alone.launch.reset();
  EXPECT_FALSE(decode<JobsToStart>(encode(alone)).launch);

  const auto keep = send_and_receive<KeepProgramRequest, Request>({sent.place, sent.program});
  EXPECT_EQ(keep.program.digest, sent.program.digest);
  EXPECT_EQ(keep.place.project, "~/my proj");
}

TEST(WireStart, AReplyArrivesWithAllItsFields) {
  const auto received = send_and_receive<StartJobsReply, Reply>({false, started_jobs()});
  EXPECT_FALSE(received.is_program_missing);
  ASSERT_EQ(received.jobs.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    const StartedJob sent = started_jobs()[i];
    EXPECT_EQ(received.jobs[i].id, sent.id);
    EXPECT_EQ(received.jobs[i].outcome, sent.outcome);
    EXPECT_EQ(received.jobs[i].pid, sent.pid);
    EXPECT_EQ(received.jobs[i].reason, sent.reason);
  }
  const auto missing = send_and_receive<StartJobsReply, Reply>({true, {}});
  EXPECT_TRUE(missing.is_program_missing && missing.jobs.empty());
  for (const bool is_missing : {false, true}) {
    EXPECT_EQ((send_and_receive<KeepProgramReply, Reply>({is_missing}).is_missing), is_missing);
  }
}

TEST(WireStart, OutcomesAreNames) {
  test::expect_all_names<StartOutcome>();
  test::expect_all_names<EnvironmentManager>();
  test::expect_all_names<StartupFiles>();
  test::expect_all_names<RestartOn>();
  test::expect_all_names<HangResponse>();
}

const std::string odd_character = "has a character that is not allowed";

TEST(WireStart, RefusesOddPrograms) {
  for (const bool starts : {false, true}) {
    const auto expect = [&](const std::vector<test::Odd>& all) {
      if (starts) {
        test::expect_refusals(start_message(), all);
      } else {
        test::expect_refusals(Request(KeepProgramRequest{{"~/p", ".jobs"}, start_program()}), all);
      }
    };
    expect({{"/program/digest", "..", "'program.digest' " + odd_character},
            {"/program/digest", "a/b", "'program.digest' " + odd_character},
            {"/program/digest", std::string(65, 'a'), "'program.digest' is longer than 64 bytes"},
            {"/program/digest", 7, "'program.digest' is not a string"},
            {"/program/size", -1, "'program.size' is out of range"},
            {"/program/size", (1LL << 30) + 1, "'program.size' is out of range"},
            {"/program/size", "7", "'program.size' is not an integer"},
            {"/program/other", 1, "'program' has an unknown field"},
            {"/place/project", std::string(4097, 'x'), "'place.project' is longer than 4096 bytes"},
            {"/place/jobs_folder", std::string(4097, 'x'), "'place.jobs_folder' is longer than 4096 bytes"},
            {"/other", 1, "the message has an unknown field"}});
  }
}

TEST(WireStart, RefusesOddJobs) {
  const Json file = to_json(JobFile{"init_file", ""});
  test::expect_refusals(
      start_message(),
      {{"/jobs", Json::object(), "'jobs' is not a list"},
       {"/jobs", Json(max_jobs + 1, nullptr), "'jobs' has more than 100000 entries"},
       {"/jobs/0/id", "../x", "'jobs[0].id' " + odd_character},
       {"/jobs/0/id", "", "'jobs[0].id' " + odd_character},
       {"/jobs/1/id", std::string(32, 'A'), "'jobs[1].id' " + odd_character},
       {"/jobs/1/backend", "../x", "'jobs[1].backend' " + odd_character},
       {"/jobs/1/backend", std::string(33, 'x'), "'jobs[1].backend' is longer than 32 bytes"},
       {"/jobs/1/spec", "", "'jobs[1].spec' is not an object"},
       {"/jobs/1/spec/command", 1, "'jobs[1].spec.command' is not a string"},
       {"/jobs/1/spec/command", std::string(max_start_text + 1, 'x'),
        "'jobs[1].spec.command' is longer than 16777216 bytes"},
       {"/jobs/1/spec/activate", std::string(max_start_text + 1, 'x'),
        "'jobs[1].spec.activate' is longer than 16777216 bytes"},
       {"/jobs/1/spec/variables/0/name", "A=", "'jobs[1].spec.variables[0].name' " + odd_character},
       {"/jobs/1/spec/variables/0/value", Json(), "'jobs[1].spec.variables[0].value' is not a string"},
       {"/jobs/1/spec/other", 1, "'jobs[1].spec' has an unknown field"},
       {"/jobs/0/other", 1, "'jobs[0]' has an unknown field"},
       {"/jobs/0/files", Json(65, file), "'jobs[0].files' has more than 64 entries"},
       {"/jobs/1/files/0/name", "../x", "'jobs[1].files[0].name' " + odd_character},
       {"/jobs/1/files/1/name", "a b", "'jobs[1].files[1].name' " + odd_character},
       {"/jobs/1/files/0/name", std::string(33, 'x'), "'jobs[1].files[0].name' is longer than 32 bytes"},
       {"/jobs/1/files/0/text", Json(), "'jobs[1].files[0].text' is not a string"},
       {"/jobs/1/files/0/mode", 1, "'jobs[1].files[0]' has an unknown field"}});
}

TEST(WireStart, RefusesOddTexts) {
  test::expect_refusals(
      start_message(),
      {{"/lease", "gpus=1", "'lease' is not an object"},
       {"/lease/terms/gpus", -1, "'lease.terms.gpus' is out of range"},
       {"/lease/terms/memory", max_leased_memory + 1, "'lease.terms.memory' is out of range"},
       {"/lease/terms/among/1", -1, "'lease.terms.among[1]' is out of range"},
       {"/lease/waits", 1, "'lease.waits' is not true or false"},
       {"/spec", "x", "'spec' is not an object"},
       {"/spec/program", "../x", "'spec.program' " + odd_character},
       {"/spec/project", std::string(4097, 'x'), "'spec.project' is longer than 4096 bytes"},
       {"/spec/variables", Json(max_variables + 1, Json()), "'spec.variables' has more than 100000 entries"},
       {"/spec/variables/1/name", std::string(1001, 'x'),
        "'spec.variables[1].name' is longer than 1000 bytes"},
       {"/spec/activate", true, "'spec.activate' is not a string"},
       {"/spec/environment/manager", "pip", "'spec.environment.manager' is an unknown name"},
       {"/spec/environment/code", 1, "'spec.environment.code' is not a string"},
       {"/spec/startup_files", "all", "'spec.startup_files' is an unknown name"},
       {"/spec/tree", "../x", "'spec.tree' " + odd_character},
       {"/spec/container/engine", "a b", "'spec.container.engine' " + odd_character},
       {"/spec/container/image", 1, "'spec.container.image' is not a string"},
       {"/spec/container/args", "-v", "'spec.container.args' is not a list"},
       {"/spec/container/is_rootless", 1, "'spec.container.is_rootless' is not true or false"},
       {"/spec/programs/1", "../x", "'spec.programs[1]' " + odd_character},
       {"/spec/is_leased", 1, "'spec.is_leased' is not true or false"},
       {"/spec/command", 7, "'spec.command' is not a string"},
       {"/launch", "tokens secret\n", "'launch' is not an object"}});
}

TEST(WireStart, RefusesOddLaunches) {
  const Json server = to_json(LaunchServer{});
  const Json job = to_json(SupervisedJob{start_id, 0});
  test::expect_refusals(
      full_launch(),
      {{"/tokens/0", "a b", "'tokens[0]' " + odd_character},
       {"/tokens", Json(max_launch_servers + 1, ""), "'tokens' has more than 10000 entries"},
       {"/program", "../x", "'program' " + odd_character},
       {"/program", std::string(65, 'a'), "'program' is longer than 64 bytes"},
       {"/server", std::string(257, 'x'), "'server' is longer than 256 bytes"},
       {"/servers", Json(max_launch_servers + 1, server), "'servers' has more than 10000 entries"},
       {"/servers/0/ranks", -1, "'servers[0].ranks' is out of range"},
       {"/servers/1/mpi_host", std::string(257, 'x'), "'servers[1].mpi_host' is longer than 256 bytes"},
       {"/jobs", Json(max_launch_jobs + 1, job), "'jobs' has more than 10000 entries"},
       {"/jobs/0/id", "../x", "'jobs[0].id' " + odd_character},
       {"/port", 65536, "'port' is out of range"},
       {"/timeout_seconds", 0, "'timeout_seconds' is out of range"},
       {"/lease_seconds", 0, "'lease_seconds' is out of range"},
       {"/activate", std::string(max_activation + 1, 'a'), "'activate' is longer than 1048576 bytes"},
       {"/hang/seconds", 0, "'hang.seconds' is out of range"},
       {"/hang/response", "kill", "'hang.response' is an unknown name"},
       {"/restarts/causes/0", "lifeline", "'restarts.causes[0]' is an unknown name"},
       {"/restarts/most", -1, "'restarts.most' is out of range"},
       {"/other", 1, "the message has an unknown field"}});
}

TEST(WireStart, TenThousandServersFit) {
  JobsToStart sent = start_message();
  sent.launch->servers.assign(max_launch_servers, {std::string(256, 's'), 1'000'000, std::string(256, 'm')});
  sent.launch->tokens.assign(max_launch_servers, std::string(64, 't'));
  const Bytes bytes = encode(sent);
  EXPECT_LT(bytes.size(), max_request_data);
  EXPECT_EQ(encode(decode<JobsToStart>(bytes)), bytes);
}

TEST(WireStart, RefusesOddReplies) {
  test::expect_refusals(
      Reply(StartJobsReply{false, started_jobs()}),
      {{"/is_program_missing", 0, "'is_program_missing' is not true or false"},
       {"/jobs", Json(max_jobs + 1, nullptr), "'jobs' has more than 100000 entries"},
       {"/jobs/0/id", "x", "'jobs[0].id' " + odd_character},
       {"/jobs/0/outcome", "running", "'jobs[0].outcome' is an unknown name"},
       {"/jobs/0/pid", 0, "'jobs[0].pid' is out of range"},
       {"/jobs/0/pid", -1, "'jobs[0].pid' is out of range"},
       {"/jobs/0/pid", (1LL << 30) + 1, "'jobs[0].pid' is out of range"},
       {"/jobs/0/pid", "7", "'jobs[0].pid' is not an integer"},
       {"/jobs/3/reason", "\x1b[2J", "'jobs[3].reason' " + odd_character},
       {"/jobs/3/reason", "a\nb", "'jobs[3].reason' " + odd_character},
       {"/jobs/3/reason", std::string(1001, 'x'), "'jobs[3].reason' is longer than 1000 bytes"},
       {"/jobs/3/other", 1, "'jobs[3]' has an unknown field"}});
  test::expect_refusals(Reply(KeepProgramReply{}),
                        {{"/is_missing", "yes", "'is_missing' is not true or false"},
                         {"/digest", "", "the message has an unknown field"}});
}

// Only the pid, the specs of a launch and a container, and the environment are optional.
TEST(WireStart, RefusesMissingFields) {
  test::expect_needs_all_fields(start_program());
  test::expect_needs_all_fields(JobFile{"init_file", ""});
  test::expect_needs_all_fields(NewJob{start_id, "local", {}, {}});
  JobsToStart alone = start_message();
  alone.launch.reset();
  alone.lease.reset();
  alone.spec.environment.reset();
  alone.spec.container.reset();
  test::expect_needs_all_fields(alone);
  test::expect_needs_all_fields(*full_spec().environment);
  test::expect_needs_all_fields(*full_spec().container);
  LaunchSpec launch = full_launch();
  test::expect_needs_all_fields(launch.restarts.value());
  test::expect_needs_all_fields(launch.hang.value());
  launch.restarts.reset();
  launch.hang.reset();
  launch.lease_seconds.reset();
  test::expect_needs_all_fields(launch);
  test::expect_needs_all_fields(Request(KeepProgramRequest{{"~/p", ".jobs"}, start_program()}));
  test::expect_needs_all_fields(StartedJob{start_id, StartOutcome::failed, std::nullopt, "why"});
  test::expect_needs_all_fields(Reply(StartJobsReply{false, started_jobs()}));
  test::expect_needs_all_fields(Reply(KeepProgramReply{}));
}

TEST(WireStart, TheRequestItselfHasNothing) {
  test::expect_refusals(Request(StartJobsRequest{}),
                        {{"/jobs", Json::array(), "the message has an unknown field"},
                         {"/kind", "start", "the message is of an unknown kind"}});
  EXPECT_LT(encode(Request(StartJobsRequest{})).size(), 100U);
}

// Longer than a frame or a single argument can be.
TEST(WireStart, JobsMayHaveLongTexts) {
  JobsToStart sent = start_message();
  sent.spec.command = std::string(1'000'000, 'h');
  sent.spec.activate = std::string(1'000'001, 't');
  sent.launch->activate = std::string(1'000'002, 'l');
  sent.jobs[0].spec.command = std::string(1'000'004, 's');
  sent.jobs[1].files[0].text = std::string(1'000'005, 'f');
  const Bytes bytes = encode(sent);
  EXPECT_LT(bytes.size(), max_request_data);
  EXPECT_EQ(encode(decode<JobsToStart>(bytes)), bytes);
}

TEST(WireStart, RefusesMoreJobsThanTheMessageHas) {
  Json odd = to_json(start_message());
  odd["jobs"] = Json(50'000, nullptr);
  EXPECT_THROW(from_json<JobsToStart>(odd), Malformed);
  EXPECT_THROW(decode<JobsToStart>(Json::to_cbor(odd)), Malformed);
}

// A refusal is logged, and the token of a launch is secret.
TEST(WireStart, NamesNoTextsInRefusals) {
  Json odd = to_json(start_message());
  odd["launch"]["tokens"][0] = "secret\n";
  EXPECT_EQ(test::refusal_of<JobsToStart>(odd).find("secret"), std::string::npos);
}

TEST(WireStart, TheAnswersAboutManyJobsFitAFrame) {
  const StartedJob failed{start_id, StartOutcome::failed, std::nullopt, std::string(200, 'r')};
  EXPECT_LE(encode(Reply(StartJobsReply{false, std::vector(3000, failed)})).size(), max_payload);
}

}  // namespace
}  // namespace remote::wire
