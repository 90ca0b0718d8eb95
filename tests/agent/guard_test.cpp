#include "agent/job/guard.hpp"

#include <array>
#include <csignal>
#include <fstream>
#include <string>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host/files.hpp"
#include "agent/host/run.hpp"
#include "agent/host_folder.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/job_spec.hpp"
#include "agent/job_folders.hpp"
#include "agent/job_journal.hpp"
#include "agent/started.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

using test::eventually;
using test::HostFolder;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string id = test::JobFolders::new_id();

class GuardTest : public ::testing::Test {
 protected:
  GuardTest() {
    order.folder = {.project = folder.path().string(), .jobs = Path(folder.path().string()) / ".jobs"};
    order.started = read_wall_clock();
    ::mkdir(order.folder.jobs.c_str(), 0700);
    ::mkdir(job().c_str(), 0700);
    write("job.out", "");
    write("job.err", "");
  }
  ~GuardTest() override {
    for (const auto& [pid, job_id] : find_job_processes(host)) {
      if (job_id == id) {
        ::kill(pid, SIGKILL);
      }
    }
    // Tells a guard that waits for another attempt that there is none.
    const int next = ::open((job() / ".next").c_str(), O_WRONLY | O_NONBLOCK);
    if (next >= 0) {
      EXPECT_EQ(::write(next, "end\n", 4), 4);
      ::close(next);
    }
    EXPECT_TRUE(eventually([&] { return guard == 0 || !is_alive(host, {guard, guard_start()}); }));
    ::waitpid(-1, nullptr, WNOHANG);
  }

  Path job() const { return order.folder.jobs / id; }
  void write(const std::string& name, const std::string& text) {
    std::ofstream((job() / name).string()) << text;
  }
  std::string read(const std::string& name) const { return read_file(job() / name).value_or(""); }
  std::uint64_t guard_start() const {
    const auto words = read_job_words(job() / "supervisor");
    return words.size() > 1 ? parse_number<std::uint64_t>(words[1]).value_or(0) : 0;
  }

  // Starts the job with this script; returns the guard's report.
  std::string start(const std::string& script) {
    ::unlink((job() / spec_name).c_str());
    EXPECT_TRUE(
        create_spec(job(), {.project = job(), .is_leased = exists(job() / "devices"), .command = script}));
    std::array<int, 2> pipe{-1, -1};
    EXPECT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
    // Avoids lease_fd, because a guard with a lease leaves it open.
    const int report = ::fcntl(pipe[1], F_DUPFD_CLOEXEC, lease_fd + 1);
    ::close(pipe[1]);
    EXPECT_TRUE(start_guard(host, order, id, report));
    ::close(report);
    std::string text;
    std::array<char, 1000> buffer{};
    for (ssize_t count = 0; (count = ::read(pipe[0], buffer.data(), buffer.size())) > 0;) {
      text.append(buffer.data(), static_cast<std::size_t>(count));
    }
    ::close(pipe[0]);
    const auto words = read_job_words(job() / "supervisor");
    guard = words.empty() ? 0 : parse_number<int>(words[0]).value_or(0);
    return text;
  }
  // The first line of the result, without its time.
  std::string wait_for_result() {
    EXPECT_TRUE(eventually([&] { return !test::read_end(job()).empty(); }));
    const std::vector<std::string> words = split_words(test::read_end(job()));
    return words.size() == 4 ? words[0] + " " + words[1] + " " + words[3] : test::read_end(job());
  }
  std::string run(const std::string& script) {
    start(script);
    return wait_for_result();
  }
  void until(const std::string& file, const std::string& text) {
    EXPECT_TRUE(eventually([&] { return read(file).find(text) != std::string::npos; }))
        << read(file) << read("job.err");
  }
  rules::JobHistory recorded() const { return read_own_history(job()); }
  void await_attempt(int attempt, int code) {
    EXPECT_TRUE(eventually([&] {
      const auto last = recorded().last_attempt;
      return last && last->attempt == attempt && last->end.how == wire::ProcessEnd::exited(code);
    })) << read("journal.jsonl")
        << read("job.err");
  }
  void tell(const std::string& order_text) {
    const int next = ::open((job() / ".next").c_str(), O_WRONLY | O_NONBLOCK);
    EXPECT_EQ(::write(next, order_text.data(), order_text.size()), static_cast<ssize_t>(order_text.size()));
    ::close(next);
  }
  int main_pid() const { return parse_number<int>(read_job_words(job() / "pid").at(0)).value(); }

