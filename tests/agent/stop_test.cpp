#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/job/stop_jobs.hpp"
#include "agent/jobs_place.hpp"
#include "agent/waiting.hpp"

// Which processes stopping a job ends and which it leaves alone.

namespace remote::agent {
namespace {

using Outcome = KillResult::Entry::Outcome;
using test::eventually;
using test::HostFolder;
using test::JobsPlace;

struct Stop : ::testing::Test {
  JobsPlace jobs;

  // How its supervisor, or the process that stopped it, recorded its end.
  wire::ProcessEnd end_of(const std::string& id) {
    const auto record = jobs.record(id);
    return record && record->end ? record->end->how : wire::ProcessEnd::exited(255);
  }
  std::optional<wire::StopRecord> stop_of(const std::string& id) {
    return jobs.record(id).value().recorded.stop;
  }
};

// All kinds of processes that must be found, each with a child that survives a plain kill of the main
// process.
const char* const stubborn_children[] = {
    "trap '' TERM HUP INT; echo up; while :; do sleep 0.1; done",
    "setsid sleep 1000 & echo up; wait",
    "(setsid sh -c 'sleep 1000 & exit' &); echo up; sleep 1000",
    "(setsid sh -c 'trap \"\" TERM; (sleep 1000; sleep 1000) & wait' &); echo up; exec sleep 1000",
    "sleep 1000 & kill -STOP $!; echo up; kill -STOP $$",
    "(setsid env -i sleep 1000 &); echo up; sleep 1000",
    "(env -i HOME=\"$HOME\" setsid sh -c 'trap \"\" TERM; echo up; sleep 1000; sleep 1000' &); sleep 1000",
    "i=0; while [ $i -lt 100 ]; do sleep 1000 & i=$((i+1)); done; echo up; wait",
};

TEST_F(Stop, LeavesNothing) {
  for (const char* command : stubborn_children) {
    SCOPED_TRACE(command);
    const std::string id = jobs.start(command);
    const auto begin = read_boot_clock();
    const StoppedJob stopped = jobs.stop(id, SIGTERM, 1);
    EXPECT_LT(read_boot_clock() - begin, test::patience) << "the grace is 1 s";
    EXPECT_EQ(stopped.result.outcome, Outcome::killed);
    EXPECT_TRUE(stopped.is_proven_gone);
    EXPECT_GE(stopped.result.signalled, 1);
    EXPECT_TRUE(stopped.result.survivors.empty());
    EXPECT_THAT(jobs.find_processes(id), ::testing::IsEmpty());
    EXPECT_FALSE(end_of(id).succeeded());
    ASSERT_TRUE(stop_of(id));
    EXPECT_EQ(stop_of(id)->signal, SIGTERM);
    EXPECT_EQ(stop_of(id)->by, (wire::StoppedBy{.text = "ada@laptop"}));
    EXPECT_EQ(jobs.stop(id).result.outcome, Outcome::ended);
  }
}

TEST_F(Stop, LeavesOtherJobsAlone) {
  std::vector<std::string> others;
  for (int i = 0; i < 10; ++i) {
    others.push_back(jobs.start("sleep 1000 & echo up; wait"));
  }
  // A job started by another job is in that job's process tree, but does not belong to it.
  const std::string inner = JobsPlace::new_id();
  const std::string id =
      jobs.start("setsid env REMOTE_JOB_ID=" + inner + " sleep 1000 & echo up; exec sleep 1000");
  ASSERT_TRUE(eventually([&] { return jobs.find_processes(inner).size() == 1; }));
  EXPECT_EQ(jobs.stop(id).result.outcome, Outcome::killed);
  EXPECT_EQ(jobs.find_processes(inner).size(), 1U);
  for (const std::string& other : others) {
    EXPECT_GE(jobs.find_processes(other).size(), 2U);
    EXPECT_FALSE(jobs.record(other)->has_result());
  }
  for (const StoppedJob& stopped : jobs.stop_all_of(others, SIGKILL, 0)) {
    EXPECT_EQ(stopped.result.outcome, Outcome::killed);
  }
  for (const std::string& other : others) {
    EXPECT_THAT(jobs.find_processes(other), ::testing::IsEmpty());
  }
  for (const int pid : jobs.find_processes(inner)) {
    ::kill(pid, SIGKILL);
  }
}

// As when the launch and a following client both stop the ranks after a failure.
TEST_F(Stop, TwoAtOnceRecordWhoEndedTheJobs) {
  std::vector<std::string> ids;
  for (int i = 0; i < 10; ++i) {
    // also jobs that exit with their own code when signalled
    ids.push_back(jobs.start(i % 2 == 0 ? "exec sleep 1000"
                                        : "trap 'exit 3' TERM; echo up; while :; do sleep 0.1; done"));
  }
  {
    std::jthread other([&] { jobs.stop_all_of(ids, SIGTERM, 1); });
    jobs.stop_all_of(ids, SIGTERM, 1);
  }
  for (const std::string& id : ids) {
    EXPECT_TRUE(jobs.record(id)->has_result());
    ASSERT_TRUE(stop_of(id));
    EXPECT_EQ(stop_of(id)->signal, SIGTERM);
  }
}

TEST_F(Stop, JobsSideBySide) {
  std::vector<std::string> ids;
  for (int i = 0; i < 6; ++i) {
    ids.push_back(jobs.start(stubborn_children[0]));
  }
  const auto begin = read_boot_clock();
  for (const StoppedJob& stopped : jobs.stop_all_of(ids, SIGTERM, 5)) {
    EXPECT_EQ(stopped.result.outcome, Outcome::killed);
  }
  EXPECT_LT(read_boot_clock() - begin, std::chrono::seconds(30))
      << "not one after the other";  // six grace periods
}

// The main process may be gone while others live.
TEST_F(Stop, WhatALostOneHasLeft) {
  const std::string id =
      jobs.start("(setsid sh -c 'trap \"\" TERM; echo up; sleep 1000; sleep 1000' &); exec sleep 1000");
  test::append(jobs.job(id), test::format_stop("15 user:ada 1700000000000"));
  ::kill(jobs.main_pid(id), SIGTERM);
  ASSERT_TRUE(eventually([&] { return jobs.record(id)->has_result(); }));
  EXPECT_EQ(jobs.stop(id, SIGTERM, 0).result.signalled, 2);
  EXPECT_EQ(end_of(id), wire::ProcessEnd::signalled(SIGTERM));
}

TEST_F(Stop, LeftoversOfAnEndedJob) {
  const std::string id = jobs.start("(setsid sh -c 'sleep 1000 & exit' &); exit 5");
  ASSERT_TRUE(eventually([&] { return jobs.record(id)->has_result(); }));
  ASSERT_TRUE(eventually([&] { return jobs.find_processes(id).size() == 1; }));
  const StoppedJob stopped = jobs.stop(id);
  EXPECT_EQ(stopped.result.outcome, Outcome::ended);
  EXPECT_EQ(stopped.result.signalled, 1);
  EXPECT_THAT(jobs.find_processes(id), ::testing::IsEmpty());
  EXPECT_EQ(end_of(id), wire::ProcessEnd::exited(5));
  EXPECT_FALSE(stop_of(id));
}

TEST_F(Stop, DoesNotClaimTheDeathOfALostJob) {
  const std::string id = jobs.start("echo up; exec sleep 1000");
  jobs.crash(id);
  ASSERT_TRUE(eventually([&] { return jobs.find_processes(id).empty(); }));
  const StoppedJob stopped = jobs.stop(id);
  EXPECT_EQ(stopped.result.outcome, Outcome::ended);
  EXPECT_EQ(stopped.result.signalled, 0);
  EXPECT_FALSE(jobs.record(id)->has_result());
  EXPECT_FALSE(stop_of(id));
  EXPECT_TRUE(jobs.record(id)->recorded.stoppers.empty());
}

TEST_F(Stop, DoesNotClaimTheDeathOfAJobThatLeftAChild) {
  const std::string id = jobs.start("setsid sleep 1000 & echo up; exec sleep 1000");
  jobs.crash(id);
  ASSERT_TRUE(eventually([&] { return jobs.find_processes(id).size() == 1; }));
  const StoppedJob stopped = jobs.stop(id);
  EXPECT_EQ(stopped.result.outcome, Outcome::ended);
  EXPECT_EQ(stopped.result.signalled, 1);
  EXPECT_FALSE(jobs.record(id)->has_result());
}

// Its stopped supervisor records the end once it is resumed.
TEST_F(Stop, DoesNotClaimTheDeathOfAJobThatFailed) {
  const std::string id = jobs.start("ulimit -c 0; echo up; exec sleep 1000");
  const pid_t main = jobs.main_pid(id);
  const pid_t guard = jobs.record(id)->supervisor->id.pid;
  ::kill(guard, SIGSTOP);
  // Until the guard has stopped, it may still reap its child.
  ASSERT_TRUE(eventually([&] { return read_process(jobs.host(), guard)->state == 'T'; }));
  // A shell that gets the signal just before execve() loses it.
  ASSERT_TRUE(eventually([&] { return read_process(jobs.host(), main)->name == "sleep"; }));
  ::kill(main, SIGSEGV);
  ASSERT_TRUE(eventually([&] { return read_process(jobs.host(), main)->is_dead(); }));
  EXPECT_EQ(jobs.stop(id).result.outcome, Outcome::ended);
  EXPECT_EQ(end_of(id), wire::ProcessEnd::signalled(SIGSEGV));
  EXPECT_FALSE(stop_of(id));
}

// Like a read-only disk: it tries for ten minutes to write the result.
TEST_F(Stop, ASupervisorThatCannotWriteTheResultIsKilled) {
  const std::string id = jobs.start("ulimit -c 0; echo up; exec sleep 1000");
  fs::remove(jobs.job(id) / "journal.jsonl");
  fs::create_directory(jobs.job(id) / "journal.jsonl");
  const std::string second = "remote-" + std::to_string(::geteuid());
  for (const fs::path& place : {jobs.folder.path() / "the root/var/tmp", jobs.folder.path() / "the root/tmp",
                                jobs.folder.path() / "shm"}) {
    HostFolder::put(place / second, "");
  }
  const ProcessId supervisor = jobs.record(id)->supervisor->id;
  const ProcessId main = jobs.record(id)->main.value();
  ::kill(main.pid, SIGKILL);
  ASSERT_TRUE(eventually([&] { return jobs.find_processes(id).empty() && !is_alive(jobs.host(), main); }));
  const StoppedJob stopped = jobs.stop(id, SIGTERM, 0);
  EXPECT_EQ(stopped.result.outcome, Outcome::ended);
  EXPECT_TRUE(stopped.result.survivors.empty());
  EXPECT_FALSE(is_alive(jobs.host(), supervisor));
  EXPECT_FALSE(jobs.record(id)->has_result());
}

TEST_F(Stop, ReportsGpuMemoryThatIsStillHeld) {
  jobs.folder.put_program(jobs.programs() / "nvidia-smi", "cat \"$HOME/gpu_pids\"\n");
  const std::string id = jobs.start("echo up; exec sleep 1000");
  const int pid = jobs.main_pid(id);
  const fs::path list = fs::path(jobs.host().home.string()) / "gpu_pids";
  HostFolder::put(list, std::to_string(pid) + "\n1\nNo such device\n");
  StoppedJob stopped = jobs.stop(id);
  EXPECT_EQ(stopped.result.outcome, Outcome::survivors);
  EXPECT_FALSE(stopped.is_proven_gone);
  ASSERT_EQ(stopped.result.survivors.size(), 1U);
  EXPECT_EQ(stopped.result.survivors[0].pid, pid);
  EXPECT_TRUE(stopped.result.survivors[0].holds_gpu_memory);
  const auto survivors = jobs.record(id)->recorded.survivors;
  ASSERT_EQ(survivors.size(), 1U);
  EXPECT_EQ(survivors[0].process, (wire::RecordedProcess{pid, 0}));
  HostFolder::put(list, "1\n");
  EXPECT_EQ(jobs.stop(id).result.outcome, Outcome::ended);
  EXPECT_TRUE(jobs.record(id)->recorded.survivors.empty());
  EXPECT_EQ(jobs.stop(jobs.start("exec sleep 1000")).result.outcome, Outcome::killed);
}

// No process of the job is alive, and only this process can report how it ended: it waits for the driver.
TEST_F(Stop, AJobWithoutASupervisorIsNotGoneBeforeItsEndIsRecorded) {
  jobs.folder.put_program(jobs.programs() / "nvidia-smi",
                          "! [ -e \"$HOME/hold\" ] || { : >\"$HOME/held\"; while [ -e \"$HOME/hold\" ]; do "
                          "sleep 0.02; done; }\n");
  const std::string id = jobs.start("echo up; exec sleep 1000");
  ::kill(jobs.record(id)->supervisor->id.pid, SIGKILL);
  ASSERT_TRUE(eventually([&] { return !is_alive(jobs.host(), jobs.record(id)->supervisor->id); }));
  const fs::path home = jobs.host().home.string();
  HostFolder::put(home / "hold", "");
  const auto find_phase = [&] {
    Backends backends(jobs.host(), jobs.place);
    JobRecord job = jobs.record(id).value();
    return backends.find("local")->find_state(job, Look::usual).phase;
  };
  {
    const std::jthread killer([&] { EXPECT_EQ(jobs.stop(id).result.outcome, Outcome::killed); });
    EXPECT_TRUE(eventually([&] { return fs::exists(home / "held"); }));
    EXPECT_THAT(jobs.find_processes(id), ::testing::IsEmpty());
    EXPECT_EQ(find_phase(), wire::JobPhase::running);
    fs::remove(home / "hold");
  }
  EXPECT_EQ(end_of(id), wire::ProcessEnd::signalled(SIGTERM));
  EXPECT_EQ(jobs.record(id)->end->by, "kill");
  EXPECT_EQ(find_phase(), wire::JobPhase::ended);
  fs::remove(jobs.job(id) / "journal.jsonl");  // as if it had died earlier
  EXPECT_EQ(find_phase(), wire::JobPhase::gone);
}

// A restarted supervisor of a launch stops such jobs, although job-list reports them as lost.
TEST_F(Stop, AJobThatIsGoneDoesNotRunWhileItIsStopped) {
  jobs.folder.put_program(jobs.programs() / "nvidia-smi",
                          "! [ -e \"$HOME/hold\" ] || { : >\"$HOME/held\"; while [ -e \"$HOME/hold\" ]; do "
                          "sleep 0.02; done; }\n");
  const std::string id = jobs.start("echo up; exec sleep 1000");
  jobs.crash(id);
  const fs::path home = jobs.host().home.string();
  HostFolder::put(home / "hold", "");
  const std::jthread killer([&] { EXPECT_EQ(jobs.stop(id).result.outcome, Outcome::ended); });
  EXPECT_TRUE(eventually([&] { return fs::exists(home / "held"); }));
  Backends backends(jobs.host(), jobs.place);
  JobRecord job = jobs.record(id).value();
  EXPECT_EQ(backends.find("local")->find_state(job, Look::usual).phase, wire::JobPhase::gone);
  fs::remove(home / "hold");
}

// A stopped lifeline (SIGSTOP) cannot notice that its ranks have ended.
TEST_F(Stop, WakesTheLifeline) {
  const std::string id = jobs.start("exec sleep 1000");
  const test::Started lifeline = test::run_sleep({});  // replaces it
  const auto has_state = [&](char state) {
    return eventually([&] { return read_process(jobs.host(), lifeline.pid())->state == state; });
  };
  ::kill(lifeline.pid(), SIGSTOP);
  ASSERT_TRUE(has_state('T'));
  const ProcessId process = lifeline.id(jobs.host());
  HostFolder::put(jobs.job(id) / "lifeline.pid",
                  std::to_string(process.pid) + " " + std::to_string(process.start) + " boot\n");
  EXPECT_EQ(jobs.stop(id).result.outcome, Outcome::killed);
  EXPECT_TRUE(has_state('S'));
}

TEST_F(Stop, AJobThatHasNotStartedNeverDoes) {
  const std::string id = JobsPlace::new_id();
  EXPECT_EQ(jobs.stop(id).result.outcome, Outcome::none) << "it is not there, and is not made";
  EXPECT_FALSE(fs::exists(jobs.job(id)));

  Backends backends(jobs.host(), jobs.place);
  const StopOrder order{.ids = {id, id}, .claim = {id}, .grace = std::chrono::seconds(5)};
  auto stopped = stop_jobs(backends, order);
  ASSERT_EQ(stopped.size(), 1U) << "each id once";
  EXPECT_EQ(stopped[0].result.outcome, Outcome::none);
  EXPECT_EQ(jobs.file(id, "supervisor"), "claimed\n");
  EXPECT_TRUE(jobs.record(id)->never_started());
  HostFolder::put(jobs.job(id) / "spec.json", "echo up\n");
  jobs.begin(id);
  ::usleep(200'000);  // long enough to have started
  EXPECT_EQ(jobs.file(id, "pid"), "");
  EXPECT_EQ(jobs.stop(id).result.outcome, Outcome::none);

  // even its project may be gone
  fs::remove_all(jobs.jobs().parent_path());
  EXPECT_EQ(stop_jobs(backends, order)[0].result.outcome, Outcome::none);
  EXPECT_EQ(jobs.file(id, "supervisor"), "claimed\n");
  fs::remove_all(jobs.jobs().parent_path());
  const StoppedJob refused = jobs.stop(id);
  EXPECT_EQ(refused.result.outcome, Outcome::refused);
  EXPECT_EQ(refused.result.reason, "cannot see the folder of the project, " + jobs.place.project.string());
}

TEST_F(Stop, AJobWithoutAFolder) {
  const std::string id = jobs.start("setsid sleep 1000 & echo up; exec sleep 1000");
  fs::rename(jobs.job(id), jobs.folder.path() / "away");
  const StoppedJob stopped = jobs.stop(id);
  EXPECT_EQ(stopped.result.outcome, Outcome::killed);
  EXPECT_EQ(stopped.result.signalled, 2);
  fs::rename(jobs.folder.path() / "away", jobs.job(id));
  EXPECT_THAT(jobs.find_processes(id), ::testing::IsEmpty());
}

TEST_F(Stop, OfAnEarlierBoot) {
  const std::string id = JobsPlace::new_id();
  HostFolder::put(jobs.job(id) / "spec.json", "\n");
  HostFolder::put(jobs.job(id) / "supervisor", std::to_string(::getpid()) + " 1 another-boot 1\n");
  HostFolder::put(jobs.job(id) / "pid", std::to_string(::getpid()) + " 1\n");
  const StoppedJob stopped = jobs.stop(id);
  EXPECT_EQ(stopped.result.outcome, Outcome::ended);
  EXPECT_TRUE(stopped.is_proven_gone);
  EXPECT_FALSE(stop_of(id));
}

TEST_F(Stop, AnUnknownBackend) {
  const std::string id = JobsPlace::new_id();
  HostFolder::put(jobs.job(id) / "backend", "later\n");
  const StoppedJob stopped = jobs.stop(id);
  EXPECT_EQ(stopped.result.outcome, Outcome::refused);
  EXPECT_EQ(stopped.result.reason, "this version of remote does not know its backend later");
}

// Between two attempts the supervisor remains, and nothing is recorded.
TEST_F(Stop, BetweenTwoAttempts) {
  const std::string id = jobs.start("setsid sleep 1000 & echo up; exec sleep 1000");
  const ProcessId supervisor = jobs.record(id)->supervisor->id;
  ::kill(supervisor.pid, SIGSTOP);
  Backends backends(jobs.host(), jobs.place);
  const auto stopped = stop_jobs(backends, {.ids = {id},
                                            .grace = std::chrono::seconds(5),
                                            .by = {.cause = wire::StopCause::launch},
                                            .is_between_attempts = true});
  EXPECT_EQ(stopped.at(0).result.outcome, Outcome::killed);
  EXPECT_EQ(stopped.at(0).result.signalled, 2);
  EXPECT_TRUE(is_alive(jobs.host(), supervisor));
  EXPECT_THAT(jobs.find_processes(id), ::testing::IsEmpty());
  EXPECT_FALSE(stop_of(id));
  EXPECT_TRUE(jobs.record(id)->recorded.stoppers.empty());
  EXPECT_EQ(test::read_end(jobs.job(id)), "");
}

// The supervisor of a launch with restarts waits for the next attempt on a FIFO.
TEST_F(Stop, EndsTheAttempts) {
  const std::string id = jobs.start("exec sleep 1000");
  const fs::path next = jobs.job(id) / ".next";
  ASSERT_EQ(::mkfifo(next.c_str(), 0600), 0);
  const int reader = ::open(next.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  EXPECT_EQ(jobs.stop(id).result.outcome, Outcome::killed);
  char text[8] = {};
  EXPECT_EQ(::read(reader, text, sizeof text), 4);
  EXPECT_STREQ(text, "end\n");
  ::close(reader);
}

TEST_F(Stop, KillAtOnce) {
  const std::string id = jobs.start(stubborn_children[0]);
  const StoppedJob stopped = jobs.stop(id, SIGKILL, 1000);
  EXPECT_EQ(stopped.result.outcome, Outcome::killed);
  EXPECT_EQ(end_of(id), wire::ProcessEnd::signalled(SIGKILL));
}

TEST_F(Stop, AJobOfLabmlRemote) {
  const std::string id = JobsPlace::new_id();
  fs::create_directories(jobs.job(id));
  HostFolder::put(jobs.job(id) / "job.out", "");
  const std::string out = jobs.job(id) / "job.out";
  const test::Started job([&] {
    const int fd = ::open(out.c_str(), O_WRONLY | O_APPEND);
    ::dup2(fd, 1);
    test::sleep_long();
  });
  const test::Started other([] { test::sleep_long(); });
  ASSERT_TRUE(eventually([&] { return jobs.find_processes(id).size() == 1; }));
  HostFolder::put(jobs.job(id) / "job.pid", std::to_string(job.pid()) + "\n");
  const StoppedJob stopped = jobs.stop(id);
  EXPECT_EQ(stopped.result.outcome, Outcome::killed);
  EXPECT_EQ(stopped.result.signalled, 1);
  EXPECT_FALSE(job.lives());
  // its pid may now belong to another process
  HostFolder::put(jobs.job(id) / "job.pid", std::to_string(other.pid()) + "\n");
  fs::remove(jobs.job(id) / "journal.jsonl");
  EXPECT_EQ(jobs.stop(id).result.signalled, 0);
  EXPECT_TRUE(other.lives());
}

// All jobs are checked together. 1,500 of them take 1 s.
TEST_F(Stop, ManyJobs) {
  const char* const wanted = std::getenv("REMOTE_TEST_JOBS");
  const int count = wanted != nullptr ? std::stoi(wanted) : 100;
  std::vector<std::string> ids;
  std::vector<test::Started> supervisors;
  for (int i = 0; i < count; ++i) {
    const std::string id = ids.emplace_back(JobsPlace::new_id());
    HostFolder::put(jobs.job(id) / "spec.json", "");
    const std::string folder = jobs.job(id);
    supervisors.emplace_back([folder, id, &host = jobs.host()] {
      const ProcessId self = read_process(host, ::getpid())->id;
      create_file(folder + "/supervisor", std::to_string(self.pid) + " " + std::to_string(self.start) + " " +
                                              read_boot_id(host) + " " + std::to_string(self.pid) + "\n");
      test::Started main = test::run_sleep({"REMOTE_JOB_ID=" + id});
      create_file(folder + "/pid",
                  std::to_string(main.pid()) + " " + std::to_string(main.id(host).start) + "\n");
      const int status = main.wait();
      append_to_journal(
          folder, wire::JobEnded{{.how = wire::ProcessEnd::signalled(status - 128), .by = "supervisor"}});
    });
  }
  for (const std::string& id : ids) {
    ASSERT_TRUE(eventually([&] { return !jobs.file(id, "pid").empty(); }));
  }
  const auto begin = read_boot_clock();
  const auto stopped = jobs.stop_all_of(ids);
  const auto took = read_boot_clock() - begin;
  RecordProperty("milliseconds", static_cast<int>(took.count()));
  for (const StoppedJob& one : stopped) {
    EXPECT_EQ(one.result.outcome, Outcome::killed);
    EXPECT_EQ(one.result.signalled, 1);
  }
  EXPECT_LT(took, test::patience);
  if (wanted != nullptr) {
    std::printf("%d jobs took %d ms\n", count, static_cast<int>(took.count()));
  }
}

// ---- How long it takes, on a clock that is advanced by the pauses alone

class FakeStopper : public Stopper {
 public:
  Remains look(bool /*quick*/) override { return {.has_members = lives, .is_closing = false}; }
  void signal(int number) override {
    if (signals.empty() || signals.back().second != number) {
      signals.emplace_back(now, number);
    }
    lives = lives && !(number == SIGKILL ? dies_by_kill : dies_by_term);
  }
  void freeze() override { ++freezes; }
  std::vector<wire::Survivor> survivors(const std::string&) const override { return {}; }
  std::vector<wire::Survivor> suspects(const std::string&) override { return {}; }

  void run(int signal, int grace_s) {
    const StopTime time{.now = [this] { return now; },
                        .wait = [this](Stopper&, std::chrono::milliseconds longest) { now += longest; }};
    stop_all(
        {this}, signal, std::chrono::seconds(grace_s), [this] { return is_at_limit; }, time);
  }

  bool lives = true;
  bool dies_by_term = false;
  bool dies_by_kill = true;
  bool is_at_limit = false;
  int freezes = 0;
  std::chrono::milliseconds now{0};
  std::vector<std::pair<std::chrono::milliseconds, int>> signals;
};

TEST(StopTimes, TermAtOnceKillAfterTheGraceAndTheEndTwoSecondsLater) {
  using std::chrono::milliseconds;
  FakeStopper obedient;
  obedient.dies_by_term = true;
  obedient.run(SIGTERM, 5);
  EXPECT_THAT(obedient.signals, ::testing::ElementsAre(std::pair(milliseconds(0), SIGTERM)));
  EXPECT_LT(obedient.now, milliseconds(100)) << "the grace is no time to wait out";

  FakeStopper deaf;
  deaf.run(SIGTERM, 1);
  ASSERT_EQ(deaf.signals.size(), 2U);
  EXPECT_EQ(deaf.signals[1].second, SIGKILL);
  EXPECT_GE(deaf.signals[1].first, milliseconds(1000));
  EXPECT_LE(deaf.signals[1].first, milliseconds(1100));
  EXPECT_LE(deaf.now, milliseconds(1200));
  EXPECT_EQ(deaf.freezes, 0);

  FakeStopper immortal;
  immortal.dies_by_kill = false;
  immortal.run(SIGTERM, 1);
  EXPECT_GE(immortal.now, milliseconds(1000));
  EXPECT_LE(immortal.now, milliseconds(3000)) << "given up two seconds after the grace";

  FakeStopper killed;
  killed.run(SIGKILL, 1000);
  EXPECT_THAT(killed.signals, ::testing::ElementsAre(std::pair(milliseconds(0), SIGKILL)));
  EXPECT_LT(killed.now, milliseconds(100));
}

// A job that starts processes as fast as they end.
TEST(StopTimes, ARunawayIsFrozenFirst) {
  FakeStopper runaway;
  runaway.is_at_limit = true;
  runaway.run(SIGTERM, 1);
  EXPECT_EQ(runaway.freezes, 1);
}

}  // namespace
}  // namespace remote::agent
