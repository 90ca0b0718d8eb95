#include "agent/job/members.hpp"

#include <csignal>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/job/second_place.hpp"
#include "agent/jobs_place.hpp"
#include "agent/waiting.hpp"

// Which processes belong to a job, and attempts of other processes to pass as part of one.

namespace remote::agent {
namespace {

using Outcome = KillResult::Entry::Outcome;
using test::eventually;
using test::HostFolder;
using test::JobsPlace;
using test::Started;
using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;

struct MembersTest : ::testing::Test {
  JobsPlace jobs;

  MemberJob describe(const std::string& id) {
    const JobRecord record = jobs.record(id).value();
    return {.id = id,
            .supervisor = record.supervisor->id,
            .main = record.main,
            .has_session = record.supervisor->has_session};
  }
  static std::vector<int> pids_of(const Members& members) {
    std::vector<int> pids;
    for (const Member& member : members.found()) {
      pids.push_back(member.id.pid);
    }
    return pids;
  }
  // The pid that a job wrote to this file in the project.
  int read_pid(const std::string& name) {
    const std::string path = jobs.place.project / name;
    EXPECT_TRUE(eventually([&] { return read_file(path).value_or("").ends_with('\n'); }));
    return std::stoi(read_first_line(path));
  }
  std::string here() const { return "cd '" + jobs.place.project.string() + "'; "; }
};

TEST_F(MembersTest, ByVariableRecordOutputAndFamily) {
  const std::string id = jobs.start(
      here() +
      "setsid sleep 1000 & echo $! >a\n"                                       // found by its variable
      "setsid env -i sh -c 'echo $$ >b; exec sleep 1000' &\n"                  // it writes to job.out
      "env -i sh -c 'echo $$ >c; exec sleep 1000' >/dev/null 2>&1 &\n"         // by its parent
      "(env -i sh -c 'echo $$ >d; exec sleep 1000' >/dev/null 2>&1 &)\n"       // by its process group
      "setsid env -i sh -c 'echo $$ >e; exec sleep 1000' >/dev/null 2>&1 &\n"  // only by its parent
      "echo up; exec sleep 1000");
  std::vector<int> pids{jobs.main_pid(id)};
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    pids.push_back(read_pid(name));
  }
  ASSERT_TRUE(eventually([&] {
    return std::ranges::all_of(pids,
                               [&](int pid) { return read_process(jobs.host(), pid)->name == "sleep"; });
  }));
  std::vector<ProcessId> processes;
  for (const int pid : pids) {
    processes.push_back(read_process(jobs.host(), pid)->id);
  }
  Members members(jobs.host(), jobs.place.jobs, {describe(id)});
  EXPECT_TRUE(members.found().empty());
  members.look();
  EXPECT_THAT(pids_of(members), ::testing::UnorderedElementsAreArray(pids));
  EXPECT_TRUE(members.has_any(id));
  EXPECT_EQ(members.find_job(pids[2]), id);
  EXPECT_EQ(members.find_job(::getpid()), "");