  HostFolder folder;
  const Host host = Host::of_this_process();
  GuardOrder order{};
  pid_t guard = 0;
};

TEST_F(GuardTest, RecordsHowTheJobEnded) {
  EXPECT_EQ(run("echo out; echo err >&2; exit 3"), "exit 3 supervisor");
  EXPECT_EQ(read("job.out"), "out\n");
  EXPECT_EQ(read("job.err"), "err\n");
  EXPECT_FALSE(exists(job() / ".space"));
  EXPECT_EQ(recorded().started_at, order.started);
}

// As in a home folder that becomes inaccessible after the last logout, until the next login. Root can read
// every folder, so another user runs the job.
TEST_F(GuardTest, RecordsTheEndOnceTheFolderCanBeReadAgain) {
  const auto run_job = [&] {
    start("while [ ! -e ../../go ]; do sleep 0.05; done; chmod 000 .; exit 3");
    std::ofstream((folder.path() / "go").string()) << "";
    EXPECT_TRUE(eventually([&] { return ::access(job().c_str(), R_OK) != 0; }));
    EXPECT_TRUE(eventually([&] { return find_job_processes(host).empty(); }));
    EXPECT_EQ(::chmod(job().c_str(), 0700), 0);
    EXPECT_THAT(wait_for_result(), StartsWith("exit 3"));
  };
  if (::geteuid() != 0) {
    run_job();
    return;
  }
  constexpr uid_t nobody = 65534;
  EXPECT_EQ(::chown(folder.path().c_str(), nobody, nobody), 0);
  for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
    EXPECT_EQ(::chown(entry.path().c_str(), nobody, nobody), 0);
  }
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgroups(0, nullptr) != 0 || ::setresgid(nobody, nobody, nobody) != 0 ||
        ::setresuid(nobody, nobody, nobody) != 0 || ::prctl(PR_SET_DUMPABLE, 1) != 0) {
      ::_exit(2);
    }
    run_job();
    ::_exit(HasFailure() ? 1 : 0);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(GuardTest, TellsSignalsFromExitCodes) {
  for (const auto& [script, result] : {std::pair{"exit 137", "exit 137 supervisor"},
                                       {"kill -KILL $$", "signal 9 supervisor"},
                                       {"exit 130", "exit 130 supervisor"},
                                       {"kill -INT $$", "signal 2 supervisor"},
                                       {"exit 141", "exit 141 supervisor"},
                                       {"kill -PIPE $$", "signal 13 supervisor"},
                                       {"exit 143", "exit 143 supervisor"},
                                       {"kill -TERM $$", "signal 15 supervisor"}}) {
    EXPECT_EQ(run(script), result) << script;
    ::unlink((job() / "journal.jsonl").c_str());
    ::unlink((job() / "supervisor").c_str());
  }
}

TEST_F(GuardTest, OfAContainersClientACodeWithANoteIsASignal) {
  write("container", "engine apptainer\n");
  for (const auto& [script, result] : {std::pair{"exit 137", "signal 9 supervisor"},
                                       {"exit 130", "signal 2 supervisor"},
                                       {"exit 143", "exit 143 supervisor"},
                                       {"echo Terminated 1<>.note; exit 143", "signal 15 supervisor"},
                                       {"exit 1", "exit 1 supervisor"}}) {
    EXPECT_EQ(run(script), result) << script;
    EXPECT_FALSE(exists(job() / ".note"));
    ::unlink((job() / "journal.jsonl").c_str());
    ::unlink((job() / "supervisor").c_str());
  }
}

