#include <cmath>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "project/gpu_samples.hpp"
#include "project/report/kept_bandwidth.hpp"
#include "project/report/moments.hpp"
#include "project/server_setup.hpp"
#include "support/instants.hpp"
#include "support/waiting.hpp"

// The parts of reports besides records and outputs: files in .remote, and lines of the jobs' stderr.

namespace remote::project {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::SizeIs;

struct World {
  TempFolder temp{"remote-report-"};
  config::Config config;

  World() {
    config.project = temp.path();
    make_folders(temp.path() / ".remote");
  }
};

Job job_on(const std::string& server) {
  Job job;
  job.id = JobId::random();
  job.key = 3;
  job.server = server;
  return job;
}

TEST(ReportMoments, AreReadFromTheLinesOfBeginningsAnew) {
  const auto torch = moment_in("remote: the workers begin anew (restart 2) at 2026-11-21T07:30:00.123Z");
  ASSERT_TRUE(torch);
  EXPECT_EQ(torch->kind, Moment::Kind::restarted);
  EXPECT_EQ(torch->at, *parse_utc("2026-11-21T07:30:00Z") + std::chrono::milliseconds(123));
  EXPECT_TRUE(torch->exact);
  EXPECT_EQ(torch->text, "restart 2");
  EXPECT_EQ(
      moment_in(
          "remote: the workers begin anew (restart 2) at 2026-11-21T07:30:00.123Z after rank 3: signal 9")
          ->text,
      "restart 2 after rank 3: signal 9");
  EXPECT_EQ(
      moment_in("remote: the ranks begin anew (restart 1) at 2026-11-21T07:30:00Z after the loss of b")->text,
      "restart 1 after the loss of b");
  const auto slurm = moment_in("remote: Slurm begins this job anew (restart 1) at 2026-11-21T07:30:00Z");
  ASSERT_TRUE(slurm);
  EXPECT_EQ(slurm->kind, Moment::Kind::requeued);
  EXPECT_FALSE(slurm->exact);
  for (const char* line : {"", "restart", "remote: the workers begin anew (restart 2)",
                           "remote: the workers begin anew (restart x) at 2026-11-21T07:30:00Z",
                           "remote: the workers begin anew (restart -1) at 2026-11-21T07:30:00Z",
                           "remote: the workers begin anew (restart 2) at 2026-11-21T07:30:00.1\x1b"
                           "2Z",
                           "remote: the workers begin anew (restart 2) at 2026-11-21T07:30:00.123Z and more",
                           " remote: the workers begin anew (restart 2) at 2026-11-21T07:30:00Z"}) {
    EXPECT_FALSE(moment_in(line)) << line;
  }
}

TEST(ReportMoments, TellHowJobsEnded) {
  Job failed = job_on("a");
  failed.state = JobState::failed;
  failed.result = ExitStatus::exited(7);
  failed.failed_at = exact_instant(1795333800123);
  Job killed = job_on("b");
  killed.state = JobState::killed;
  killed.ended_at = instant(1795333802);
  killed.reason = {.kind = JobReason::Kind::after_rank, .number = 0};
  Job running = job_on("a");
  running.state = JobState::running;
  const auto moments = moments_of({failed, killed, running});
  ASSERT_THAT(moments, SizeIs(2));
  EXPECT_EQ(moments[0].at, exact_instant(1795333800123));
  EXPECT_TRUE(moments[0].exact);
  EXPECT_EQ(moments[0].text, "exit 7");
  EXPECT_EQ(moments[1].kind, Moment::Kind::killed);
  EXPECT_EQ(moments[1].at, exact_instant(1795333802000));
  EXPECT_EQ(moments[1].text, "ended after rank 0");
}

ServerSample sample_at(int at, double use) {
  ServerSample sample;
  sample.server = "a";
  sample.heard_at = instant(at);
  Job job = job_on("a");
  job.state = JobState::running;
  sample.jobs.push_back({job, ""});
  Gpu gpu;
  gpu.index = 1;
  gpu.name = "A100\x1b[2J";
  gpu.utilisation = use;
  gpu.memory_total = 80;
  sample.gpus.gpus = {gpu};
  return sample;
}

TEST(ReportGpuSamples, AreKeptOncePerSpacingAndOnlyWhereAJobRuns) {
  const World world;
  GpuSamples samples(world.config);
  ServerSample idle = sample_at(50, 1);
  idle.jobs.clear();
  samples.keep(idle);
  ServerSample none = sample_at(60, 1);
  none.gpus.gpus.clear();
  samples.keep(none);
  EXPECT_FALSE(std::filesystem::exists(world.temp.path() / ".remote/samples"));
  for (const int at : {100, 101, 105, 109, 110}) {
    samples.keep(sample_at(at, static_cast<double>(at - 100)));
  }
  const auto gpus = kept_samples(world.config, {"a", "none"}, instant(0), instant(1000));
  ASSERT_THAT(gpus, SizeIs(1));
  EXPECT_EQ(gpus[0].server, "a");
  EXPECT_EQ(gpus[0].index, 1);
  EXPECT_EQ(gpus[0].name, "A100\\x1b[2J");
  EXPECT_EQ(gpus[0].memory_total, 80U);
  EXPECT_THAT(gpus[0].at, ElementsAre(instant(100), instant(105), instant(110)));
  EXPECT_THAT(gpus[0].use, ElementsAre(0, 5, 10));
  EXPECT_TRUE(std::isnan(gpus[0].memory[0])) << "the driver does not tell";
  EXPECT_THAT(kept_samples(world.config, {"a"}, instant(104), instant(106))[0].at, ElementsAre(instant(105)));
  EXPECT_THAT(kept_samples(world.config, {"a"}, instant(0), instant(1000), 2)[0].at,
              ElementsAre(instant(100), instant(110)));
  GpuSamples other(world.config);  // another program, a moment later
  other.keep(sample_at(112, 1));
  other.keep(sample_at(90, 1));  // and one whose clock was set back
  EXPECT_THAT(kept_samples(world.config, {"a"}, instant(0), instant(1000))[0].at,
              ElementsAre(instant(100), instant(105), instant(110)));
  const auto file = world.temp.path() / ".remote/samples/a";
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(file).permissions(), perms::owner_read | perms::owner_write);
}