  // A process that has lost its parent or group still belongs to the job.
  EXPECT_TRUE(members.look_again());
  ::kill(pids[0], SIGKILL);
  const ProcessId supervisor = jobs.record(id)->supervisor->id;
  ASSERT_TRUE(eventually([&] { return !is_alive(jobs.host(), supervisor); }));
  EXPECT_TRUE(members.look_again());
  EXPECT_EQ(members.found().size(), 5U);
  members.look();
  EXPECT_EQ(members.found().size(), 5U);
  for (const ProcessId& process : processes) {  // including one that was not found
    send_signal(jobs.host(), process, SIGKILL);
  }
  ASSERT_TRUE(eventually([&] { return members.look_again() && members.found().empty(); }));
  EXPECT_FALSE(members.has_any(id));
  EXPECT_EQ(members.find_job(pids[2]), id) << "it was the job's";
}

TEST_F(MembersTest, ANewChildNeedsAThoroughLook) {
  const std::string id = jobs.start(here() +
                                    "trap 'sleep 1000 & echo $! >child' USR1; sleep 1000 & echo up; "
                                    "while :; do wait; done");
  Members members(jobs.host(), jobs.place.jobs, {describe(id)});
  members.look();
  EXPECT_TRUE(members.look_again());
  ::kill(jobs.main_pid(id), SIGUSR1);
  const int child = read_pid("child");
  EXPECT_FALSE(members.look_again());
  members.look();
  EXPECT_THAT(pids_of(members), Contains(child));
}

// No process of a job is older than the job: an older process only writes to its outputs.
TEST_F(MembersTest, AProcessThatIsOlderThanTheJobIsAnother) {
  const std::string gate = jobs.folder.path() / "gate";
  ASSERT_EQ(::mkfifo(gate.c_str(), 0600), 0);
  const Started older([&] {
    char path[4096] = {};
    const int fd = ::open(gate.c_str(), O_RDONLY);
    [[maybe_unused]] const ssize_t count = ::read(fd, path, sizeof path - 1);
    [[maybe_unused]] const int out = ::open(path, O_WRONLY | O_APPEND);
    test::sleep_long();
  });
  ::usleep(30'000);  // start times are in hundredths of a second
  const std::string id = jobs.start("(env -i setsid sleep 1000 &); echo up; exec sleep 1000");
  HostFolder::put(gate, jobs.job(id) / "job.out");
  ASSERT_TRUE(eventually([&] { return jobs.find_processes(id).contains(older.pid()); }));
  EXPECT_EQ(jobs.stop(id).result.outcome, Outcome::killed);
  EXPECT_THAT(jobs.find_processes(id), ::testing::ElementsAre(older.pid()));
}

bool has_open(pid_t pid, const std::string& file) {
  const Path folder = "/proc/" + std::to_string(pid) + "/fd";
  for (const std::string& name : list_names(folder)) {
    if (read_link(folder / name) == file) {
      return true;
    }
  }
  return false;
}

// A process that reads the outputs is a follower.
TEST_F(MembersTest, AReaderOfTheOutputsIsAnother) {
  const std::string id = jobs.start("echo up; exec sleep 1000");
  const std::string out = jobs.job(id) / "job.out";
  const Started reader([&] {
    [[maybe_unused]] const int fd = ::open(out.c_str(), O_RDONLY);
    test::sleep_long();
  });
  const std::string other = jobs.folder.path() / "job.out";
  const Started elsewhere([&] {  // a file with the same name
    [[maybe_unused]] const int fd = ::open(other.c_str(), O_WRONLY | O_CREAT, 0600);
    test::sleep_long();
  });
  ASSERT_TRUE(eventually([&] { return has_open(reader.pid(), out) && has_open(elsewhere.pid(), other); }));
  EXPECT_EQ(jobs.stop(id).result.signalled, 1);
  EXPECT_TRUE(reader.lives());
  EXPECT_TRUE(elsewhere.lives());
}

// A process that stops jobs does not stop itself, its session or its ancestors, even if it has the job's
// output open.
TEST_F(MembersTest, WhoStopsItIsNotTheJobs) {
  const std::string id = jobs.start("echo up; exec sleep 1000");
  const std::string out = jobs.job(id) / "job.out";
  Started outer([&] {
    const int fd = ::open(out.c_str(), O_WRONLY | O_APPEND);
    ::dup2(fd, 1);
    Started inner([&] {
      const Started neighbor([] { test::sleep_long(); });  // has its own session, and is our child
      const pid_t same_session = ::fork();
      if (same_session == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        test::sleep_long();
      }
      const StoppedJob stopped = jobs.stop(id);
      const bool is_right = stopped.result.outcome == Outcome::killed && ::kill(same_session, 0) == 0 &&
                            read_process(jobs.host(), same_session)->state == 'S';
      ::_exit(is_right ? 7 : 8);
    });
    ::_exit(inner.wait());
  });
  EXPECT_EQ(outer.wait(), 7);
}

TEST_F(MembersTest, OnlyTheWholeVariableIsTheJobs) {
  const std::string id = jobs.start("setsid sleep 1000 & echo up; exec sleep 1000");
  const std::string variable = "REMOTE_JOB_ID=" + id;
  const Started before = test::run_sleep({"PREVIOUS_" + variable});
  const Started within = test::run_sleep({"NOTE=see " + variable});
  const Started lines = test::run_sleep({"NOTE=first\n" + variable + "\nlast"});
  const Started longer = test::run_sleep({variable + "0"});
  const StoppedJob stopped = jobs.stop(id);
  EXPECT_EQ(stopped.result.outcome, Outcome::killed);
  EXPECT_EQ(stopped.result.signalled, 2);
  for (const Started* one : {&before, &within, &lines, &longer}) {
    EXPECT_TRUE(one->lives());
  }
}

TEST_F(MembersTest, ProcessesOfOtherUsersBelongToNoJob) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root, to be another user";
  }
  const std::string id = jobs.start("echo up; exec sleep 1000");
  for (fs::path path = jobs.folder.path(); path != fs::temp_directory_path(); path = path.parent_path()) {
    fs::permissions(path, fs::perms(0755));
  }
  const fs::path su = jobs.folder.path() / "su";
  fs::copy_file(fs::canonical("/bin/sleep"), su);
  fs::permissions(su, fs::perms(04755));
  const Started stranger = test::run_sleep({"REMOTE_JOB_ID=" + id}, 65534);
  const Started raised = test::run_sleep({"REMOTE_JOB_ID=" + id}, 65534, su);
  const StoppedJob stopped = jobs.stop(id);
  EXPECT_EQ(stopped.result.outcome, Outcome::killed);
  EXPECT_EQ(stopped.result.signalled, 1);
  EXPECT_TRUE(stranger.lives());
  EXPECT_TRUE(raised.lives());
}

