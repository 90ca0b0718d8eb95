#include "launch/slurm.hpp"

#include <cstdlib>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <remote/error.hpp>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "cli/show/launches.hpp"
#include "cli/show/plan.hpp"
#include "jobs/ask.hpp"
#include "jobs/job_json.hpp"
#include "jobs/job_servers.hpp"
#include "jobs/refresh.hpp"
#include "jobs/store.hpp"
#include "jobs/transitions.hpp"
#include "project/core.hpp"
#include "project/slurm.hpp"
#include "support/golden.hpp"
#include "support/instants.hpp"
#include "support/job_journal.hpp"
#include "support/local_connection.hpp"
#include "support/paths.hpp"

namespace remote::launch {
namespace {

using test::expect_golden;

LaunchSpec slurm_spec_of(const std::string& command, Launcher launcher = Launcher::ranks) {
  LaunchSpec spec;
  spec.command = command;
  spec.launcher = launcher;
  spec.run_id = "0123456789abcdef0123456789abcdef";
  return spec;
}

SlurmSpec two_by_two() {
  SlurmSpec slurm;
  slurm.program = "../.bin/digest";
  slurm.login = "cluster";
  slurm.nodes = 2;
  slurm.nproc = 2;
  slurm.failure_grace = 5;
  return slurm;
}

config::Config cluster(const std::string& keys) {
  return config::parse("servers:\n  cluster:\n    hostname: login.example.org\n" + keys, "/nowhere/p");
}

std::string problem_of(const std::string& keys) {
  try {
    cluster(keys);
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(SlurmPlanGolden, RanksWithEverySetting) {
  SlurmSpec slurm = two_by_two();
  slurm.options = project::sbatch_options(
      *cluster("    scheduler: slurm\n    partition: gpu\n    account: team-7\n    time: 1-12:00:00\n"
               "    constraint: a100&nvlink\n    gpus_per_node: 2\n"
               "    sbatch: [\"#SBATCH --mem=64G\", \"--mail-type=END\"]\n")
           .servers.front()
           .slurm);
  slurm.requeue = true;
  slurm.master_port = 29400;
  LaunchSpec spec = slurm_spec_of("train.py --token s3cr3t");
  spec.env = {{"WANDB_API_KEY", "s3cr3t"}};
  spec.local_rank_arg = true;
  const std::string text = cli::plan_text(make_slurm_plan(spec, slurm, {{"NCCL_DEBUG", "WARN"}}));
  expect_golden("plan_slurm.txt", text);
  EXPECT_EQ(text.find("s3cr3t"), std::string::npos);
  expect_golden("plan_slurm_json.txt", dump_json(cli::plan_json(make_slurm_plan(spec, slurm, {}))));
}

TEST(SlurmPlanGolden, Torchrun) {
  SlurmSpec slurm = two_by_two();
  slurm.failure_grace.reset();
  expect_golden(
      "plan_slurm_torchrun.txt",
      cli::plan_text(make_slurm_plan(slurm_spec_of("python train.py", Launcher::torchrun), slurm, {})));
}

TEST(SlurmPlanGolden, InAContainer) {
  SlurmSpec slurm = two_by_two();
  slurm.container = project::container_on_slurm(
      cluster("    scheduler: slurm\n    container: {image: images/torch.sif, args: [--bind, /data]}\n")
          .servers.front(),
      std::nullopt);
  expect_golden("plan_slurm_container.txt",
                cli::plan_text(make_slurm_plan(slurm_spec_of("python train.py"), slurm, {})));
}

TEST(SlurmPlan, HasOneProcessForAllRanks) {
  const Plan plan = make_slurm_plan(slurm_spec_of("train.py"), two_by_two(), {});
  EXPECT_EQ(plan.world_size, 4);
  ASSERT_EQ(plan.processes.size(), 1U);
  EXPECT_EQ(plan.processes[0].ranks, 4);
  EXPECT_EQ(plan.processes[0].command, "python train.py");
  for (const auto& [name, value] : plan.processes[0].env) {
    EXPECT_TRUE(name == "RUN_UUID" || name == "TORCHELASTIC_RUN_ID") << name;
  }
  EXPECT_EQ(plan.processes[0].defaults, (Env{{"OMP_NUM_THREADS", "1"}, {"PYTHONUNBUFFERED", "1"}}));
}

TEST(SlurmPlan, RefusesWhatDoesNotGoWithSlurm) {
  EXPECT_THROW(make_slurm_plan(slurm_spec_of("train.py", Launcher::mpi), two_by_two(), {}), Error);
  LaunchSpec spec = slurm_spec_of("train.py");
  spec.env = {{"RANK", "3"}};
  EXPECT_THROW(make_slurm_plan(spec, two_by_two(), {}), Error);
}

TEST(SlurmPlan, KnowsHowManyRanksAutoMeansByTheConfigurationAlone) {
  EXPECT_THROW(slurm_nproc(OnePer::gpu, 0, "cluster"), Error);
  EXPECT_EQ(slurm_nproc(OnePer::gpu, 8, "cluster"), 8);
  EXPECT_EQ(slurm_nproc(3, 8, "cluster"), 3);
  EXPECT_THROW(slurm_nproc(OnePer::core, 8, "cluster"), Error) << "nobody knows the cores of a node";
}

TEST(SlurmPlan, AStartChoosesOptionsOfItsOwn) {
  Env env{{"A", "1"},
          {"SBATCH_PARTITION", "gpu"},
          {"SBATCH_GPUS_PER_NODE", "a100:2"},
          {"SBATCH_OPTION", "--exclusive"}};
  config::Slurm usual;
  usual.partition = "cpu";
  const config::Slurm settings = project::take_options(usual, env);
  EXPECT_EQ(project::sbatch_options(settings),
            (std::vector<std::string>{"--partition=cpu", "--gpus-per-node=2", "--partition=gpu",
                                      "--gpus-per-node=a100:2", "--exclusive"}));
  EXPECT_EQ(env, (Env{{"A", "1"}}));
  for (const char* option : {"--nodes=3", "--wrap=ls", "--mem=$(id)", "-"}) {
    Env bad{{"SBATCH_OPTION", option}};
    EXPECT_THROW(project::take_options({}, bad), Error) << option;
  }
}

TEST(SlurmConfig, ReadsALoginNode) {
  const config::Config config =
      cluster("    scheduler: slurm\n    partition: gpu\n    time: 30\n    sbatch: --mem=4G\n");
  ASSERT_TRUE(config.servers.front().slurm);
  EXPECT_EQ(config.servers.front().slurm->partition, "gpu");
  EXPECT_EQ(config.servers.front().slurm->time, "30");
  EXPECT_EQ(config.servers.front().slurm->options, std::vector<std::string>{"--mem=4G"});
  EXPECT_TRUE(config.warnings.empty());
  EXPECT_FALSE(cluster("").servers.front().slurm);
}

TEST(SlurmConfig, TellsWhatIsWrong) {
  EXPECT_NE(problem_of("    partition: gpu\n").find("configs.yaml:4:16: 'partition' is for a login node"),
            std::string::npos)
      << problem_of("    partition: gpu\n");
  EXPECT_NE(problem_of("    scheduler: pbs\n").find("'scheduler' cannot be 'pbs'"), std::string::npos);
  const std::string begin = "    scheduler: slurm\n";
  for (const char* wrong : {"    partition: a b\n", "    account: \"a\\nb\"\n", "    constraint: \"$(id)\"\n",
                            "    time: soon\n", "    gpus_per_node: many\n", "    sbatch: mem=4G\n",
                            "    sbatch: [\"--comment=a\\n#SBATCH --wrap=b\"]\n", "    sbatch: --array=0-9\n",
                            "    sbatch: -N4\n", "    sbatch: \"#SBATCH --output /etc/x\"\n"}) {
    EXPECT_NE(problem_of(begin + wrong), "") << wrong;
  }
}

TEST(SlurmConfig, TakesOneOptionOfSbatchAnItem) {
  const auto problem = [](const std::string& item) {
    return problem_of("    scheduler: slurm\n    sbatch: ['" + item + "']\n");
  };
  for (const char* right : {"--mem=4G", "--mem 4G", "-p gpu", "-pgpu", "-c  8", "#SBATCH --exclusive",
                            "--wait-all-nodes=1", "--nodelist=n[1-2]", "--comment=a*b", "--hold", "-H"}) {
    EXPECT_EQ(problem(right), "") << right;
  }
  for (const char* wrong :
       {"--mem=4G --array=0-9", "-p gpu --nodes=7", "--mem 4G 5G", "--hold x -n4", "--", "-Hn4", "-vN4",
        "--comment=a#b", "-\"-nodes=3\"", "--comment=a\\b", "--comment=$HOME", "--comment=`id`"}) {
    EXPECT_NE(problem(wrong), "") << wrong;
  }
  for (const char* ours :
       {"--node=3", "--node 3", "--arr=0-9", "--ntasks-per-n=2", "--job=a", "-n 4", "-n4"}) {
    EXPECT_NE(problem(ours).find("cannot be '" + std::string(ours)), std::string::npos) << problem(ours);
  }
  for (const char* elsewhere :
       {"-M other", "-Mother", "--clusters=other", "--cluster=other", "--wra=id", "--help"}) {
    EXPECT_NE(problem(elsewhere), "") << elsewhere;
  }
}

TEST(SlurmConfig, LeavesTheChoiceOfGpusToSlurm) {
  const std::string problem = problem_of("    scheduler: slurm\n    gpus: [2, 3]\n");
  EXPECT_NE(problem.find("configs.yaml:5:11: 'gpus' cannot choose GPUs"), std::string::npos) << problem;
  EXPECT_EQ(problem_of("    scheduler: slurm\n    gpus: 4\n"), "");
}

// The error of a launch on a login node.
Error refusal_of(const std::string& keys, const LaunchRequest& request) {
  project::State state(cluster("    scheduler: slurm\n" + keys), {});
  project::Core core(state);
  try {
    project::login_of(core, request);
  } catch (const Error& error) {
    return error;
  }
  return Error("nothing", "");
}

TEST(SlurmLaunch, IsRefusedWithTheWayOut) {
  LaunchRequest request;
  request.servers = {"cluster"};
  EXPECT_EQ(refusal_of("", request).what_failed(), "nothing");

  LaunchRequest by_ssh = request;
  by_ssh.launcher = Launcher::mpi;
  by_ssh.mpi_over_ssh = true;
  EXPECT_NE(refusal_of("", by_ssh).reason().find("mpirun"), std::string::npos)
      << refusal_of("", by_ssh).reason();

  LaunchRequest tcp = request;
  tcp.init_method = InitMethod::tcp;
  EXPECT_EQ(refusal_of("", tcp).remedy(), Remedy::use_env_method);
  EXPECT_NE(refusal_of("", tcp).hint().find("init_method"), std::string::npos);

  EXPECT_EQ(refusal_of("container: {image: a}\n", request).what_failed(), "nothing");
  const std::string of_all = "container: {engine: podman, image: a}\n";
  const Error in_container = refusal_of(of_all, request);
  EXPECT_EQ(in_container.remedy(), Remedy::no_image);
  EXPECT_NE(in_container.reason().find("outlive scancel"), std::string::npos);
  EXPECT_NE(in_container.hint().find("container: none"), std::string::npos);
  EXPECT_EQ(refusal_of("    container: none\n" + of_all, request).what_failed(), "nothing");
  request.image = "none";
  EXPECT_EQ(refusal_of(of_all, request).what_failed(), "nothing");
}

const std::string some_id = "0123456789abcdef0123456789abcdef";

// The job after the server has reported this about it.
Job after(const wire::JobReport& report) {
  Job job;
  job.id = *JobId::parse(some_id);
  job.state = JobState::running;
  return jobs::apply_status(job, report, {instant(1000), instant(1000), std::nullopt}, jobs::Starter::alive);
}

TEST(SlurmStates, BecomeStatesOfJobs) {
  using enum wire::JobPhase;
  wire::JobReport timeout{.id = some_id, .phase = ended, .backend = "slurm", .reason = "TIMEOUT"};
  timeout.end = {
      .how = wire::ProcessEnd::signalled(15), .at = std::chrono::milliseconds(1000), .by = "slurm"};
  const Job limit = after(timeout);
  EXPECT_EQ(limit.state, JobState::failed);
  EXPECT_EQ(jobs::reason_text(limit.reason), "Slurm: TIMEOUT");
  const Job node = after({.id = some_id, .phase = gone, .reason = "NODE_FAIL"});
  EXPECT_EQ(node.state, JobState::lost);
  EXPECT_EQ(jobs::reason_text(node.reason), "Slurm: NODE_FAIL");
  EXPECT_EQ(after({.id = some_id, .phase = gone}).reason.kind, JobReason::Kind::processes_gone);
  const Job waits = after({.id = some_id, .phase = queued, .reason = "Slurm job 7, Resources"});
  EXPECT_EQ(waits.state, JobState::queued);
  EXPECT_EQ(waits.reason.text, "Slurm job 7, Resources");
}

TEST(SlurmStates, TheUsageOfAnEndedJobIsKept) {
  wire::JobReport report{.id = some_id, .phase = wire::JobPhase::ended, .backend = "slurm"};
  report.end = {.how = wire::ProcessEnd::exited(0)};
  EXPECT_FALSE(after(report).usage);
  report.usage_asked = true;
  EXPECT_EQ(after(report).usage, JobUsage()) << "the accounting has none";
  report.usage = JobUsage{8, 12, 3174, 65536};
  EXPECT_EQ(after(report).usage, (JobUsage{8, 12, 3174, 65536}));
}

// The job has no earlier report, and configs.yaml does not say that its server has Slurm.
TEST(SlurmStates, AreAskedForByTheFolderAlone) {
  test::LocalServers all;
  all.add_program("squeue", "echo 'squeue: down' >&2; exit 1\n");
  const JobId id = JobId::random();
  const std::filesystem::path folder = all.home("a") / "p/.jobs" / id.text();
  make_folders(folder);
  write_file_atomic(folder / "backend", "slurm\n");
  write_file_atomic(folder / "spec.json", "true\n");
  const auto connection = all.connect("a");
  const wire::JobReport report =
      jobs::ask_state({*connection, Cancel()}, {.folder = {"~/p", ".jobs"}, .ids = {id}}).jobs.at(id);
  EXPECT_EQ(report.phase, wire::JobPhase::unknown);
  EXPECT_EQ(report.backend, "slurm");
  EXPECT_EQ(report.reason, "Slurm does not answer: squeue: down");
}

// A login node whose sacct prints the file `rows` and exits with the code in `code`. Each call adds a line to
// `calls`.
class SlurmUsage : public ::testing::Test {
 protected:
  SlurmUsage() {
    all.add_program("squeue", "exit 0\n");
    all.add_program("sacct", "echo \"$*\" >>~/calls\ncat ~/rows\nexit \"$(cat ~/code)\"\n");
    accounting("");
    config = cluster("    scheduler: slurm\n");
    config.servers.front().name = "a";
  }

  void accounting(const std::string& rows, int code = 0) {
    write_file_atomic(home / "rows", rows);
    write_file_atomic(home / "code", std::to_string(code));
  }
  // A job that ended this many seconds ago.
  Job job(const std::string& number, int ago_s) {
    Job job;
    job.id = JobId::random();
    job.server = "a";
    job.state = JobState::running;
    job.remote_folder = jobs::remote_folder_for(config, config.servers.front());
    const auto end = now_seconds().time_since_epoch().count() - ago_s;
    job.created_at = instant(end - 100);
    folder = home / job.remote_folder.project.substr(2) / job.remote_folder.jobs_folder / job.id.text();
    make_folders(folder);
    write_file_atomic(folder / "backend", "slurm\n");
    write_file_atomic(folder / "supervisor", "slurm 7 - -\n");
    write_file_atomic(folder / "slurm", number + "\n");
    const std::string ms = "000";
    write_file_atomic(folder / "journal.jsonl",
                      fmt::format("{{\"kind\":\"started\",\"at\":{}{}}}\n", end - 100, ms) +
                          test::format_end(0, std::to_string(end) + ms));
    return job;
  }
  std::vector<Job> look(const std::vector<Job>& those) {
    const jobs::News news = jobs::refresh({config, store, all, Cancel()}, those, std::chrono::seconds(20));
    EXPECT_TRUE(news.silent.empty());
    return news.jobs;
  }
  std::size_t calls() const {
    const std::string text = read_file_if_there(home / "calls").value_or("");
    return static_cast<std::size_t>(std::ranges::count(text, '\n'));
  }

  test::LocalServers all;
  std::filesystem::path home = all.home("a");
  TempFolder here;
  jobs::Store store{here.path() / "jobs"};
  config::Config config = cluster("");
  std::filesystem::path folder;
};

// The format of 22.05, and the format before 21.08, when ReqMem was per node or per CPU.
TEST_F(SlurmUsage, IsAskedForOnceAndForAllJobs) {
  accounting(
      "70|COMPLETED|100|03:20.500|4|2|614400K|||\n"
      "70.batch|COMPLETED|100|00:00.015|2|1||10488K|1\n"
      "70.0|COMPLETED|100|03:20.485|4|2||97593K|2\n"
      "70.extern|COMPLETED|100|00:00|4|2||0|2\n"
      "71_3|CANCELLED by 0|86400|2-00:00:00|8|2|4096000Kn||\n"
      "71_3.batch|CANCELLED|86400|2-00:00:00|8|1||3250585.60K|1\n"
      "72|TIMEOUT|10|00:01|3|1|1024000Kc||\n"
      "a line of a site's wrapper\n");
  // the first row has an extra empty column and is ignored
  const std::vector<Job> ended = look({job("70", 10), job("71_3", 10), job("72", 10)});
  EXPECT_EQ(calls(), 1U);
  EXPECT_NE(read_file(home / "calls").find("-j 70,71_3,72 "), std::string::npos) << read_file(home / "calls");
  EXPECT_EQ(ended[0].state, JobState::succeeded);
  EXPECT_FALSE(ended[0].usage);
  EXPECT_EQ(ended[1].usage, (JobUsage{8, 25, 3174, 8000}));
  EXPECT_EQ(ended[2].usage, (JobUsage{3, 3, 0, 3000}));

  accounting("70|COMPLETED|100|03:20.500|4|2|614400K||\n70.0|COMPLETED|100|03:20.485|4|2||97593K|2\n");
  const std::vector<Job> later = look(ended);
  EXPECT_EQ(calls(), 2U);
  EXPECT_EQ(later[0].usage, (JobUsage{4, 50, 191, 600}));
  EXPECT_EQ(later[1], ended[1]);
  const int before = all.commands();
  look(later);
  EXPECT_EQ(all.commands(), before) << "nothing is left to ask";
  // It stays in the job's folder, where another laptop finds it.
  Job elsewhere = later[0];
  elsewhere.state = JobState::running;
  elsewhere.usage.reset();
  EXPECT_EQ(look({elsewhere})[0].usage, later[0].usage);
  EXPECT_EQ(calls(), 2U);

  EXPECT_EQ(cli::usage_text({later[0]}), "used 50% of 4 CPUs, 191 MiB of 600 MiB memory");
  EXPECT_EQ(cli::usage_text({later[1]}), "used 25% of 8 CPUs, 3.1 GiB of 7.8 GiB memory");
  EXPECT_EQ(cli::usage_text({later[2]}), "used 3% of 3 CPUs");
  EXPECT_EQ(cli::usage_text({Job()}), "");
}

TEST_F(SlurmUsage, IsWaitedForInTheFirstTwoMinutes) {
  const Job early = job("80", 5);
  accounting("80|RUNNING|100|00:00|4|2|614400K||\n");
  EXPECT_FALSE(look({early})[0].usage);
  accounting("", 124);  // a timeout
  EXPECT_FALSE(look({early})[0].usage);
  EXPECT_FALSE(exists(folder / "slurm.used"));
  accounting("");
  EXPECT_EQ(look({job("81", 200)})[0].usage, JobUsage());
  EXPECT_EQ(read_file(folder / "slurm.used"), "-\n");
  EXPECT_EQ(calls(), 3U);
}

TEST_F(SlurmUsage, NeedsNoAnswer) {
  accounting("85|RUNNING|100|00:00|4|2|614400K||\n");
  std::vector<Job> jobs{job("85", 5)};
  store.add(jobs);
  const std::vector<Job> ended = look(jobs);
  test::Faults away;
  away.unreachable = {"a"};
  all.set_faults(away);
  EXPECT_EQ(look(ended), ended);
  all.set_faults({});
  accounting("85|COMPLETED|100|03:20.500|4|2|614400K||\n");
  look(ended);
  EXPECT_EQ(store.list().jobs.front().usage, (JobUsage{4, 50, 0, 600}));
}

TEST_F(SlurmUsage, CostsNothingWhereThereIsNoAccounting) {
  accounting("Slurm accounting storage is disabled\n", 1);
  const std::vector<Job> ended = look({job("90", 5)});
  EXPECT_EQ(ended[0].usage, JobUsage());
  const int before = all.commands();
  EXPECT_EQ(look(ended), ended);
  EXPECT_EQ(all.commands(), before);
  EXPECT_EQ(calls(), 1U);
  // Counters that the site does not fill are ignored.
  accounting("91|COMPLETED|100|00:00:00|4|2|614400K||\n91.0|COMPLETED|100|00:00:00|4|2|||2\n");
  EXPECT_EQ(look({job("91", 200)})[0].usage, JobUsage());
}

// The record says so even if configs.yaml no longer has the server's `scheduler`. For a record of an older
// build, configs.yaml decides until the server reports it.
TEST(SlurmStates, AJobOfSlurmStaysOne) {
  const config::Config with = cluster("    scheduler: slurm\n");
  config::Config without = with;
  without.servers.front().slurm.reset();
  Job job = after(
      {.id = some_id, .phase = wire::JobPhase::running, .backend = "slurm", .reason = "Slurm job 7 on n1"});
  EXPECT_EQ(job.backend, "slurm");
  EXPECT_TRUE(jobs::is_of_slurm(without, job));
  job = after({.id = some_id, .phase = wire::JobPhase::running});
  EXPECT_EQ(job.backend, "local");
  EXPECT_FALSE(jobs::is_of_slurm(with, job));
  job.backend.reset();
  job.server = with.servers.front().name;
  job.remote_folder = jobs::remote_folder_for(with, with.servers.front());
  EXPECT_TRUE(jobs::is_of_slurm(with, job));
  EXPECT_FALSE(jobs::is_of_slurm(without, job));
}

}  // namespace
}  // namespace remote::launch