TEST(ReportGpuSamples, GoNowhereThroughALink) {
  const World world;
  const auto elsewhere = world.temp.path() / "elsewhere";
  make_folders(elsewhere);
  std::filesystem::create_directory_symlink(elsewhere, world.temp.path() / ".remote/samples");
  GpuSamples(world.config).keep(sample_at(100, 1));
  EXPECT_TRUE(std::filesystem::is_empty(elsewhere));

  // Files in the folder do not redirect it either, nor does a server name in a record that came with the
  // project.
  const auto folder = world.temp.path() / ".remote/samples";
  std::filesystem::remove(folder);
  make_folders(folder);
  std::filesystem::create_symlink(elsewhere / "lock", folder / ".lock");
  GpuSamples(world.config).keep(sample_at(100, 1));
  EXPECT_TRUE(std::filesystem::is_empty(elsewhere));
  std::filesystem::remove(folder / ".lock");
  ASSERT_EQ(::mkfifo((folder / "a").c_str(), 0600), 0);
  GpuSamples(world.config).keep(sample_at(100, 1));  // does not wait for a writer
  std::filesystem::remove(folder / "a");
  GpuSamples(world.config).keep(sample_at(100, 1));
  ASSERT_THAT(kept_samples(world.config, {"a"}, instant(0), instant(900)), SizeIs(1));
  std::filesystem::rename(folder / "a", world.temp.path() / ".remote/b");
  EXPECT_THAT(kept_samples(world.config, {"../b"}, instant(0), instant(900)), SizeIs(0));
}