// Starts 24 processes with random names of characters that are special in shells or lists. If the test runs
// as root, half of them belong to another user.
constexpr const char* crowd = R"names(
import ctypes, os, random, sys, time
seed, folder, job, out = sys.argv[1:]
dice = random.Random(int(seed))
pieces = ["\n", "\n", "*", "?", "[!a]", "'", '"', "\\", "$(exit)", "\n/proc/1/fd:\n", "\nl-wx------ 1 root root 64 -> " + out + "\n",
          "/proc/1/fd/1", "REMOTE_JOB_ID=" + job, "\x1b[2J", "\r", "%s%n", "${IFS}", " ", "\t", ") S 1 1 1 1", "|", "&", "~", "-e", "\xff",
          "socket:[1]", out, "/job.out", "(deleted)"]
name = lambda: "".join(dice.choice(pieces) for _ in range(dice.randrange(1, 6)))
libc = ctypes.CDLL(None)
ready, told = os.pipe()
for number in range(24):
    chosen = [name() for _ in range(8)]
    if os.fork() == 0:
        if os.getuid() == 0 and number % 2 == 0:
            os.setgroups([]); os.setgid(65534); os.setuid(65534)
        libc.prctl(1, 9)  # ends with this program
        os.umask(0)
        try:
            path = os.path.join(folder, str(number) + chosen[0])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.set_inheritable(os.open(path, os.O_WRONLY | os.O_CREAT), True)
        except OSError:
            pass  # a name that is too long, or has ".." in it
        os.write(told, b".")
        if number % 4 < 2:
            libc.prctl(15, chosen[1].encode()[:15])
            time.sleep(1000)
        variables = {word.replace("=", "") or "x": value for word, value in zip(chosen[2:4], chosen[4:6])}
        os.execve("/bin/sleep", [chosen[6], "1000"], variables)
for _ in range(24):
    os.read(ready, 1)
open(folder + "/ready", "w").close()
time.sleep(1000)
)names";

TEST_F(MembersTest, NoNameMakesAProcessTheJobsOrHidesOneOfIts) {
  if (!is_program("/usr/bin/python3")) {
    GTEST_SKIP() << "needs python3";
  }
  for (int seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    // The second process is identified only by its open file.
    const std::string id = jobs.start("(setsid env -i sleep 1000 &); echo up; exec sleep 1000");
    const std::string open = jobs.folder.path() / ("open" + std::to_string(seed));
    fs::create_directories(open);
    for (fs::path path = open; path != fs::temp_directory_path(); path = path.parent_path()) {
      fs::permissions(path, fs::perms::all);
    }
    const std::string out = fs::canonical(jobs.job(id) / "job.out");
    const std::string number = std::to_string(seed);
    const Started others([&] {
      ::execl("/usr/bin/python3", "python3", "-c", crowd, number.c_str(), open.c_str(), id.c_str(),
              out.c_str(), nullptr);
      ::_exit(99);
    });
    ASSERT_TRUE(eventually([&] { return fs::exists(open + "/ready"); }));
    const StoppedJob stopped = jobs.stop(id);
    EXPECT_EQ(stopped.result.outcome, Outcome::killed);
    EXPECT_EQ(stopped.result.signalled, 2);
    EXPECT_EQ(list_children(jobs.host(), others.pid()).value().size(), 24U);
  }
}

// ---- As a user with limits

