#include <chrono>

#include <gmock/gmock.h>
#include <unistd.h>

#include "support/instants.hpp"
#include "support/script_test.hpp"

// What status.sh tells of jobs, under every sh that servers have.

namespace remote::jobs {
namespace {

using std::chrono::milliseconds;

class JobStatus : public test::ScriptTest {};

// As on a full disk, where its folder took the result, for which there was room, and no pid.
TEST_P(JobStatus, OneWhosePidCouldNotBeWrittenDidNotStart) {
  const JobId id = start("exit 127");
  EXPECT_EQ(wait_end(id).reason, "") << "the command's own exit code";
  std::ofstream(folder(id) / "pid", std::ios::trunc).flush();
  const StatusReply reply = status(id);
  EXPECT_EQ(reply.phase, Phase::ended);
  EXPECT_EQ(reply.reason, "it did not start, as its folder takes no files: is the disk full?");
}

TEST_P(JobStatus, TellsTheMomentOfAFailuresLastWords) {
  const JobId id = start("echo why >&2; until [ -e ~/go ]; do sleep 0.2; done; exit 3");
  until([&] { return file(id, "job.err") == "why\n"; }, "its last words");
  // its clock has moved on by a tenth of a second, by its own account
  const auto later = fs::last_write_time(folder(id) / "job.err") + milliseconds(100);
  until(
      [&] {
        std::ofstream(servers.home("a") / "look") << "";
        return fs::last_write_time(servers.home("a") / "look") >= later;
      },
      "a tenth of a second");
  std::ofstream(servers.home("a") / "go") << "";
  const StatusReply reply = wait_end(id);
  const StatusAnswer answer = run(status_action(jobs_folder, {id}, {}));
  if (GetParam() == test::ServerShell::busybox) {
    EXPECT_FALSE(reply.wrote_at);
    EXPECT_FALSE(answer.exact);
  } else {
    ASSERT_TRUE(reply.wrote_at && reply.end && reply.end->at && answer.exact);
    EXPECT_GE((*reply.end->at - *reply.wrote_at).count(), 99);
    EXPECT_GE(answer.server_now, *reply.end->at);
  }
  const StatusReply fine = wait_end(start("echo why >&2"));
  EXPECT_FALSE(fine.wrote_at);
}

TEST_P(JobStatus, TellsWhenAnErrorWasRaisedThatWaitedForADebugger) {
  const auto raised = [&](const std::string& text) {
    const JobId id = start("exit 3");
    std::ofstream(folder(id) / "raised") << text;
    return wait_end(id).raised_at;
  };
  EXPECT_EQ(raised("1764000000123\n"), exact_instant(1764000000123));
  for (const char* wrong : {"", "x\n", "-1\n", "1 2\n", "99999999999999999\n"}) {
    EXPECT_FALSE(raised(wrong)) << wrong;
  }
}

// A rank that has said nothing in its last attempt failed when it ended, not when that attempt began.
TEST_P(JobStatus, WhatDividesAttemptsIsNoLastWord) {
  const auto wrote = [&](const std::string& words) {
    const JobId id = start("printf '%s\\n' " + words + " >&2; exit 3");
    std::ofstream(folder(id) / "attempt") << "number 2\n";
    return wait_end(id).wrote_at.has_value();
  };
  const std::string anew = "'remote: the ranks begin anew (restart 1) at 2026-11-24T11:58:19Z after rank 1'";
  EXPECT_FALSE(wrote("why " + anew));
  EXPECT_EQ(wrote(anew + " why"), wrote("why"));
}

TEST_P(JobStatus, TellsWhoseLastWordsAreOfAPeer) {
  const auto told = [&](const std::string& words, const std::string& end = "exit 1") {
    return wait_end(start("printf '%b' '" + words + "' >&2; " + end)).after_peer;
  };
  const std::string traceback = "Traceback (most recent call last):\\n  File x\\n";
  EXPECT_TRUE(told(traceback + "RuntimeError: [tcp/pair.cc:598] Connection closed by peer [10.0.0.2]:1\\n"));
  EXPECT_TRUE(told("RuntimeError: Read error: Connection reset by peer"));
  EXPECT_TRUE(told("torch.distributed.DistNetworkError: failed to recv, got 0 bytes\\n", "kill -6 $$"));
  EXPECT_TRUE(told("[E] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3)\\n"));
  EXPECT_FALSE(told(traceback + "ValueError: a bad batch\\n"));
  EXPECT_FALSE(told("Connection reset by peer, trying again\\n" + traceback + "ValueError: a bad batch\\n"));
  EXPECT_FALSE(told(""));
  const std::string anew = "remote: the ranks begin anew (restart 1) at 2026-11-24T11:58:19Z after rank 1\\n";
  EXPECT_FALSE(told("Connection reset by peer\\n" + anew)) << "an earlier attempt";
  EXPECT_TRUE(told(anew + "Connection reset by peer"));
  EXPECT_FALSE(told("Connection reset by peer", "exit 0"));
}

// The record is written later than the process ends, and others end in between; and a network file system may
// have another clock.
TEST_P(JobStatus, TellsTheMomentOfAnEndAndNotOfItsRecord) {
  const JobId id = start("echo why >&2; exit 3");
  const StatusReply before = wait_end(id);
  EXPECT_EQ(before.end->by, "supervisor");
  for (const char* name : {"result", "job.err"}) {
    fs::last_write_time(folder(id) / name, fs::last_write_time(folder(id) / name) + std::chrono::seconds(5));
  }
  const StatusReply reply = status(id);
  EXPECT_EQ(reply.end->at, before.end->at);
  EXPECT_FALSE(reply.wrote_at);
}

// What builds before this one wrote.
TEST_P(JobStatus, UnderstandsOlderRecords) {
  const JobId id = start("exit 3");
  wait_end(id);
  const auto told = [&](const std::string& record) {
    std::ofstream(folder(id) / "result") << record << "\n";
    return status(id);
  };
  for (const char* record : {"signal 9 1700000000", "signal 9 1700000000.000"}) {
    const StatusReply reply = told(record);
    ASSERT_TRUE(reply.end) << record;
    EXPECT_EQ(reply.result(), ExitStatus::signalled(9));
    EXPECT_EQ(reply.end->at, exact_instant(1700000000000));
    EXPECT_EQ(reply.end->by, "-");
  }
  EXPECT_EQ(told("never 0 1700000000").phase, Phase::none);
  EXPECT_EQ(told("never 0 1700000000123 claim").phase, Phase::none);
  EXPECT_EQ(told("exit 3 1700000000123 supervisor").end->at, exact_instant(1700000000123));
  for (const char* record : {"", "exit", "exit x", "walked 3 1700000000", "exit 3333"}) {
    EXPECT_FALSE(told(record).end) << record;
  }
  std::ofstream(folder(id) / "stop") << "15 loss%20of%20b 1700000000\n";
  const StatusReply stopped = told("signal 15 1700000001");
  EXPECT_EQ(stopped.stop_by, (JobReason{.kind = JobReason::Kind::after_loss, .text = "b"}));
  EXPECT_EQ(stopped.stopped_at, exact_instant(1700000000000));
  std::ofstream(folder(id) / "stop") << "15 a b c 1700000000000\n";
  EXPECT_EQ(told("signal 15 1700000001").stop_by, JobReason()) << "the answer about the others stays whole";
}

TEST_P(JobStatus, TellsSignalsFromExitCodes) {
  std::vector<StartRequest> requests;
  std::vector<ExitStatus> expected;
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGILL, SIGABRT, SIGFPE, SIGKILL, SIGUSR1, SIGSEGV,
                           SIGPIPE, SIGALRM, SIGTERM, SIGXCPU, SIGSYS, 34, 64}) {
    if (number == SIGQUIT && GetParam() == test::ServerShell::busybox) {
      continue;  // ignored there, see above
    }
    requests.push_back({JobId::random(),
                        "ulimit -c 0; exec dash -c 'kill -" + std::to_string(number) + " $$; sleep 100'",
                        "",
                        {}});
    expected.push_back(ExitStatus::signalled(number));
  }
  for (const int code : {0, 1, 2, 126, 127, 128, 129, 131, 134, 137, 139, 143, 159, 192, 193, 254, 255}) {
    requests.push_back({JobId::random(), "exit " + std::to_string(code), "", {}});
    expected.push_back(ExitStatus::exited(code));
  }
  start_all(requests);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const StatusReply reply = wait_end(requests[i].id);
    ASSERT_TRUE(reply.end) << requests[i].process.command << file(requests[i].id, "job.err");
    EXPECT_EQ(reply.end->status, expected[i])
        << requests[i].process.command << ": " << reply.end->status.describe();
  }
}