TEST(ReportGpuSamples, AreCutDownToTheNewestHalfAndStrangeLinesArePassedBy) {
  const World world;
  const auto folder = world.temp.path() / ".remote/samples";
  make_folders(folder);
  {
    std::ofstream file(folder / "a");
    file << "nonsense\n{}\n[]\n{\"at\":\"x\",\"gpus\":[]}\n{\"at\":5,\"gpus\":[[0],[\"a\",1,1,1,\"x\"],7]}\n";
    for (std::size_t i = 0; i < GpuSamples::most_lines; ++i) {
      file << "{\"at\":" << 1000 + i << ",\"gpus\":[[0,50,null,null,\"" << std::string(40, 'x') << "\"]]}\n";
    }
  }
  EXPECT_THAT(kept_samples(world.config, {"a"}, instant(0), instant(900)), SizeIs(0));
  GpuSamples(world.config).keep(sample_at(100000, 1));
  const std::string text = read_file(folder / "a");
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(text, '\n')), GpuSamples::most_lines / 2);
  EXPECT_TRUE(text.starts_with("{\"at\":"));
  EXPECT_TRUE(text.find("{\"at\":100000,") != std::string::npos);
}

Network measured() {
  Network network;
  for (const char* name : {"a", "b", "c"}) {
    network.servers.emplace_back().server = name;
  }
  Bandwidth& bandwidth = network.bandwidth.emplace();
  bandwidth.flows = {{.from = 0, .to = 1, .gbit_s = 9.5, .latency = Microseconds(40), .method = "own"},
                     {.from = 1, .to = 0, .method = "own", .error = "it is <slow>", .outlier = true}};
  bandwidth.median_gbit_s = 9.5;
  return network;
}

TEST(ReportBandwidth, IsKeptAndShownForLaunchesOverThoseServers) {
  const World world;
  EXPECT_FALSE(kept_bandwidth(world.config, {job_on("a"), job_on("b")}));
  keep_bandwidth(world.config, measured());
  const auto kept = kept_bandwidth(world.config, {job_on("a"), job_on("b")});
  ASSERT_TRUE(kept);
  EXPECT_LE(std::chrono::abs(now_seconds() - kept->at), test::patience);
  EXPECT_THAT(kept->network.servers, SizeIs(2)) << "those of the launch alone";
  ASSERT_THAT(kept->network.bandwidth->flows, SizeIs(2));
  EXPECT_EQ(kept->network.bandwidth->flows[0].gbit_s, 9.5);
  EXPECT_EQ(kept->network.bandwidth->flows[1].error, "it is <slow>");
  EXPECT_TRUE(kept->network.bandwidth->flows[1].outlier);
  const auto others = kept_bandwidth(world.config, {job_on("c"), job_on("b")});
  ASSERT_TRUE(others);
  EXPECT_EQ(others->network.servers.front().server, "c");
  EXPECT_THAT(others->network.bandwidth->flows, SizeIs(0));
  EXPECT_FALSE(kept_bandwidth(world.config, {job_on("a"), job_on("d")})) << "d took no part";
  EXPECT_FALSE(kept_bandwidth(world.config, {job_on("a"), job_on("a")})) << "one server sends nothing";
  write_file_atomic(world.temp.path() / ".remote/bandwidth.json", "{\"version\":1,\"servers\":7}");
  EXPECT_THROW(kept_bandwidth(world.config, {job_on("a"), job_on("b")}), Error);
}

TEST(ReportBandwidth, FlowsOfServersThatAreNotThereAreLeftOut) {
  const World world;
  Network network = measured();
  network.bandwidth->flows.push_back({.from = 0, .to = 99, .gbit_s = 1});
  keep_bandwidth(world.config, network);
  EXPECT_THAT(kept_bandwidth(world.config, {job_on("a"), job_on("b")})->network.bandwidth->flows, SizeIs(2));
}

TEST(ReportVariables, AreThoseThatAllProcessesOfAServerShare) {
  PlannedProcess one{.server = "a", .rank = 0, .command = "x"};
  one.env = {{"MODE", "fast"}, {"RANK", "0"}, {"SEED", "1"}, {"API_KEY", "hunter2"}};
  PlannedProcess two = one;
  two.env = {{"MODE", "fast"}, {"RANK", "1"}, {"SEED", "2"}, {"API_KEY", "hunter2"}};
  EXPECT_THAT(shared_variables({one, two}), ElementsAre(Pair("API_KEY", "********"), Pair("MODE", "fast")));
  EXPECT_THAT(shared_variables({}), SizeIs(0));
}

}  // namespace
}  // namespace remote::project
