#include "agent/slurm/slurm_job.hpp"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/container/enter_container.hpp"
#include "agent/host/files.hpp"
#include "agent/host/run.hpp"
#include "agent/host_folder.hpp"
#include "agent/job/job_spec.hpp"
#include "agent/job/record.hpp"
#include "agent/job_journal.hpp"
#include "agent/slurm/job_command.hpp"
#include "agent/started.hpp"
#include "base/strings.hpp"

// The programs that run on Slurm's nodes, with fake versions of srun and scontrol. tests/e2e/test_slurm.sh
// runs them on a real cluster.

namespace remote::agent {
namespace {

using test::eventually;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

using Variables = std::map<std::string, std::string>;

class SlurmJobTest : public ::testing::Test {
 protected:
  SlurmJobTest() {
    fs::create_directories(job());
    fs::create_directories(programs());
    put_program("squeue", "exit 0\n");
    put_program("scontrol",
                "case $2 in\n"
                "  hostnames) printf 'n1\\nn2\\n' ;;\n"
                "  node) echo \"NodeName=$4 Arch=x86_64 NodeAddr=127.0.0.1 NodeHostName=x\" ;;\n"
                "esac\n");
  }
  ~SlurmJobTest() override { fs::remove(second()); }

  fs::path job() const { return folder.path() / id; }
  fs::path programs() const { return folder.path() / "programs"; }
  fs::path second() const {
    return fs::path("/var/tmp") / ("remote-" + std::to_string(::geteuid())) / (id + ".journal.jsonl");
  }
  void put_program(const std::string& name, const std::string& text) {
    folder.put_program(programs() / name, text);
  }
  void write(const std::string& name, const std::string& text) const {
    test::HostFolder::put(job() / name, text);
  }
  std::string read(const std::string& name) const {
    return read_file((job() / name).string()).value_or("(none)");
  }

  // The job runs this command in its own folder.
  void write_spec(const std::string& command, bool has_container = false) const {
    wire::JobSpec spec{.project = job().string(), .command = command};
    if (has_container) {
      spec.container = wire::JobContainer{.engine = "apptainer", .image = "docker://image"};
    }
    fs::remove_all(job() / spec_name);
    EXPECT_TRUE(create_spec(job(), spec));
  }

