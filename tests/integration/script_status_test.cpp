#include <chrono>

#include <gmock/gmock.h>
#include <unistd.h>

#include "jobs/from_wire.hpp"
#include "support/job_journal.hpp"
#include "support/script_test.hpp"
#include "support/waiting.hpp"

// The agent's reports about jobs, started with every sh that servers have.

namespace remote::jobs {
namespace {

using std::chrono::milliseconds;

class JobStatus : public test::ScriptTest {};

// As on a full disk, if there was enough space for the result but not for the pid.
TEST_P(JobStatus, OneWhosePidCouldNotBeWrittenDidNotStart) {
  const JobId id = start("exit 127");
  EXPECT_EQ(wait_end(id).reason, "") << "the command's own exit code";
  std::ofstream(folder(id) / "pid", std::ios::trunc).flush();
  const wire::JobReport reply = status(id);
  EXPECT_EQ(reply.phase, Phase::ended);
  EXPECT_EQ(reply.reason, "it did not start, because its folder cannot be written: is the disk full?");
}

TEST_P(JobStatus, TellsTheMomentOfAFailuresLastWords) {
  const JobId id = start("echo why >&2; until [ -e ~/go ]; do sleep 0.2; done; exit 3");
  until([&] { return file(id, "job.err") == "why\n"; }, "its last words");
  // according to the file system's clock, a tenth of a second has passed
  const auto later = fs::last_write_time(folder(id) / "job.err") + milliseconds(100);
  until(
      [&] {
        std::ofstream(servers.home("a") / "look") << "";
        return fs::last_write_time(servers.home("a") / "look") >= later;
      },
      "a tenth of a second");
  std::ofstream(servers.home("a") / "go") << "";
  const wire::JobReport reply = wait_end(id);
  const StateAnswer answer = ask_state(agent(), {.folder = jobs_folder, .ids = {id}});
  ASSERT_TRUE(reply.wrote_at && reply.end && reply.end->at);
  EXPECT_GE((*reply.end->at - *reply.wrote_at).count(), 99);
  EXPECT_GE(answer.time->now, to_instant(*reply.end->at));
  const wire::JobReport fine = wait_end(start("echo why >&2"));
  EXPECT_FALSE(fine.wrote_at);
}

TEST_P(JobStatus, TellsWhenAnErrorWasRaisedThatWaitedForADebugger) {
  const auto raised = [&](const std::string& text) {
    const JobId id = start("exit 3");
    std::ofstream(folder(id) / "raised") << text;
    return wait_end(id).raised_at;
  };
  EXPECT_EQ(raised("1764000000123\n"), milliseconds(1764000000123));
  for (const char* wrong : {"", "x\n", "-1\n", "1 2\n", "99999999999999999\n"}) {
    EXPECT_FALSE(raised(wrong)) << wrong;
  }
}

// If a rank printed nothing in its last attempt, its failure time is when it ended, not when the attempt
// started.
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

// The record is written after the process ends, and other processes end in between. A network file system may
// have a different clock.
TEST_P(JobStatus, TellsTheMomentOfAnEndAndNotOfItsRecord) {
  const JobId id = start("echo why >&2; exit 3");
  const wire::JobReport before = wait_end(id);
  EXPECT_EQ(before.end->by, "supervisor");
  for (const char* name : {"journal.jsonl", "job.err"}) {
    fs::last_write_time(folder(id) / name, fs::last_write_time(folder(id) / name) + std::chrono::seconds(5));
  }
  const wire::JobReport reply = status(id);
  EXPECT_EQ(reply.end->at, before.end->at);
  EXPECT_FALSE(reply.wrote_at);
}

TEST_P(JobStatus, IgnoresDamagedRecords) {
  const JobId id = start("exit 3");
  wait_end(id);
  const auto told = [&](const std::string& journal) {
    std::ofstream(folder(id) / "journal.jsonl") << journal;
    return status(id);
  };
  EXPECT_EQ(told("{\"kind\":\"never_starts\",\"at\":1700000000123}\n").phase, Phase::none);
  const std::string line = test::format_end(3, "1700000000123");
  EXPECT_EQ(told(line).end->at, milliseconds(1700000000123));
  for (const std::string& journal : {std::string(), line.substr(0, 20), line.substr(0, line.size() - 1),
                                     test::format_end(3333), test::format_end(3, "-1")}) {
    EXPECT_FALSE(told(journal).end) << journal;
  }
  EXPECT_FALSE(told("{\"kind\":\"stop_requested\",\"stop\":{}}\n" + line).stop);
  EXPECT_TRUE(told("{\"kind\":\"stop_requested\",\"stop\":{}}\n" + line).end)
      << "the answer about the others stays whole";
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
    const wire::JobReport reply = wait_end(requests[i].id);
    ASSERT_TRUE(reply.end) << requests[i].process.command << file(requests[i].id, "job.err");
    EXPECT_EQ(result_of(reply), expected[i])
        << requests[i].process.command << ": " << reply.end->how.status().describe();
  }
}

// If a supervisor's `date` is killed repeatedly, the supervisor reports how the job ended, but not when.
TEST_P(JobStatus, AResultWithoutItsTimeIsUnderstood) {
  const JobId id = start("exit 3");
  wait_end(id);
  std::ofstream(folder(id) / "journal.jsonl") << test::format_end(3, "");
  const wire::JobReport reply = status(id);
  EXPECT_EQ(reply.phase, Phase::ended);
  EXPECT_EQ(result_of(reply), ExitStatus::exited(3));
  EXPECT_FALSE(reply.end->at);
}

TEST_P(JobStatus, ADeadSupervisorHidesNoJob) {
  const JobId id = start("echo up; sleep 1000 & wait");
  until_out(id, "up");
  ::kill(supervisor_of(id), SIGKILL);
  wire::JobReport reply;
  until([&] { return !(reply = status(id)).supervised; }, "news of the supervisor");
  EXPECT_EQ(reply.phase, Phase::running);
  EXPECT_EQ(kill(id).outcome, StopOutcome::killed);
  EXPECT_EQ(servers.processes(), std::vector<pid_t>{});
  EXPECT_EQ(status(id).phase, Phase::ended);
  EXPECT_EQ(result_of(status(id)), ExitStatus::signalled(SIGTERM));
}

TEST_P(JobStatus, GoneWhenSupervisorAndJobAreDeadByForce) {
  const JobId id = start("echo up; sleep 1000 & wait");
  until_out(id, "up");
  const int pid = status(id).pid.value();
  ::kill(supervisor_of(id), SIGKILL);
  ::kill(pid, SIGKILL);
  // its child is still running, and the child's job id variable identifies the job
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
  // both pids now belong to processes that started at another time
  std::ofstream(folder(id) / "pid") << ::getpid() << " 1\n";
  const auto words = split_words(supervisor);
  std::ofstream(folder(id) / "supervisor") << ::getpid() << " 1 " << words.at(2) << ' ' << ::getpid() << '\n';
  EXPECT_EQ(status(id).phase, Phase::gone);
  EXPECT_EQ(kill(id).signalled, 0);
  // and after a reboot of the server not even both together are valid
  std::ofstream(folder(id) / "supervisor") << words.at(0) << ' ' << words.at(1) << " another-boot -\n";
  fs::remove(folder(id) / "journal.jsonl");
  EXPECT_EQ(status(id).phase, Phase::rebooted);
}

TEST_P(JobStatus, AStoppedSupervisorAndAZombieAreSeenThrough) {
  const JobId id = start("sleep 1000");
  const pid_t supervisor = supervisor_of(id);
  ::kill(supervisor, SIGSTOP);
  ::kill(status(id).pid.value(), SIGKILL);  // a zombie now: its parent is stopped
  EXPECT_EQ(status(id).phase, Phase::running);
  kill(id);
  EXPECT_EQ(result_of(status(id)), ExitStatus::signalled(SIGKILL));
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
  EXPECT_EQ(result_of(wait_end(id)), ExitStatus::signalled(SIGINT));
}

TEST_P(JobStatus, ARemovedFolderHoldsNoSupervisor) {
  const JobId id = start("echo up; sleep 1000");
  until_out(id, "up");
  const int pid = status(id).pid.value();
  fs::remove_all(folder(id));
  ::kill(pid, SIGKILL);
  expect_nothing_left();
}

// Their supervisors died after creating their file and before writing it, as on a full disk.
TEST_P(JobStatus, TheAbandonedAreLookedAtTogether) {
  std::vector<JobId> ids;
  for (int i = 0; i < 150; ++i) {
    ids.push_back(JobId::random());
    make_folders(folder(ids.back()));
    std::ofstream(folder(ids.back()) / "supervisor") << "";
  }
  status(JobId::random());  // the agent is installed now
  const auto begin = std::chrono::steady_clock::now();
  const auto replies = ask_state(agent(), {.folder = jobs_folder, .ids = ids, .claim = ids}).jobs;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, test::patience) << "one after the other take 150 s";
  ASSERT_EQ(replies.size(), ids.size());
  for (const auto& [id, reply] : replies) {
    EXPECT_EQ(reply.phase, Phase::none);
    EXPECT_THAT(test::read_journal(folder(id)), ::testing::HasSubstr("never_starts"));
  }
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
  const auto reports = status_of(ids);
  ASSERT_EQ(reports.size(), 200U);
  for (const auto& [id, report] : reports) {
    EXPECT_EQ(report.phase, Phase::gone);
    EXPECT_EQ(report.out_size, 5U);
  }
}

INSTANTIATE_TEST_SUITE_P(Shells, JobStatus, test::every_shell, test::shell_name);

}  // namespace
}  // namespace remote::jobs