TEST_F(GuardTest, ReportsThePidOfTheJobWhichIsOnRecord) {
  const std::string report = start("sleep 1000");
  EXPECT_EQ(report, id + " " + std::to_string(main_pid()) + "\n");
  EXPECT_NE(guard, main_pid());
  const auto process = read_process(host, main_pid());
  ASSERT_TRUE(process);
  EXPECT_EQ(process->parent, guard);
  EXPECT_EQ(std::to_string(process->id.start), read_job_words(job() / "pid").at(1));
  EXPECT_EQ(read_job_words(job() / "supervisor").at(2), read_boot_id(host));
  EXPECT_EQ(read_job_words(job() / "supervisor").at(3), std::to_string(guard));
  // /proc shows its variables once it has become the command.
  EXPECT_TRUE(eventually([&] { return find_job_processes(host).contains(main_pid()); }));
  EXPECT_EQ(find_job_processes(host).at(main_pid()), id);
  EXPECT_FALSE(find_job_processes(host).contains(guard));
}

TEST_F(GuardTest, SurvivesSignalsAndTheKillOfTheJobsGroup) {
  start("trap 'kill -KILL 0' USR1; echo ready; while :; do sleep 0.01; done");
  until("job.out", "ready");
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM}) {
    EXPECT_EQ(::kill(guard, signal), 0);
  }
  EXPECT_TRUE(is_alive(host, {guard, guard_start()}));
  ::kill(main_pid(), SIGUSR1);
  EXPECT_EQ(wait_for_result(), "signal 9 supervisor");
}

TEST_F(GuardTest, TheJobBeginsWithDefaultSignalsAndItsOwnUmask) {
  std::signal(SIGHUP, SIG_IGN);
  std::signal(SIGCHLD, SIG_IGN);
  order.mask = 027;
  run("grep -E 'SigIgn|SigBlk' /proc/self/status; umask; ls -l /proc/self/fd; read -r line; echo "
      "\"in:$line\"");
  std::signal(SIGHUP, SIG_DFL);
  std::signal(SIGCHLD, SIG_DFL);
  EXPECT_THAT(read("job.out"), HasSubstr("SigIgn:\t0000000000000000"));
  EXPECT_THAT(read("job.out"), HasSubstr("SigBlk:\t0000000000000000"));
  EXPECT_THAT(read("job.out"), HasSubstr("0027"));
  EXPECT_THAT(read("job.out"), HasSubstr("in:\n"));
  EXPECT_THAT(read("job.out"), ::testing::Not(HasSubstr("pipe:")));
}

// The process that started it waits for the end of the report.
TEST_F(GuardTest, AJobThatWaitsForItsTurnHasBeenReported) {
  write("devices", "");
  write("queue", std::string(32, 'b') + "\n");
  ASSERT_EQ(::mkfifo((job() / ".turn").c_str(), 0600), 0);
  const std::string report = start("echo ran");
  EXPECT_EQ(report, id + " " + std::to_string(main_pid()) + "\n");
  EXPECT_EQ(read("job.out"), "");
  const int turn = ::open((job() / ".turn").c_str(), O_WRONLY | O_CLOEXEC);
  EXPECT_EQ(::write(turn, "go\n", 3), 3);
  ::close(turn);
  EXPECT_EQ(wait_for_result(), "exit 0 supervisor");
  EXPECT_EQ(read("job.out"), "ran\n");
}

TEST_F(GuardTest, OrphansOfTheJobAreItsChildren) {
  start("(sh -c 'echo $$ >orphan; exec sleep 1000' &) ; sleep 1000");
  until("orphan", "\n");
  const int orphan = parse_number<int>(trim(read("orphan"))).value();
  EXPECT_TRUE(eventually([&] { return read_process(host, orphan)->parent == guard; }));
}