  // Starts `remote-agent slurm-job WORD...` in the job's folder. Its own output goes to the file `said`.
  pid_t start(std::vector<std::string> words, const Variables& variables = {}) const {
    const pid_t pid = ::fork();
    if (pid == 0) {
      const int said = ::open((job() / "said").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      ::dup2(said, STDOUT_FILENO);
      ::dup2(said, STDERR_FILENO);
      Variables all{{"SLURM_JOB_ID", "7"},
                    {"SLURM_JOB_NODELIST", "n[1-2]"},
                    {"SLURM_JOB_NUM_NODES", "2"},
                    {"SLURMD_NODENAME", "n1"},
                    {"PATH", programs().string() + ":" + std::getenv("PATH")}};
      for (const auto& [name, value] : variables) {
        all[name] = value;
      }
      for (const auto& [name, value] : all) {
        ::setenv(name.c_str(), value.c_str(), 1);
      }
      if (::chdir(job().c_str()) != 0) {
        ::_exit(99);
      }
      std::vector<char*> pointers = pointers_to(words);
      ::_exit(run_slurm_job(static_cast<int>(words.size()), pointers.data()));
    }
    return pid;
  }
  static int wait(pid_t pid) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  int run(const std::vector<std::string>& words, const Variables& variables = {}) const {
    return wait(start(words, variables));
  }
  // Runs this as a single command.
  int run_one(const std::string& script, const Variables& variables = {}) const {
    write_spec(script);
    return run({"one"}, variables);
  }
  static Variables rank_variables(const std::string& number) {
    return {{"SLURM_PROCID", number}, {"SLURM_NTASKS", "4"}, {"SLURM_NODEID", "1"},
            {"SLURM_LOCALID", "0"},   {"MASTER_ADDR", "n1"}, {"SLURMD_NODENAME", "n2"}};
  }
  int run_rank(const std::string& number, const std::string& script, const std::string& kind = "ranks",
               const Variables& more = {}, const std::string& grace = "-") const {
    write_spec(script);
    fs::create_directories(job() / "ranks");
    fs::create_directories(job() / "failures");
    Variables variables = rank_variables(number);
    for (const auto& [name, value] : more) {
      variables[name] = value;
    }
    return run({"rank", kind, "2", grace}, variables);
  }

  test::HostFolder folder;
  const std::string id = "0123456789abcdef0123456789abcd" + std::to_string(::getpid() % 90 + 10);
};

TEST_F(SlurmJobTest, OneCommandRunsAndItsEndIsRecorded) {
  EXPECT_EQ(run_one("echo out; echo err >&2; echo $REMOTE_JOB_ID; cat; pwd; exit 3\n"), 3);
  EXPECT_EQ(read("job.out"), "out\n" + id + "\n" + job().string() + "\n");
  EXPECT_EQ(read("job.err"), "err\n");
  EXPECT_THAT(test::read_end(job()), MatchesRegex("exit 3 [0-9]{13} slurm\n"));
  EXPECT_EQ(read("supervisor"), "slurm 7 - -\n");
  EXPECT_EQ(read("slurm"), "7\n");
  EXPECT_EQ(read("nodes"), "n[1-2]\n");
  const auto started = read_own_history(job().string()).started_at;
  EXPECT_TRUE(started && read_wall_clock() - *started < std::chrono::minutes(1));
  EXPECT_EQ(read("said"), "");
  EXPECT_FALSE(fs::exists(job() / ".note"));
  struct stat info {};
  ASSERT_EQ(::stat((job() / "journal.jsonl").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
}

TEST_F(SlurmJobTest, ASignalAndAnEqualExitCodeAreDifferentEnds) {
  EXPECT_EQ(run_one("kill -TERM $$\n"), 143);
  EXPECT_THAT(test::read_end(job()), StartsWith("signal 15 "));
  fs::remove(job() / "supervisor");
  EXPECT_EQ(run_one("exit 143\n"), 143);
  EXPECT_THAT(test::read_end(job()), StartsWith("exit 143 "));
  // The shell of a command also exits with 130.
  fs::remove(job() / "supervisor");
  EXPECT_EQ(run_one("exit 130\n"), 130);
  EXPECT_THAT(test::read_end(job()), StartsWith("exit 130 "));
}

TEST_F(SlurmJobTest, ItSurvivesSignalsThatItsJobDoesNot) {
  EXPECT_EQ(run_one("for name in TERM INT HUP QUIT USR1 USR2 PIPE ALRM; do kill -$name $PPID; done\n"
                    "kill -USR2 $$\n"),
            128 + SIGUSR2);
  EXPECT_THAT(test::read_end(job()), StartsWith("signal 12 "));
}

TEST_F(SlurmJobTest, AJobThatCannotOpenItsOutputsSaysSo) {
  fs::create_directories(job() / "job.err");
  EXPECT_EQ(run_one("exit 0\n"), 127);
  EXPECT_THAT(test::read_end(job()), StartsWith("exit 127 "));
  EXPECT_EQ(read("said"), "remote: cannot open job.err: Is a directory\n");
}

TEST_F(SlurmJobTest, RunsOnlyInAJobsFolder) {
  const int status = [&] {
    const pid_t pid = ::fork();
    if (pid == 0) {
      std::vector<std::string> words{"one"};
      ::_exit(::chdir("/") == 0 ? run_slurm_job(1, pointers_to(words).data()) : 99);
    }
    return wait(pid);
  }();
  EXPECT_EQ(status, 127);
}

TEST_F(SlurmJobTest, RefusesWrongWords) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"two"},
                                                {"one", "1"},
                                                {"ranks", "2", "0"},
                                                {"ranks", "0", "0", "5"},
                                                {"ranks", "x", "0", "5"},
                                                {"ranks", "2", "70000", "5"},
                                                {"ranks", "2", "0", "soon"},
                                                {"helpers", "2", "0", "5"},
                                                {"rank", "helpers", "2", "5"},
                                                {"rank", "rank", "2", "5"}}) {
    EXPECT_EQ(run(words), 2) << join(words, " ");
  }
  EXPECT_FALSE(fs::exists(job() / "supervisor"));
}

TEST_F(SlurmJobTest, AClaimedJobNeverStarts) {
  write("supervisor", "claimed\n");
  EXPECT_EQ(run_one("echo ran\n", {{"SLURM_RESTART_COUNT", "1"}}), 0);
  EXPECT_FALSE(fs::exists(job() / "job.out"));
  EXPECT_EQ(test::read_end(job()), "");
}

// The first run could not write to its folder, and left its result in the fallback folder.
TEST_F(SlurmJobTest, RunsAgainOnlyWhenSlurmSaysSo) {
  write("supervisor", "slurm 7 - -\n");
  write("journal.jsonl", test::format_end("exit 3 1000 slurm\n"));
  write("slurm.end", "NODE_FAIL\n");
  write("ranks/0.end", "exit 3 1000 slurm\n");
  write("failures/end.0", "0 exit 3 1000 slurm\n");
  fs::create_directories(second().parent_path());
  fs::permissions(second().parent_path(), fs::perms::owner_all);
  std::ofstream(second()) << test::format_end("exit 4 1000 slurm\n");
  const std::string script = "ls ranks failures slurm.end " + second().string() +
                             " 2>/dev/null\ntail -n 2 journal.jsonl | cut -c 1-19\n";
  // The batch script of the same run is started twice: the second start changes nothing.
  EXPECT_EQ(run_one(script), 0);
  EXPECT_EQ(run_one(script, {{"SLURM_RESTART_COUNT", "0"}}), 0);
  EXPECT_TRUE(fs::exists(second()));
  EXPECT_FALSE(fs::exists(job() / "job.out"));
  EXPECT_EQ(run_one(script, {{"SLURM_RESTART_COUNT", "1"}}), 0);
  EXPECT_THAT(read("said"),
              MatchesRegex("remote: Slurm begins this job anew \\(restart 1\\) at 20[0-9-]+T[0-9:]+Z\n"));
  EXPECT_EQ(read("job.out"), "{\"kind\":\"restarted\"\n{\"kind\":\"started\",\"\n")
      << "traces of the first run were still there";
  EXPECT_THAT(test::read_end(job()), StartsWith("exit 0 "));
  EXPECT_FALSE(fs::exists(second()));
}

TEST_F(SlurmJobTest, TheResultGoesIntoTheFallbackFolder) {
  fs::create_directories(job() / "journal.jsonl/taken");
  EXPECT_EQ(run_one("exit 4\n"), 4);
  EXPECT_EQ(read_history(Host::of_this_process(), job().string(), id).end.value().how,
            wire::ProcessEnd::exited(4));
  EXPECT_TRUE(fs::exists(second()));
}

TEST_F(SlurmJobTest, AJobOfAnArrayHasItsOwnOutput) {
  const Variables array{{"SLURM_ARRAY_TASK_ID", "3"}, {"SLURM_ARRAY_JOB_ID", "5"}};
  fs::create_directories(job() / spec_name);  // it cannot run
  write(".note", "");
  EXPECT_NE(run({"one"}, array), 0);
  EXPECT_EQ(read("slurm"), "5_3\n");
  EXPECT_THAT(read("job.err"), HasSubstr("spec.json"));
  // The number written by the start counts.
  fs::remove(job() / "supervisor");
  write("slurm", "6_3\n");
  EXPECT_EQ(run_one("exit 0\n", array), 0);
  EXPECT_EQ(read("slurm"), "6_3\n");
}

TEST_F(SlurmJobTest, ASingleRunOfAnArrayWritesItsOwnMessagesThere) {
  write("supervisor", "slurm 7 - -\n");
  const Variables again{
      {"SLURM_ARRAY_TASK_ID", "3"}, {"SLURM_ARRAY_JOB_ID", "5"}, {"SLURM_RESTART_COUNT", "2"}};
  EXPECT_EQ(run_one("exit 0\n", again), 0);
  EXPECT_THAT(read("job.err"), StartsWith("remote: Slurm begins this job anew (restart 2) at "));
}

// In a container the engine's client exits with the exit status of the inner shell.
TEST_F(SlurmJobTest, AContainerGetsTheVariablesOfItsNodeAndItsNoteIsRead) {
  write("container", "engine apptainer\n");
  const auto run_container = [&](const std::string& engine, const Variables& variables = {}) {
    put_program("apptainer", engine);
    write_spec("true", true);
    return run({"one"}, variables);
  };
  EXPECT_EQ(
      run_container("tr '\\0' '\\n' <.note.variables >variables\necho signal 15 >.note; exit 143\n",
                    {{"CUDA_VISIBLE_DEVICES", "0,1"}, {"SLURM_JOB_NAME", "it's\nmine"}, {"OTHER", "x"}}),
      143);
  EXPECT_THAT(test::read_end(job()), StartsWith("signal 15 "));
  EXPECT_THAT(read("variables"), HasSubstr("CUDA_VISIBLE_DEVICES=0,1\n"));
  EXPECT_THAT(read("variables"), HasSubstr("SLURM_JOB_NAME=it's\nmine"));
  EXPECT_THAT(read("variables"), Not(HasSubstr("OTHER")));
  EXPECT_FALSE(fs::exists(job() / ".note"));
  EXPECT_FALSE(fs::exists(job() / ".note.variables"));
  for (const auto& [code, result] : std::map<int, std::string>{
           {143, "exit 143 "}, {137, "signal 9 "}, {130, "signal 2 "}, {3, "exit 3 "}}) {
    fs::remove(job() / "supervisor");
    EXPECT_EQ(run_container("exit " + std::to_string(code) + "\n"), code);
    EXPECT_THAT(test::read_end(job()), StartsWith(result));
  }
}

TEST_F(SlurmJobTest, AContainerHasAResultWhereItsNoteCannotBeWritten) {
  write("container", "engine apptainer\n");
  fs::create_directories(job() / ".note");
  EXPECT_EQ(run_one("echo ran\nexit 3\n"), 3);
  EXPECT_EQ(read("job.out"), "ran\n");
  EXPECT_THAT(test::read_end(job()), StartsWith("exit 3 "));
}

TEST(SlurmVariables, AreThoseOfSlurmTorchAndGpus) {
  for (const char* name :
       {"SLURM_JOB_ID", "SLURMD_NODENAME", "MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "LOCAL_RANK",
        "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK", "ROLE_WORLD_SIZE",
        "NCCL_SOCKET_IFNAME", interface_variable, "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
        "ZE_AFFINITY_MASK"}) {
    EXPECT_TRUE(is_of_slurm(name)) << name;
  }
  for (const char* name : {"PATH", "slurm_x", "RANKS", "HOME", "SLURM"}) {
    EXPECT_FALSE(is_of_slurm(name)) << name;
  }
}

// ---- A process of a launch

constexpr const char* print_rank =
    "for name in RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE NODE_RANK GROUP_RANK GROUP_WORLD_SIZE ROLE_RANK "
    "ROLE_WORLD_SIZE; do eval \"echo $name=\\${$name-none}\"; done\n";

TEST_F(SlurmJobTest, ARankHasTorchsVariablesAndFilesOfItsOwn) {
  EXPECT_EQ(run_rank("3", print_rank), 0);
  EXPECT_EQ(read("ranks/3.out"),
            "RANK=3\nWORLD_SIZE=4\nLOCAL_RANK=0\nLOCAL_WORLD_SIZE=2\nNODE_RANK=1\nGROUP_RANK=1\n"
            "GROUP_WORLD_SIZE=2\nROLE_RANK=3\nROLE_WORLD_SIZE=4\n");
  EXPECT_EQ(read("ranks/3.err"), "");
  EXPECT_THAT(read("ranks/3.end"), MatchesRegex("exit 0 [0-9]{13} slurm@n2\n"));
  EXPECT_TRUE(fs::is_empty(job() / "failures"));
  EXPECT_EQ(test::read_end(job()), "") << "the batch script writes it";
  // Rank 0 writes the output of the job.
  EXPECT_EQ(run_rank("0", "echo first\n"), 0);
  EXPECT_EQ(read("job.out"), "first\n");
}

TEST_F(SlurmJobTest, AnAgentOfTorchrunHasOnlyItsNode) {
  EXPECT_EQ(run_rank("3", print_rank, "agents"), 0);
  EXPECT_EQ(read("ranks/agent.3.out"),
            "RANK=none\nWORLD_SIZE=none\nLOCAL_RANK=none\nLOCAL_WORLD_SIZE=none\nNODE_RANK=1\nGROUP_RANK=1\n"
            "GROUP_WORLD_SIZE=none\nROLE_RANK=none\nROLE_WORLD_SIZE=none\n");
  EXPECT_EQ(run_rank("3", "exit 5\n", "agents"), 5);
  EXPECT_THAT(read("ranks/3.end"), StartsWith("exit 5 "));
  EXPECT_TRUE(fs::is_empty(job() / "failures")) << "torch_agent.py writes these";
}

TEST_F(SlurmJobTest, TheInterfaceLeadsToTheFirstNode) {
  const std::string script = "echo \"${GLOO_SOCKET_IFNAME-none} ${NCCL_SOCKET_IFNAME-none}\"\n";
  EXPECT_EQ(run_rank("1", script, "ranks", {{"MASTER_ADDR", "127.0.0.1"}}), 0);
  EXPECT_EQ(run_rank("1", script, "ranks", {{"MASTER_ADDR", "::1"}}), 0);
  EXPECT_EQ(run_rank("1", script, "ranks", {{"MASTER_ADDR", "::1"}, {"SLURM_JOB_NUM_NODES", "1"}}), 0);
  EXPECT_EQ(run_rank("1", script, "ranks", {{"MASTER_ADDR", "n1"}}), 0);
  EXPECT_EQ(run_rank("1", script, "ranks", {{"MASTER_ADDR", "127.0.0.1"}, {"NCCL_SOCKET_IFNAME", "ib0"}}), 0);
  EXPECT_EQ(run_rank("1", script, "ranks", {{"MASTER_ADDR", "127.0.0.1"}, {"GLOO_SOCKET_IFNAME", ""}}), 0);
  const bool has_ipv6 = fs::exists("/proc/net/if_inet6") && !read_lines("/proc/net/if_inet6").empty();
  EXPECT_EQ(read("ranks/1.out"), std::string("lo =lo\nnone none\n") +
                                     (has_ipv6 ? "lo =lo\n" : "none none\n") + "none none\nlo ib0\n =lo\n");
}

TEST_F(SlurmJobTest, AFailedRankRecordsWhenAndItsLastLines) {
  EXPECT_EQ(run_rank("3", "seq 40 >&2; printf last >&2; kill -KILL $$\n"), 137);
  const std::vector<std::string> lines = split(read("failures/rank.3"), '\n');
  ASSERT_EQ(lines.size(), 32U);
  EXPECT_EQ(lines[1], "12");
  EXPECT_EQ(lines[30], "last");
  EXPECT_EQ(lines[31], "");
  EXPECT_EQ(read("failures/end.3"), "3 signal 9 " + lines[0] + " slurm@n2\n");
  EXPECT_EQ(read("ranks/3.end"), "signal 9 " + lines[0] + " slurm@n2\n");
}

TEST_F(SlurmJobTest, ARankThatWasStoppedHasNotFailed) {
  EXPECT_EQ(run_rank("3", "kill -TERM $PPID $$\nsleep 20\n"), 143);
  EXPECT_THAT(read("ranks/3.end"), StartsWith("signal 15 "));
  EXPECT_TRUE(fs::is_empty(job() / "failures"));
  // A rank that ended differently has one.
  EXPECT_EQ(run_rank("2", "kill -TERM $PPID\nexit 3\n"), 3);
  EXPECT_THAT(read("failures/end.2"), StartsWith("2 exit 3 "));
}

TEST_F(SlurmJobTest, AfterAFailureItWaitsForTheOthersUntilTheyHaveEnded) {
  write_spec("exit 6\n");
  fs::create_directories(job() / "ranks");
  fs::create_directories(job() / "failures");
  const pid_t pid = start({"rank", "ranks", "2", "1000"}, rank_variables("3"));
  EXPECT_TRUE(eventually([&] { return fs::exists(job() / "failures/end.3"); }));
  for (const char* name : {"0", "1"}) {
    write(std::string("ranks/") + name + ".end", "exit 0 1 slurm\n");
  }
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, WNOHANG), 0);
  write("ranks/2.end", "exit 0 1 slurm\n");
  EXPECT_EQ(wait(pid), 6);
  // A signal also ends the wait.
  fs::remove(job() / "ranks/2.end");
  fs::remove(job() / "failures/end.3");
  const pid_t second = start({"rank", "ranks", "2", "1000"}, rank_variables("3"));
  EXPECT_TRUE(eventually([&] { return fs::exists(job() / "failures/end.3"); }));
  ::kill(second, SIGTERM);
  EXPECT_EQ(wait(second), 6);
}