// A supervisor whose `date` is killed again and again says how the job ended, but not when.
TEST_P(JobStatus, AResultWithoutItsTimeIsUnderstood) {
  const JobId id = start("exit 3");
  wait_end(id);
  std::ofstream(folder(id) / "result") << "exit 3 \n";
  const StatusReply reply = status(id);
  EXPECT_EQ(reply.phase, Phase::ended);
  EXPECT_EQ(reply.result(), ExitStatus::exited(3));
  EXPECT_FALSE(reply.end->at);
}

TEST_P(JobStatus, ADeadSupervisorHidesNoJob) {
  const JobId id = start("echo up; sleep 1000 & wait");
  until_out(id, "up");
  ::kill(supervisor_of(id), SIGKILL);
  StatusReply reply;
  until([&] { return !(reply = status(id)).supervised; }, "news of the supervisor");
  EXPECT_EQ(reply.phase, Phase::running);
  EXPECT_EQ(kill(id).outcome, KillReply::Outcome::killed);
  EXPECT_EQ(servers.processes(), std::vector<pid_t>{});
  EXPECT_EQ(status(id).phase, Phase::ended);
  EXPECT_EQ(status(id).result(), ExitStatus::signalled(SIGTERM));
}

TEST_P(JobStatus, GoneWhenSupervisorAndJobAreDeadByForce) {
  const JobId id = start("echo up; sleep 1000 & wait");
  until_out(id, "up");
  const int pid = status(id).pid.value();
  ::kill(supervisor_of(id), SIGKILL);
  ::kill(pid, SIGKILL);
  // its child lives on, and its cookie says whose it is
  until([&] { return servers.processes().size() == 1; }, "the child alone");
  EXPECT_EQ(status(id).phase, Phase::running);
  EXPECT_FALSE(status(id).supervised);
  ::kill(servers.processes().at(0), SIGKILL);
  until([&] { return status(id).phase == Phase::gone; }, "gone");
}