struct AsUser : MembersTest {
  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "needs root, to be another user";
    }
  }
  // Runs this as another user without other processes; returns its result.
  std::string as_user(const std::function<std::string()>& function, uid_t user = next_user()) {
    for (fs::path path = jobs.folder.path(); path != fs::temp_directory_path(); path = path.parent_path()) {
      fs::permissions(path, fs::perms(0755));
    }
    for (const auto& entry : fs::recursive_directory_iterator(jobs.folder.path())) {
      if (!entry.is_symlink()) {
        EXPECT_EQ(::chown(entry.path().c_str(), user, user), 0);
      }
    }
    const fs::path answer = jobs.folder.path() / "answer";
    HostFolder::put(answer, "");
    EXPECT_EQ(::chown(answer.c_str(), user, user), 0);
    Started child([&] {
      test::become(user);
      std::string text;
      try {
        text = function();
      } catch (const std::exception& error) {
        text = error.what();
      }
      const int fd = ::open(answer.c_str(), O_WRONLY | O_TRUNC);
      ::_exit(::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
    });
    EXPECT_EQ(child.wait(), 0);
    return read_file(answer.string()).value_or("");
  }
  static uid_t next_user() {
    static uid_t count = 0;
    return 700000 + (static_cast<uid_t>(::getpid()) % 100000) * 64 + count++;
  }
  static void limit_processes(rlim_t most) {
    const rlimit limit{most, most};
    ::setrlimit(RLIMIT_NPROC, &limit);
  }
};

std::string to_text(const StoppedJob& stopped) {
  static const char* const names[] = {"killed", "ended", "none", "survivors", "refused"};
  std::string text = std::string(names[static_cast<int>(stopped.result.outcome)]) + " " +
                     std::to_string(stopped.result.signalled) + " " + stopped.result.reason;
  for (const auto& one : stopped.result.survivors) {
    text += " survivor " + one.name + " " + one.user + " " + one.state;
  }
  for (const auto& one : stopped.result.suspects) {
    text += " suspect " + std::to_string(one.pid.value_or(0)) + " " + one.name;
  }
  return text;
}

TEST_F(AsUser, WhatCannotBeKilledIsNamed) {
  const std::string id = jobs.start("echo up; exec sleep 1000");
  const ProcessId main = *jobs.record(id)->main;
  jobs.folder.put_system("etc/passwd", "root$(x)\n* y:x:0:0::/root:/bin/sh\n");
  EXPECT_THAT(as_user([&] { return to_text(jobs.stop(id, SIGTERM, 0)); }),
              ::testing::HasSubstr("survivors 0  survivor sleep 0 S"));
  jobs.folder.put_system("etc/passwd", "root:x:0:0::/root:/bin/sh\n");
  EXPECT_THAT(as_user([&] { return to_text(jobs.stop(id, SIGTERM, 0)); }),
              ::testing::HasSubstr("survivor sleep root S"));
  EXPECT_TRUE(is_alive(jobs.host(), main));
  const auto survivors = jobs.record(id).value().recorded.survivors;
  EXPECT_THAT(survivors, ::testing::Contains(::testing::Field(&wire::RecordedSurvivor::process,
                                                              wire::RecordedProcess{main.pid, main.start})));
  // Nothing is found out and nothing is done in another user's folder.
  const std::string refused = as_user([&] {
    jobs.place.jobs = jobs.place.jobs / "closed";
    return to_text(jobs.stop(id, SIGTERM, 0));
  });
  EXPECT_THAT(refused, ::testing::StartsWith("none")) << "there is no such folder";
  fs::create_directories(jobs.jobs() / "closed");
  fs::permissions(jobs.jobs() / "closed", fs::perms::none);
  const std::string closed = jobs.jobs() / "closed";
  EXPECT_EQ(as_user([&] {
              jobs.place.jobs = closed;
              return to_text(jobs.stop(id, SIGTERM, 0));
            }).substr(0, 40),
            ("refused 0 no permission to read " + closed).substr(0, 40));
  EXPECT_EQ(jobs.stop(id).result.outcome, Outcome::killed);
}

// A job that starts as many processes as it can, and replaces those that end.
TEST_F(AsUser, ARunawayIsStoppedAtTheLimitOfProcesses) {
  const std::string text = as_user([&] {
    const std::string id = JobsPlace::new_id();
    fs::create_directories(jobs.job(id));
    HostFolder::put(jobs.job(id) / "job.out", "");
    const std::string out = jobs.job(id) / "job.out";
    limit_processes(24);
    const Started runaway([&] {
      std::signal(SIGCHLD, SIG_IGN);
      std::signal(SIGTERM, SIG_IGN);
      const int fd = ::open(out.c_str(), O_WRONLY | O_APPEND);
      ::dup2(fd, 1);
      for (;;) {
        const pid_t child = ::fork();
        if (child == 0) {
          test::sleep_long();
        }
        if (child < 0) {
          HostFolder::put(out + ".full", "");
          ::usleep(1000);  // until the next attempt
        }
      }
    });
    eventually([&] { return fs::exists(out + ".full"); });
    HostFolder::put(jobs.job(id) / "job.pid", std::to_string(runaway.pid()) + "\n");
    const std::string limit = find_process_limit(jobs.host());
    const StoppedJob stopped = jobs.stop(id, SIGTERM, 1);
    int left = 0;
    for (const int pid : list_processes(jobs.host())) {
      left += find_owner(jobs.host(), pid) == ::geteuid() && !read_process(jobs.host(), pid)->is_dead();
    }
    return limit + "|" + std::to_string(stopped.result.outcome == Outcome::killed) + "|" +
           std::to_string(stopped.result.signalled > 10) + "|" + std::to_string(left);
  });
  EXPECT_EQ(text, "the login's limit of 24 processes (ulimit -u) is reached|1|1|1");
}