TEST_F(SlurmJobTest, ARankWithoutItsNumberSaysSo) {
  EXPECT_EQ(run_rank("", "echo ran\n"), 127);
  EXPECT_EQ(read("said"), "remote: srun has not set SLURM_PROCID\n");
}

// ---- The launch

TEST_F(SlurmJobTest, SrunStartsAllProcesses) {
  put_program(
      "srun",
      "printf '%s\\n' \"$@\" \"$MASTER_ADDR\" \"$MASTER_PORT\" \"$REMOTE_JOB_ID\" >srun.words\ncat\n");
  write_spec("");
  EXPECT_EQ(run({"ranks", "3", "29400", "5"}), 0);
  EXPECT_THAT(
      split(trim(read("srun.words")), '\n'),
      ElementsAre("--nodes=2", "--ntasks=6", "--ntasks-per-node=3", "--mpi=none", "--kill-on-bad-exit=1",
                  "sh", "./batch.sh", "rank", "ranks", "3", "5", "127.0.0.1", "29400", id));
  EXPECT_THAT(test::read_end(job()), StartsWith("exit 0 "));
  for (const char* name : {"ranks", "failures"}) {
    EXPECT_EQ(fs::status(job() / name).permissions(), fs::perms::owner_all);
  }
  fs::remove(job() / "supervisor");
  EXPECT_EQ(run({"agents", "3", "0", "-"}, {{"SLURM_CPUS_PER_TASK", "3"}}), 0);
  std::vector<std::string> words = split(trim(read("srun.words")), '\n');
  ASSERT_EQ(words.size(), 15U);
  const int port = parse_number<int>(words[13]).value_or(0);
  EXPECT_TRUE(port >= 20000 && port <= 32767) << port;
  words[13] = "PORT";
  EXPECT_THAT(words, ElementsAre("--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--cpus-per-task=3",
                                 "--mpi=none", "--kill-on-bad-exit=0", "sh", "./batch.sh", "rank", "agents",
                                 "3", "-", "127.0.0.1", "PORT", id));
}