TEST_F(GuardTest, WhatWasClaimedOrStartedBeforeStartsNothing) {
  write("supervisor", "claimed\n");
  EXPECT_THAT(start("echo ran"), StartsWith(id + " ! "));
  guard = 0;
  EXPECT_EQ(read("supervisor"), "claimed\n");
  EXPECT_EQ(read("job.out"), "");
  EXPECT_EQ(test::read_end(job()), "");
}

TEST_F(GuardTest, ASpareWaitsForItsFirstAttempt) {
  write("again", "60 hub\n");
  write("spare", "");
  EXPECT_EQ(start("echo ran"), id + " spare\n");
  EXPECT_FALSE(exists(job() / "pid"));
  tell("nonsense\ngo 2\n");
  await_attempt(2, 0);
  EXPECT_EQ(read("job.out"), "ran\n");
  tell("end\n");
  EXPECT_EQ(wait_for_result(), "exit 0 supervisor");
}

TEST_F(GuardTest, ASpareThatNobodyNeedsEndsWithoutRunning) {
  write("again", "60 hub\n");
  write("spare", "");
  start("echo ran");
  tell("end\n");
  EXPECT_EQ(wait_for_result(), "exit 0 supervisor");
  EXPECT_EQ(read("job.out"), "");
}

TEST_F(GuardTest, AttemptsFollowEachOtherInOneFolder) {
  write("again", "60 hub\n");
  start("mkdir -p failures; echo x >failures/agent; echo \"attempt $(cat attempt 2>/dev/null)\"; exit 5");
  await_attempt(1, 5);
  EXPECT_EQ(test::read_end(job()), "");
  write("attempt", "number 2\n");
  tell("go 2\n");
  await_attempt(2, 5);
  EXPECT_EQ(read("job.out"), "attempt \nattempt number 2\n");
  tell("end\n");
  EXPECT_EQ(wait_for_result(), "exit 5 supervisor");
}

TEST_F(GuardTest, AfterAStopThereIsNoOtherAttempt) {
  write("again", "60 hub\n");
  start("sleep 1000");
  test::append(job().string(), test::format_stop("15 user:ada 1"));
  ::kill(main_pid(), SIGTERM);
  EXPECT_EQ(wait_for_result(), "signal 15 supervisor");
}

TEST_F(GuardTest, APointOfASweepIsTriedAgain) {
  write("retry", "2\n");
  EXPECT_EQ(run("echo \"try ${SWEEP_RETRY-first}\"; exit 4"), "exit 4 supervisor");
  EXPECT_EQ(read("job.out"), "try first\ntry 1\ntry 2\n");
  EXPECT_EQ(read("job.err"),
            "remote: the point begins again (retry 1 of 2) after exit 4\n"
            "remote: the point begins again (retry 2 of 2) after exit 4\n");
}

TEST_F(GuardTest, RecordsThatTheOutOfMemoryKillerStruckIfTheJobFailed) {
  int kills = 41;
  order.count_oom_kills = [&](const Host&) { return kills++; };
  EXPECT_EQ(run("kill -KILL $$"), "signal 9 supervisor");
  EXPECT_TRUE(recorded().was_out_of_memory);
}

TEST_F(GuardTest, AnothersOutOfMemoryIsNoNewsAboutAJobThatSucceeded) {
  int kills = 41;
  order.count_oom_kills = [&](const Host&) { return kills++; };
  EXPECT_EQ(run("true"), "exit 0 supervisor");
  EXPECT_FALSE(recorded().was_out_of_memory);
}

TEST_F(GuardTest, WithoutACountOrWithTheSameNothingIsSaidAboutMemory) {
  order.count_oom_kills = [](const Host&) { return std::nullopt; };
  EXPECT_EQ(run("exit 1"), "exit 1 supervisor");
  EXPECT_FALSE(recorded().was_out_of_memory);
}

// While it exists, modes of folders also restrict root: this thread, and processes that it forks.
class ModesForRoot {
 public:
  ModesForRoot() {
    is_read_ = ::syscall(SYS_capget, &header_, before_.data()) == 0;
    auto fewer = before_;
    fewer[0].effective &= ~((1U << CAP_DAC_OVERRIDE) | (1U << CAP_DAC_READ_SEARCH));
    set(fewer);
  }
  ModesForRoot(const ModesForRoot&) = delete;
  ModesForRoot& operator=(const ModesForRoot&) = delete;
  ~ModesForRoot() { set(before_); }