// A daemon that other processes may not inspect, like ssh-agent.
TEST_F(AsUser, ADaemonThatLetsNobodyLookIsNamedAndLeftAlone) {
  const std::string daemon_file = jobs.place.project / "daemon";
  const std::string text = as_user([&] {
    const std::string id = jobs.start("echo up; exec sleep 1000");
    // Nothing shows that it belongs to the job: it has no parent, and its own session.
    const pid_t parent = ::fork();
    if (parent == 0) {
      ::setsid();
      if (::fork() == 0) {
        ::prctl(PR_SET_DUMPABLE, 0);
        HostFolder::put(daemon_file, std::to_string(::getpid()) + "\n");
        test::sleep_long();
      }
      ::_exit(0);
    }
    ::waitpid(parent, nullptr, 0);
    const int pid = read_pid("daemon");
    const std::string adopter = read_process(jobs.host(), read_process(jobs.host(), pid)->parent)->name;
    if (read_process(jobs.host(), pid)->parent != 1 && adopter != "systemd") {
      ::kill(pid, SIGKILL);
      jobs.stop(id);
      return std::string("skip");
    }
    const std::string first = to_text(jobs.stop(id));
    // A process that started before a job does not belong to it. The kernel counts start times in ticks of 10
    // ms.
    const std::chrono::milliseconds tick = read_boot_clock() + std::chrono::milliseconds(10);
    eventually([&] { return read_boot_clock() > tick; });
    const std::string other = jobs.start("echo up; exec sleep 1000");
    const std::string second = to_text(jobs.stop(other));
    const bool lives = read_process(jobs.host(), pid).has_value();
    ::kill(pid, SIGKILL);
    return first + "|" + second + "|" + (lives ? "lives" : "gone") + " " + std::to_string(pid);
  });
  if (text == "skip") {
    GTEST_SKIP() << "needs an init process that adopts";
  }
  const std::string pid = text.substr(text.rfind(' ') + 1);
  EXPECT_THAT(text, ::testing::MatchesRegex("killed 1  suspect " + pid + " .*\\|killed 1 \\|lives " + pid));
}

// Like a read-only disk: nothing can be created, renamed or removed there.
TEST_F(AsUser, WhoStoppedItAndItsEndAreInTheSecondPlace) {
  const std::string text = as_user([&] {
    std::string lines;
    for (const bool has_supervisor : {true, false}) {
      const std::string id = jobs.start("echo up; exec sleep 1000");
      if (!has_supervisor) {
        const ProcessId supervisor = jobs.record(id)->supervisor->id;
        send_signal(jobs.host(), supervisor, SIGKILL);
        eventually([&] { return !is_alive(jobs.host(), supervisor); });
      }
      fs::remove(jobs.job(id) / "journal.jsonl");
      fs::permissions(jobs.job(id), fs::perms(0500));
      lines += to_text(jobs.stop(id)) + "|";
      const rules::JobHistory recorded = read_history(jobs.host(), jobs.job(id).string(), id);
      lines += recorded.stop ? std::to_string(recorded.stop->signal) + " " +
                                   to_stop_word(recorded.stop->by).substr(0, 5)
                             : "";
      lines += "|";
      if (!has_supervisor) {  // it knows only the real fallback folder
        const std::string result = to_end_line(recorded.end.value());
        lines += result.substr(0, 9) + result.substr(result.rfind(' ') + 1);
      }
      fs::permissions(jobs.job(id), fs::perms(0700));
      remove_second_journal(Host{}, id);
    }
    return lines;
  });
  EXPECT_EQ(text, "killed 1 |15 user:|killed 1 |15 user:|signal 15kill");
}

}  // namespace
}  // namespace remote::agent