TEST_F(SlurmJobTest, TheFirstNodeIsNamedIfItsAddressIsUnknown) {
  put_program("srun", "echo \"$MASTER_ADDR\" >>addresses\n");
  put_program("scontrol", "[ $2 != hostnames ] || echo n8\n");
  write_spec("");
  EXPECT_EQ(run({"ranks", "1", "1", "-"}), 0);
  put_program("scontrol", "exit 1\n");
  fs::remove(job() / "supervisor");
  EXPECT_EQ(run({"ranks", "1", "1", "-"}), 0);
  EXPECT_EQ(read("addresses"), "n8\nn1\n");
}

TEST_F(SlurmJobTest, TheFirstFailedRankDecidesHowItEnded) {
  put_program("srun",
              "echo '2 signal 9 1700000000900 slurm@n1' >failures/end.2\n"
              "echo '3 exit 4 1700000000800 slurm@n2' >failures/end.3\n"
              "echo '1 exit 5 1700000001000 slurm@n1' >failures/end.1\n"
              "echo damaged >failures/end.0\n"
              "exit 137\n");
  write_spec("");
  EXPECT_EQ(run({"ranks", "2", "1", "5"}), 4);
  EXPECT_THAT(test::read_end(job()), StartsWith("exit 4 "));
  EXPECT_EQ(read("failures/agent"),
            "3 exit 4 1700000000800 slurm@n2\n2 signal 9 1700000000900 slurm@n1\n"
            "1 exit 5 1700000001000 slurm@n1\n");
}

