#include "agent/slurm/ends.hpp"
#include "agent/slurm_host.hpp"
#include "agent/waiting.hpp"

namespace remote::agent {
namespace {

using wire::JobPhase;
using wire::ProcessEnd;

class SlurmStateTest : public test::SlurmHost {
 protected:
  void expect_end(const std::string& id, ProcessEnd how) {
    JobRecord job = record(id);
    const JobState state = find_state(job);
    EXPECT_EQ(state.phase, JobPhase::ended) << state.reason;
    ASSERT_TRUE(job.end);
    EXPECT_EQ(job.end->how, how) << job.end->how.code << " " << job.end->how.signal;
  }
  std::string reason(const std::string& id) { return find_state(id).reason; }
};

TEST_F(SlurmStateTest, QueuedJobsSayWhy) {
  const std::string id = add_job();
  const auto check = [&](const std::string& row, const std::string& text) {
    set_rows(row);
    const JobState state = find_state(id);
    EXPECT_EQ(state.phase, JobPhase::queued);
    EXPECT_EQ(state.reason, text);
    EXPECT_TRUE(state.supervised);
    EXPECT_FALSE(state.pid);
  };
  check(row("7", "PENDING"), "Slurm job 7");
  check(row("7", "PENDING", "PartitionDown"), "Slurm job 7, PartitionDown");
  check(row("7", "CONFIGURING"), "Slurm job 7, CONFIGURING");
  check(row("7", "REQUEUE_HOLD", "launch failed requeued held"),
        "Slurm job 7, REQUEUE_HOLD (launch failed requeued held)");
  check("7|N/A|PENDING||N/A|2026-11-23T14:05:09|Resources|job\n",
        "Slurm job 7, Resources, expected to start 2026-11-23T14:05");
  check("7|N/A|PENDING||N/A|soon T:00|Resources|job\n", "Slurm job 7, Resources");
  check("7|N/A|PENDING||N/A|N/A|a\x1b[2Jb|job\n", "Slurm job 7, a\\x1b[2Jb");
}

TEST_F(SlurmStateTest, RunningJobsSayWhere) {
  const std::string id = add_job();
  const auto check = [&](const std::string& row, const std::string& text) {
    set_rows(row);
    const JobState state = find_state(id);
    EXPECT_EQ(state.phase, JobPhase::running);
    EXPECT_EQ(state.reason, text);
  };
  check(row("7", "RUNNING", "None", "job", "n[1-2]"), "Slurm job 7 on n[1-2]");
  check(row("7", "COMPLETING", "None", "job", "n1"), "Slurm job 7 on n1, COMPLETING");
  check(row("7", "SUSPENDED"), "Slurm job 7, SUSPENDED");
}

TEST_F(SlurmStateTest, AJobWhoseNumberWasLostIsFoundByItsName) {
  const std::string id = add_job("");
  set_rows(row("8", "PENDING", "None", "remote-" + id));
  EXPECT_EQ(reason(id), "Slurm job 8");
  // A job without a supervisor is not submitted yet.
  set_rows("");
  EXPECT_EQ(find_state(id).phase, JobPhase::starting);
  put_job(id, "supervisor", "slurm 8 - -\n");
  EXPECT_EQ(find_state(id).phase, JobPhase::gone);
}

TEST_F(SlurmStateTest, TasksOfAnArrayHaveStatesOfTheirOwn) {
  const std::string one = add_job("9_0");
  const std::string two = add_job("9_2");
  set_rows("9|0|RUNNING|n1|N/A|N/A|None|remote-a\n9|2|PENDING||N/A|N/A|JobArrayTaskLimit|remote-a\n");
  EXPECT_EQ(reason(one), "Slurm job 9_0 on n1");
  EXPECT_EQ(reason(two), "Slurm job 9_2, JobArrayTaskLimit");
}

TEST_F(SlurmStateTest, ANewJobMayBeMissingInTheLastAnswer) {
  const auto backend = make_slurm_backend(fake.host, folder);
  JobRecord old = record(add_job("7"));
  backend->find_state(old, Look::usual);
  set_rows(row("8", "PENDING"));
  const std::string id = add_job("");
  put_job(id, "slurm", "8\n");
  JobRecord job = record(id);
  EXPECT_EQ(backend->find_state(job, Look::usual).phase, JobPhase::queued);
  EXPECT_EQ(count_calls("squeue"), 2U);
}

// If Slurm is down, jobs are not considered dead.
TEST_F(SlurmStateTest, IsUnknownWithoutAnAnswer) {
  const std::string id = add_job();
  set_rows("squeue: down\n", 1);
  JobState state = find_state(id);
  EXPECT_EQ(state.phase, JobPhase::unknown);
  EXPECT_EQ(state.reason, "Slurm does not answer: squeue: down");
  EXPECT_EQ(test::read_end(job_file(id, "")), "");
  // A result counts, unless Slurm may run the job again.
  put_job(id, "journal.jsonl", test::format_end("exit 5 1700000000000 slurm\n"));
  state = find_state(id);
  EXPECT_EQ(state.phase, JobPhase::ended);
  EXPECT_EQ(state.reason, "");
  put_job(id, "requeue", "");
  EXPECT_EQ(find_state(id).phase, JobPhase::unknown);
}

TEST_F(SlurmStateTest, IsUnknownAtTheProcessLimit) {
  put(fake.root() / "proc/self/cgroup", "0::/job\n");
  put(fake.root() / "sys/fs/cgroup/job/pids.max", "20\n");
  put(fake.root() / "sys/fs/cgroup/job/pids.current", "19\n");
  const std::string id = add_job();
  const JobState state = find_state(id);
  EXPECT_EQ(state.phase, JobPhase::unknown);
  EXPECT_EQ(state.reason, "the limit of 20 processes of its control group is reached");
  put_job(id, "journal.jsonl", test::format_end("exit 0 1700000000000 slurm\n"));
  EXPECT_EQ(find_state(id).phase, JobPhase::ended);
  EXPECT_TRUE(calls().empty());
}

TEST_F(SlurmStateTest, AJobThatSlurmRunsAgainIsQueued) {
  const std::string id = add_job();
  put_job(id, "journal.jsonl", test::format_end("signal 15 1700000000000 slurm\n"));
  put_job(id, "requeue", "");
  set_rows(row("7", "PENDING", "BeginTime"));
  EXPECT_EQ(find_state(id).phase, JobPhase::queued);
  EXPECT_EQ(reason(id), "Slurm job 7, BeginTime");
  set_rows(row("7", "COMPLETED"));
  EXPECT_EQ(find_state(id).phase, JobPhase::ended);
  EXPECT_EQ(read_job(id, "slurm.end"), "COMPLETED \n");
}

// ---- Ends

TEST_F(SlurmStateTest, SlurmTellsTheEndOfAJobWithoutAResult) {
  fake.host.environment["TZ"] = "UTC-2";
  const auto check = [&](const std::string& state, ProcessEnd how, const std::string& text) {
    const std::string id = add_job();
    set_rows(row("7", state));
    JobRecord job = record(id);
    const JobState found = find_state(job);
    EXPECT_EQ(found.phase, JobPhase::ended) << state;
    EXPECT_EQ(found.reason, text) << state;
    ASSERT_TRUE(job.end) << state;
    EXPECT_EQ(job.end->how, how) << state;
    EXPECT_EQ(job.end->at, wire::Moment(1714557600000)) << state;
    EXPECT_EQ(job.end->by, "slurm");
    EXPECT_EQ(read_job(id, "slurm.end"), state + " \n");
    EXPECT_EQ(record(id).end.value().how, how) << "it is on record";
    EXPECT_EQ(test::read_stop(job_file(id, "")), "");
  };
  check("COMPLETED", ProcessEnd::exited(0), "");
  check("TIMEOUT", ProcessEnd::signalled(15), "TIMEOUT");
  check("PREEMPTED", ProcessEnd::signalled(15), "PREEMPTED");
  check("DEADLINE", ProcessEnd::signalled(15), "DEADLINE");
}

TEST_F(SlurmStateTest, TimesAreInTheZoneOfTheServer) {
  fake.host.environment["TZ"] = "UTC+1";
  const SlurmTools tools(fake.host);
  EXPECT_EQ(read_slurm_time(tools, "1970-01-02T00:00:01"), wire::Moment(90'001'000));
  fake.host.environment["TZ"] = "EST5EDT,M3.2.0,M11.1.0";
  EXPECT_EQ(read_slurm_time(SlurmTools(fake.host), "2024-07-01T00:00:00"), wire::Moment(1'719'806'400'000));
  for (const char* wrong : {"", "N/A", "NONE", "Unknown", "2024-05-01", "2024-02-31T00:00:00",
                            "2024-05-01 12:00:00", "2024-13-01T00:00:00", "2024-05-01T24:00:00",
                            "2024-05-01T12:60:00", "2024-05-01T12:00:0x", "0000-00-00T00:00:00"}) {
    EXPECT_FALSE(is_slurm_time(wrong)) << wrong;
    EXPECT_FALSE(read_slurm_time(tools, wrong)) << wrong;
  }
}

TEST_F(SlurmStateTest, TheEndOfAFailedJobIsAWaitStatus) {
  const auto check = [&](const std::string& status, ProcessEnd how,
                         const std::string& why = "NonZeroExitCode") {
    const std::string id = add_job();
    set_rows(row("7", "FAILED", why));
    add_program("squeue", "case $* in *exit_code*) printf '%20s\\n' '" + status + "';; *) cat ~/rows;; esac");
    expect_end(id, how);
    EXPECT_EQ(read_job(id, "slurm.end"), "FAILED " + why + "\n");
  };
  check("768", ProcessEnd::exited(3));
  check("11", ProcessEnd::signalled(11));
  check("139", ProcessEnd::signalled(11));
  // These are not wait statuses of a failure.
  for (const char* odd : {"", "x", "0", "-1", "1234567", "127", "a 5x"}) {
    check(odd, ProcessEnd::exited(1));
  }
  // It never ran: its status is 1, which would mean SIGHUP.
  forget_calls();
  check("1", ProcessEnd::exited(1), "BadConstraints");
  EXPECT_EQ(calls(), std::vector<std::string>{"squeue"});
}

TEST_F(SlurmStateTest, AJobWhoseNodeFailedIsGone) {
  const std::string id = add_job();
  put_job(id, "supervisor", "slurm 7 - -\n");
  for (const char* rows : {"7|N/A|NODE_FAIL|n1|N/A|N/A|NodeDown|job\n", ""}) {
    set_rows(rows);
    JobRecord job = record(id);
    const JobState state = find_state(job);
    EXPECT_EQ(state.phase, JobPhase::gone);
    EXPECT_EQ(state.reason, "NODE_FAIL") << "also if Slurm has forgotten it";
    EXPECT_FALSE(job.end);
  }
  EXPECT_EQ(test::read_end(job_file(id, "")), "");
  EXPECT_EQ(count_calls("sacct -n -X -P -j 7 -o State,ExitCode,End"), 0U);
  // It was still able to write its result.
  put_job(id, "journal.jsonl", test::format_end("exit 1 1700000000000 slurm\n"));
  EXPECT_EQ(find_state(id).phase, JobPhase::ended);
  EXPECT_EQ(reason(id), "NODE_FAIL");
}

TEST_F(SlurmStateTest, ScancelByAnotherUserIsAStop) {
  const std::string id = add_job();
  set_rows(row("7", "CANCELLED"));
  expect_end(id, ProcessEnd::signalled(15));
  const auto stop = record(id).recorded.stop;
  ASSERT_TRUE(stop) << read_job(id, "journal.jsonl");
  EXPECT_EQ(stop->signal, 15);
  EXPECT_EQ(stop->by, (wire::StoppedBy{wire::StopCause::user, 0, "scancel"}));
  EXPECT_GT(stop->at, wire::Moment(1'700'000'000'000));
}

TEST_F(SlurmStateTest, ScancelByThisProgramIsNot) {
  const std::string id = add_job();
  test::append(job_file(id, ""), test::format_stop("15 user:ada 1700000000000"));
  set_rows(row("7", "CANCELLED"));
  expect_end(id, ProcessEnd::signalled(15));
  EXPECT_EQ(test::read_stop(job_file(id, "")), "15 user:ada 1700000000000");
}

TEST_F(SlurmStateTest, AJobAfterOneThatFailedWasNotStopped) {
  const std::string id = add_job();
  set_rows(row("7", "CANCELLED", "DependencyNeverSatisfied"));
  EXPECT_EQ(reason(id), "the job that it depended on has failed");
  EXPECT_EQ(test::read_stop(job_file(id, "")), "");
}

TEST_F(SlurmStateTest, FailuresHaveReasons) {
  const auto check = [&](const std::string& note, const std::string& text) {
    const std::string id = add_job();
    put_job(id, "journal.jsonl", test::format_end("exit 1 1700000000000 slurm\n"));
    put_job(id, "slurm.end", note);
    EXPECT_EQ(reason(id), text) << note;
  };
  check("FAILED NonZeroExitCode\n", "");
  check("FAILED \n", "");
  check("FAILED JobLaunchFailure\n", "Slurm could not run its batch script to the end (JobLaunchFailure)");
  check("FAILED BadConstraints\n", "FAILED, BadConstraints");
  check("FAILED launch failed requeued held\n", "FAILED, launch failed requeued held");
  check("CANCELLED None\n", "");
  check("COMPLETED\n", "");
  check("TIMEOUT TimeLimit\n", "TIMEOUT");
  check("TIMEOUT", "");
  check("a\x1b[2J b\n", "a\\x1b[2J");
}

TEST_F(SlurmStateTest, OutOfMemoryIsNoted) {
  const auto is_noted = [&](const std::string& result, const std::string& text,
                            const std::string& note = "") {
    const std::string id = add_job();
    put_job(id, "journal.jsonl", test::format_end(result + " 1700000000000 slurm\n"));
    put_job(id, "job.err", text);
    if (!note.empty()) {
      put_job(id, "slurm.end", note);
    }
    EXPECT_EQ(reason(id), "") << text;
    return read_own_history(job_file(id, "").string()).was_out_of_memory;
  };
  const std::string event = "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=8.batch\n";
  EXPECT_TRUE(is_noted("signal 9", "x\n" + event + "y\n"));
  EXPECT_TRUE(is_noted("signal 9", std::string(100'000, 'x') + "\n" + event));
  EXPECT_FALSE(is_noted("signal 9", event + std::string(20'000, 'x')));
  EXPECT_TRUE(
      is_noted("signal 9", "srun: slurmstepd: error: Job 7 exceeded job memory limit, being killed\n"));
  EXPECT_TRUE(is_noted("signal 9", "slurmstepd: error: Exceeded step memory limit at some point.\n"));
  EXPECT_TRUE(is_noted("signal 9", "", "OUT_OF_MEMORY \n"));
  EXPECT_FALSE(is_noted("exit 0", event));
  EXPECT_FALSE(is_noted("signal 9", "slurmstepd: error:\noom-kill\n"));
  EXPECT_FALSE(is_noted("signal 9", "oom-kill slurmstepd: error: oomkill zoom\n"));
}

TEST_F(SlurmStateTest, OutOfMemoryByItsStateIsASignal) {
  const std::string id = add_job();
  set_rows(row("7", "OUT_OF_MEMORY"));
  expect_end(id, ProcessEnd::signalled(9));
  EXPECT_TRUE(read_own_history(job_file(id, "").string()).was_out_of_memory);
  EXPECT_EQ(reason(id), "");
  // Older versions cancel a job that is out of memory: it was not stopped by a user.
  const std::string cancelled = add_job();
  put_job(cancelled, "job.err", "slurmstepd: error: Exceeded job memory limit\n");
  set_rows(row("7", "CANCELLED"));
  expect_end(cancelled, ProcessEnd::signalled(15));
  EXPECT_EQ(test::read_stop(job_file(cancelled, "")), "");
}

TEST_F(SlurmStateTest, AFifoInPlaceOfAFileDoesNotBlock) {
  const std::string id = add_job();
  put_job(id, "journal.jsonl", test::format_end("signal 9 1700000000000 slurm\n"));
  for (const char* name : {"job.err", "slurm.end", "slurm.used"}) {
    ::mkfifo(job_file(id, name).c_str(), 0600);
  }
  EXPECT_EQ(find_state(id).phase, JobPhase::ended);
}

// A shared file system may show the result late.
TEST_F(SlurmStateTest, AResultCountsMoreThanWhatSlurmSays) {
  const std::string id = add_job();
  JobRecord job = record(id);
  put_job(id, "journal.jsonl", test::format_end("exit 3 1700000000000 slurm\n"));
  set_rows(row("7", "FAILED", "NonZeroExitCode"));
  EXPECT_EQ(find_state(job).phase, JobPhase::ended);
  EXPECT_EQ(job.end.value().how, ProcessEnd::exited(3));
  EXPECT_EQ(read_job(id, "slurm.end"), "FAILED NonZeroExitCode\n");
  EXPECT_EQ(test::read_end(job_file(id, "")), "exit 3 1700000000000 slurm\n");
}

TEST_F(SlurmStateTest, AFolderThatIsRemovedMeanwhileIsUnknown) {
  const std::string id = add_job();
  JobRecord job = record(id);
  fs::remove_all(job_file(id, ""));
  EXPECT_EQ(find_state(job).phase, JobPhase::unknown);
}

// ---- Jobs that squeue has forgotten

TEST_F(SlurmStateTest, TheAccountingRemembers) {
  const auto check = [&](const std::string& rows, ProcessEnd how, const std::string& note) {
    const std::string id = add_job();
    set_accounts(rows);
    expect_end(id, how);
    EXPECT_EQ(read_job(id, "slurm.end"), note + " \n") << rows;
  };
  check("COMPLETED|0:0|2024-05-01T12:00:00\n", ProcessEnd::exited(0), "COMPLETED");
  check("a warning\nFAILED|3:0|2024-05-01T12:00:00\n", ProcessEnd::exited(3), "FAILED");
  check("FAILED|0:11|Unknown\n", ProcessEnd::signalled(11), "FAILED");
  check("FAILED|1:2:3|Unknown\n", ProcessEnd::exited(1), "FAILED");
  check("FAILED||Unknown\n", ProcessEnd::exited(1), "FAILED");
  check("FAILED|x:0|Unknown\n", ProcessEnd::exited(1), "FAILED");
  check("FAILED|0:0|Unknown\n", ProcessEnd::exited(1), "FAILED");
  check("FAILED|0:999|Unknown\n", ProcessEnd::exited(1), "FAILED");
  check("TIMEOUT|0:0|2024-05-01T12:00:00\n", ProcessEnd::signalled(15), "TIMEOUT");
  check("OUT_OF_MEMORY|0:125|2024-05-01T12:00:00\n", ProcessEnd::signalled(9), "OUT_OF_MEMORY");
  check("CANCELLED by 1000|0:0|2024-05-01T12:00:00\n", ProcessEnd::signalled(15), "CANCELLED");
  EXPECT_EQ(count_calls("sacct -n -X -P -j 7 -o State,ExitCode,End"), 11U);
}

TEST_F(SlurmStateTest, IsGoneIfNothingRemembers) {
  for (const char* rows :
       {"", "RUNNING|0:0|Unknown\n", "Slurm accounting storage is disabled\n", "NODE_FAIL|0:0|x\n"}) {
    const std::string id = add_job();
    set_accounts(rows, 1);
    JobRecord job = record(id);
    EXPECT_EQ(find_state(job).phase, JobPhase::gone) << rows;
    EXPECT_FALSE(job.end);
    EXPECT_EQ(test::read_end(job_file(id, "")), "");
  }
  // Without a job number, sacct is not called.
  forget_calls();
  const std::string id = add_job("");
  put_job(id, "supervisor", "slurm 7 - -\n");
  EXPECT_EQ(find_state(id).phase, JobPhase::gone);
  EXPECT_EQ(calls(), std::vector<std::string>{"squeue"});
}

TEST_F(SlurmStateTest, AnAccountingThatFailsIsAskedOnce) {
  set_accounts("Slurm accounting storage is disabled\n", 1);
  const auto backend = make_slurm_backend(fake.host, folder);
  for (const char* number : {"7", "8", "9"}) {
    JobRecord job = record(add_job(number));
    EXPECT_EQ(backend->find_state(job, Look::usual).phase, JobPhase::gone);
  }
  EXPECT_EQ(calls().size(), 2U);
}

TEST_F(SlurmStateTest, TheTimeOfAnEndIsNowIfItIsUnknown) {
  const std::string id = add_job();
  set_accounts("COMPLETED|0:0|Unknown\n");
  JobRecord job = record(id);
  find_state(job);
  EXPECT_LT(read_wall_clock() - job.end.value().at.value(), test::patience);
}

// ---- Jobs with a result

TEST_F(SlurmStateTest, ASuccessIsNotAskedAbout) {
  const std::string id = add_job();
  put_job(id, "journal.jsonl", test::format_end("exit 0 1700000000000 slurm\n"));
  EXPECT_EQ(find_state(id).phase, JobPhase::ended);
  put_job(id, "journal.jsonl", test::format_end("exit 3 1700000000000 slurm\n"));
  EXPECT_EQ(find_state(id, Look::brief).phase, JobPhase::ended);
  EXPECT_TRUE(calls().empty());
}

TEST_F(SlurmStateTest, AFailureIsAskedAboutOnce) {
  const std::string id = add_job();
  put_job(id, "journal.jsonl", test::format_end("signal 15 1700000000000 slurm\n"));
  set_rows(row("7", "TIMEOUT", "TimeLimit"));
  EXPECT_EQ(reason(id), "TIMEOUT");
  EXPECT_EQ(reason(id), "TIMEOUT");
  EXPECT_EQ(count_calls("squeue"), 1U);
  // A job whose batch script is about to end.
  forget_calls();
  const std::string ending = add_job("8");
  put_job(ending, "journal.jsonl", test::format_end("signal 15 1700000000000 slurm\n"));
  add_program(
      "squeue",
      "[ $(wc -l <~/calls) -gt 2 ] && s=CANCELLED || s=COMPLETING\necho \"8|N/A|$s|n1|N/A|N/A|None|job\"");
  EXPECT_EQ(find_state(ending).phase, JobPhase::ended);
  EXPECT_EQ(count_calls("squeue"), 3U);
  EXPECT_EQ(record(ending).recorded.stop.value().by.text, "scancel");
}

TEST_F(SlurmStateTest, JobsThatDoNotEndAreNotAwaitedForLong) {
  std::vector<JobRecord> jobs;
  std::string rows;
  for (int i = 0; i < 20; ++i) {
    const std::string number = std::to_string(100 + i);
    const std::string id = add_job(number);
    put_job(id, "journal.jsonl", test::format_end("exit 1 1700000000000 slurm\n"));
    jobs.push_back(record(id));
    rows += row(number, "COMPLETING");
  }
  set_rows(rows);
  const auto backend = make_slurm_backend(fake.host, folder);
  for (JobRecord& job : jobs) {
    EXPECT_EQ(backend->find_state(job, Look::usual).phase, JobPhase::ended);
  }
  EXPECT_LT(count_calls("squeue"), 60U) << "all wait together";
}

// After a stop, and before the folder is removed, all processes must be gone.
TEST_F(SlurmStateTest, AnEndedJobMayStillHaveProcesses) {
  const std::string id = add_job();
  put_job(id, "journal.jsonl", test::format_end("exit 0 1700000000000 slurm\n"));
  set_rows(row("7", "COMPLETING"));
  EXPECT_EQ(find_state(id).phase, JobPhase::ended);
  const JobState state = find_state(id, Look::all);
  EXPECT_EQ(state.phase, JobPhase::running);
  EXPECT_EQ(state.reason, "Slurm still has its job 7: COMPLETING");
  test::append(job_file(id, ""), test::format_stop("15 user:ada 1700000000000"));
  EXPECT_EQ(find_state(id).phase, JobPhase::running);
  set_rows(row("7", "CANCELLED"));
  EXPECT_EQ(find_state(id, Look::all).phase, JobPhase::ended);
  set_rows("");
  EXPECT_EQ(find_state(id).phase, JobPhase::ended);
}

TEST_F(SlurmStateTest, ManyJobsNeedOneAnswer) {
  std::vector<JobRecord> jobs;
  std::string rows;
  for (int i = 0; i < 300; ++i) {
    const std::string number = "5_" + std::to_string(i);
    jobs.push_back(record(add_job(number)));
    rows += "5|" + std::to_string(i) + "|RUNNING|n1|N/A|N/A|None|remote-x\n";
  }
  set_rows(rows);
  const auto backend = make_slurm_backend(fake.host, folder);
  for (JobRecord& job : jobs) {
    EXPECT_EQ(backend->find_state(job, Look::brief).phase, JobPhase::running);
  }
  EXPECT_EQ(count_calls("squeue"), 1U);
}

}  // namespace
}  // namespace remote::agent