TEST_P(JobStatus, APidAloneProvesNothing) {
  const JobId id = start("echo up; sleep 1000");
  until_out(id, "up");
  const std::string supervisor = file(id, "supervisor");
  const int pid = status(id).pid.value();
  ::kill(supervisor_of(id), SIGKILL);
  ::kill(pid, SIGKILL);
  until([&] { return status(id).phase == Phase::gone; }, "gone");
  // both pids are those of living processes now, which started at another time
  std::ofstream(folder(id) / "pid") << ::getpid() << " 1\n";
  const auto words = split_words(supervisor);
  std::ofstream(folder(id) / "supervisor") << ::getpid() << " 1 " << words.at(2) << ' ' << ::getpid() << '\n';
  EXPECT_EQ(status(id).phase, Phase::gone);
  EXPECT_EQ(kill(id).signalled, 0);
  // and after a restart of the server not even both together
  std::ofstream(folder(id) / "supervisor") << words.at(0) << ' ' << words.at(1) << " another-boot -\n";
  fs::remove(folder(id) / "result");
  EXPECT_EQ(status(id).phase, Phase::rebooted);
}

TEST_P(JobStatus, AStoppedSupervisorAndAZombieAreSeenThrough) {
  const JobId id = start("sleep 1000");
  const pid_t supervisor = supervisor_of(id);
  ::kill(supervisor, SIGSTOP);
  ::kill(status(id).pid.value(), SIGKILL);  // a zombie now: its parent is stopped
  EXPECT_EQ(status(id).phase, Phase::running);
  kill(id);
  EXPECT_EQ(status(id).result(), ExitStatus::signalled(SIGKILL));
  EXPECT_EQ(servers.processes(), std::vector<pid_t>{});
}