TEST_F(SlurmJobTest, TheFirstFailedAgentDecidesHowItEnded) {
  put_program("srun",
              "echo 'exit 0 1700000000700 slurm@n1' >ranks/0.end\n"
              "echo 'signal 15 1700000000900 slurm@n1' >ranks/1.end\n"
              "echo 'exit 1 1700000000800 slurm@n2' >ranks/2.end\n"
              "exit 143\n");
  write_spec("");
  EXPECT_EQ(run({"agents", "2", "1", "5"}), 1);
  EXPECT_THAT(test::read_end(job()), StartsWith("exit 1 "));
  EXPECT_FALSE(fs::exists(job() / "failures/agent"));
}

TEST_F(SlurmJobTest, WithoutRecordsTheEndOfSrunCounts) {
  write_spec("");
  for (const auto& [script, result] : std::map<std::string, std::string>{{"exit 7", "exit 7 "},
                                                                         {"exit 137", "signal 9 "},
                                                                         {"exit 128", "exit 128 "},
                                                                         {"exit 193", "exit 193 "},
                                                                         {"kill -TERM $$", "signal 15 "}}) {
    fs::remove(job() / "supervisor");
    put_program("srun", script + "\n");
    run({"ranks", "2", "1", "5"});
    EXPECT_THAT(test::read_end(job()), StartsWith(result)) << script;
  }
}

TEST_F(SlurmJobTest, ASignalToTheJobIsItsEnd) {
  put_program("srun", "kill -HUP $PPID\nexit 130\n");
  write_spec("");
  EXPECT_EQ(run({"ranks", "2", "1", "5"}), 128 + SIGHUP);
  EXPECT_THAT(test::read_end(job()), StartsWith("signal 1 "));
}

TEST_F(SlurmJobTest, TheFirstSignalCounts) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    survive_signals();
    const bool had_none = find_end_signal() == 0;
    for (const int signal : {SIGUSR1, SIGHUP, SIGTERM, SIGINT}) {
      ::raise(signal);
    }
    ::_exit(had_none ? find_end_signal() : 99);
  }
  EXPECT_EQ(wait(pid), SIGHUP);
}

TEST_F(SlurmJobTest, SaysThatThereIsNoSrun) {
  write_spec("");
  EXPECT_EQ(run({"ranks", "2", "1", "5"}, {{"PATH", programs().string()}}), 127);
  EXPECT_EQ(read("said"), "remote: cannot start srun on n1: No such file or directory\n");
  EXPECT_THAT(test::read_end(job()), StartsWith("exit 127 "));
}

}  // namespace
}  // namespace remote::agent