 private:
  using Capabilities = std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3>;
  void set(const Capabilities& all) {
    EXPECT_TRUE(is_read_ && ::syscall(SYS_capset, &header_, all.data()) == 0);
  }

  __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
  Capabilities before_{};
  bool is_read_ = false;
};

// Like a home directory that needs a ticket, and is closed after the last logout.
TEST_F(GuardTest, AFolderThatIsClosedForAWhileGetsTheRecordLater) {
  order.find_full_disk = [](const Path&) { return FolderFlaw::none; };
  {
    const ModesForRoot obeyed;
    start("until [ -e go ]; do sleep 0.05; done; chmod 0 .; exit 3");
  }
  const ProcessId supervisor{guard, guard_start()};
  const int job_pid = main_pid();
  write("go", "");
  EXPECT_TRUE(eventually([&] { return ::kill(job_pid, 0) != 0; }));
  EXPECT_TRUE(is_alive(host, supervisor)) << "it tries again";
  fs::permissions(job().string(), fs::perms::owner_all);
  EXPECT_EQ(wait_for_result(), "exit 3 supervisor");
}

TEST_F(GuardTest, RecordsThatTheDiskIsFullIfTheJobFailed) {
  order.find_full_disk = [](const Path&) { return FolderFlaw::quota; };
  EXPECT_EQ(run("exit 1"), "exit 1 supervisor");
  EXPECT_EQ(recorded().disk, FolderFlaw::quota);
}

TEST_F(GuardTest, DoesNotTryTheDiskOfAJobThatSucceeded) {
  order.find_full_disk = [](const Path&) { return FolderFlaw::full; };
  EXPECT_EQ(run("true"), "exit 0 supervisor");
  EXPECT_EQ(recorded().disk, FolderFlaw::none);
}

TEST_F(GuardTest, DoesNotTryTheDiskOfAJobThatWasStopped) {
  order.find_full_disk = [](const Path&) { return FolderFlaw::full; };
  start("sleep 1000");
  test::append(job().string(), test::format_stop("15 user:ada 1"));
  ::kill(main_pid(), SIGTERM);
  EXPECT_EQ(wait_for_result(), "signal 15 supervisor");
  EXPECT_EQ(recorded().disk, FolderFlaw::none);
}

TEST_F(GuardTest, AFolderThatTakesFilesIsNotFull) {
  EXPECT_EQ(run("exit 1"), "exit 1 supervisor");
  EXPECT_EQ(recorded().disk, FolderFlaw::none);
  for (const std::string& name : list_names(job())) {
    EXPECT_THAT(name, ::testing::Not(HasSubstr("remote-try")));
  }
}

TEST(OomKills, AreThoseOfTheControlGroupOrOfTheMachine) {
  HostFolder folder;
  EXPECT_EQ(count_oom_kills(folder.host), std::nullopt);
  folder.put_system("proc/vmstat", "pgfault 5\noom_kill 7\n");
  EXPECT_EQ(count_oom_kills(folder.host), 7U);
  folder.put_system("proc/self/cgroup", "0::/user.slice/x\n");
  EXPECT_EQ(count_oom_kills(folder.host), 7U);
  folder.put_system("sys/fs/cgroup/user.slice/x/memory.events", "oom 3\noom_kill 2\noom_group_kill 0\n");
  EXPECT_EQ(count_oom_kills(folder.host), 2U);
}

TEST_F(GuardTest, MpirunThatEndsBeforeItsRanksHasFailed) {
  EXPECT_EQ(run("echo '1 0 0' >open.rank.1"), "exit 1 supervisor");
  EXPECT_THAT(read("job.err"), HasSubstr("remote: mpirun has ended before its ranks\n"));
}

}  // namespace
}  // namespace remote::agent