TEST_P(JobStatus, TheSupervisorOutlivesSignals) {
  const JobId id = start("echo up; sleep 1000");
  until_out(id, "up");
  const pid_t supervisor = supervisor_of(id);
  for (const int number : {SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGUSR1}) {
    ::kill(supervisor, number);
  }
  ::kill(status(id).pid.value(), SIGINT);
  EXPECT_EQ(wait_end(id).result(), ExitStatus::signalled(SIGINT));
}

TEST_P(JobStatus, ARemovedFolderHoldsNoSupervisor) {
  const JobId id = start("echo up; sleep 1000");
  until_out(id, "up");
  const int pid = status(id).pid.value();
  fs::remove_all(folder(id));
  ::kill(pid, SIGKILL);
  expect_nothing_left();
}

// Their supervisors died between making their file and filling it, as on a full disk.
TEST_P(JobStatus, TheAbandonedAreLookedAtTogether) {
  std::vector<JobId> ids;
  for (int i = 0; i < 20; ++i) {
    ids.push_back(JobId::random());
    make_folders(folder(ids.back()));
    std::ofstream(folder(ids.back()) / "supervisor") << "";
  }
  servers.add_program("sleep", "echo nap >>\"$HOME/naps\"\nexec /bin/sleep \"$@\"\n");
  const auto replies = run(status_action(jobs_folder, ids, ids)).jobs;
  ASSERT_EQ(replies.size(), ids.size());
  for (const StatusReply& reply : replies) {
    EXPECT_EQ(reply.phase, Phase::none);
    EXPECT_THAT(file(reply.id, "result"), ::testing::StartsWith("never 0 "));
  }
  EXPECT_EQ(read_file(servers.home("a") / "naps"), "nap\n");
}

TEST_P(JobStatus, AsksAbout200JobsAtOnce) {
  start("true");
  std::vector<JobId> ids;
  const std::string boot{trim(read_file("/proc/sys/kernel/random/boot_id"))};
  for (int i = 0; i < 200; ++i) {
    ids.push_back(JobId::random());
    make_folders(folder(ids.back()));
    std::ofstream(folder(ids.back()) / "supervisor") << ::getpid() << " 1 " << boot << " -\n";
    std::ofstream(folder(ids.back()) / "pid") << ::getpid() << " 1\n";
    std::ofstream(folder(ids.back()) / "job.out") << "12345";
  }
  const auto answer = run(status_action(jobs_folder, ids, {}));
  ASSERT_EQ(answer.jobs.size(), 200U);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(answer.jobs[i].id, ids[i]);
    EXPECT_EQ(answer.jobs[i].phase, Phase::gone);
    EXPECT_EQ(answer.jobs[i].out_size, 5U);
  }
}

TEST_P(JobStatus, TheOutOfMemoryKillerIsTold) {
  // the counter, by a grep that reads it elsewhere
  const fs::path counter = servers.home("a") / "oom_kills";
  std::ofstream(counter) << "oom_kill 41\n";
  servers.add_program("grep", "case $* in *oom_kill*) exec cat '" + counter.string() +
                                  "' ;; esac\nexec /usr/bin/grep \"$@\"\n");
  const JobId calm = start("exit 1");
  EXPECT_FALSE(wait_end(calm).oom);
  const JobId struck = start("echo 'oom_kill 43' >~/oom_kills; kill -9 $$");
  const StatusReply reply = wait_end(struck);
  EXPECT_EQ(reply.result(), ExitStatus::signalled(SIGKILL));
  EXPECT_TRUE(reply.oom);
  EXPECT_EQ(file(struck, "oom"), "2\n");
  // another's trouble is no news about a job that did well
  const JobId fine = start("echo 'oom_kill 50' >~/oom_kills");
  EXPECT_FALSE(wait_end(fine).oom);
}

INSTANTIATE_TEST_SUITE_P(Shells, JobStatus, test::every_shell, test::shell_name);

}  // namespace
}  // namespace remote::jobs
