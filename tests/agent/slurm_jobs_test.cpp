#include "agent/job/answers.hpp"
#include "agent/job/report.hpp"
#include "agent/job/stop_jobs.hpp"
#include "agent/job_journal.hpp"
#include "agent/slurm_host.hpp"

namespace remote::agent {
namespace {

using wire::JobPhase;
using Outcome = KillResult::Entry::Outcome;

// Requests about jobs of Slurm and of an unknown backend. scancel runs the file ~/cancel if it exists.
class SlurmJobsTest : public test::SlurmHost {
 protected:
  SlurmJobsTest() { add_program("scancel", "[ ! -e ~/cancel ] || . ~/cancel"); }

  wire::JobReport report(const std::string& id, bool claim = false) {
    Backends backends(fake.host, folder);
    Reporter reporter(backends);
    std::vector<wire::JobReport> reports{reporter.report(id, {.claim = claim})};
    reporter.finish(reports);
    return reports.at(0);
  }
  std::vector<wire::StopResult> stop(const std::vector<std::string>& ids, int grace_s = 0) {
    Backends backends(fake.host, folder);
    std::vector<wire::StopResult> results;
    for (const StoppedJob& one : stop_jobs(
             backends, {.ids = ids, .grace = std::chrono::seconds(grace_s), .by = {.text = "ada@laptop"}})) {
      results.push_back(one.result);
    }
    return results;
  }
  wire::StopResult stop(const std::string& id) { return stop(std::vector{id}).at(0); }
  wire::CleanedJob clean(const std::string& id) {
    return agent::clean(fake.host, {.place = {folder.project.string(), ".jobs"}, .ids = {id}}).jobs.at(0);
  }
  // Sets the shell commands that scancel runs.
  void on_cancel(const std::string& text) const { put(fake.home() / "cancel", text); }
};

TEST_F(SlurmJobsTest, AJobIsQueuedRunsAndEnds) {
  const std::string id = add_job();
  put_job(id, "job.out", "out\n");
  put_job(id, "job.err", "err\n");
  set_rows(row("7", "PENDING", "Priority"));
  // The process that started it may be dead: the job is still in the queue.
  wire::JobReport one = report(id, true);
  EXPECT_EQ(one.phase, JobPhase::queued);
  EXPECT_EQ(one.backend, "slurm");
  EXPECT_EQ(one.reason, "Slurm job 7, Priority");
  EXPECT_FALSE(one.pid);
  EXPECT_EQ(clean(id).outcome, wire::CleanOutcome::running);
  set_rows(row("7", "RUNNING"));
  put_job(id, "supervisor", "slurm 7 - -\n");
  put_job(id, "journal.jsonl", test::format_entry(wire::JobStarted{wire::Moment(1'700'000'000'123)}));
  one = report(id);
  EXPECT_EQ(one.phase, JobPhase::running);
  EXPECT_TRUE(one.supervised);
  EXPECT_EQ(one.started_at, wire::Moment(1'700'000'000'000));
  EXPECT_EQ(clean(id).outcome, wire::CleanOutcome::running);
  set_rows("");
  put_job(id, "journal.jsonl",
          read_job(id, "journal.jsonl") + test::format_end("exit 3 1700000001000 slurm\n"));
  set_accounts("7|FAILED|100|03:20.500|4|2|614400K||\n");
  one = report(id);
  EXPECT_EQ(one.phase, JobPhase::ended);
  EXPECT_EQ(one.end.value().how, wire::ProcessEnd::exited(3));
  EXPECT_EQ(one.end.value().by, "slurm");
  EXPECT_EQ(one.out_size, 4U);
  EXPECT_EQ(one.err_size, 4U);
  EXPECT_TRUE(one.usage_asked);
  EXPECT_EQ(one.usage, (JobUsage{4, 50, 0, 600}));
  EXPECT_EQ(clean(id).outcome, wire::CleanOutcome::removed);
  EXPECT_EQ(report(id).phase, JobPhase::none);
}

TEST_F(SlurmJobsTest, AQueuedJobIsStopped) {
  const std::string id = add_job();
  set_rows(row("7", "PENDING"));
  on_cancel("rm ~/rows; touch ~/rows");
  wire::StopResult result = stop(id);
  EXPECT_EQ(result.outcome, Outcome::killed);
  EXPECT_EQ(result.signalled, 1);
  EXPECT_EQ(count_calls("scancel 7"), 1U);
  const wire::JobReport one = report(id);
  EXPECT_EQ(one.phase, JobPhase::ended);
  EXPECT_EQ(one.end.value().how, wire::ProcessEnd::signalled(15));
  EXPECT_EQ(one.stop.value().by.text, "ada@laptop");
  EXPECT_EQ(stop(id).outcome, Outcome::ended);
  EXPECT_EQ(clean(id).outcome, wire::CleanOutcome::removed);
}

TEST_F(SlurmJobsTest, RunningJobsAreStoppedAndProvenGone) {
  const std::string obedient = add_job("7");
  const std::string stubborn = add_job("8");
  set_rows(row("7", "RUNNING") + row("8", "RUNNING"));
  put(fake.home() / "rows.15", row("8", "RUNNING"));
  on_cancel(
      "case $* in\n"
      "*=15*) cat ~/rows.15 >~/rows; printf '%s' '" +
      test::format_end("exit 7 1700000000000 slurm") + "' >>~/p/.jobs/" + obedient +
      "/journal.jsonl ;;\n"
      "*=9*) echo >~/rows ;;\n"
      "esac");
  const std::vector<wire::StopResult> results = stop({obedient, stubborn}, 1);
  for (const wire::StopResult& result : results) {
    EXPECT_EQ(result.outcome, Outcome::killed);
    EXPECT_EQ(result.signalled, 1);
  }
  EXPECT_EQ(count_calls("scancel --full --signal=15 7 8"), 1U);
  EXPECT_EQ(count_calls("scancel --full --signal=9 8"), 1U);
  EXPECT_EQ(report(obedient).end.value().how, wire::ProcessEnd::exited(7)) << "its own, though it came late";
  EXPECT_EQ(report(stubborn).end.value().by, "kill");
}

TEST_F(SlurmJobsTest, AJobThatCannotBeStoppedIsNamed) {
  const std::string id = add_job();
  set_rows(row("7", "COMPLETING"));
  Backends backends(fake.host, folder);
  StopTarget target{record(id)};
  const auto stopper = backends.find("slurm")->stop({&target});
  std::chrono::milliseconds clock{0};
  stop_all({stopper.get()}, 15, std::chrono::seconds(0), [] { return false; },
           {.now = [&] { return clock; },
            .wait = [&](Stopper&, std::chrono::milliseconds) { clock += std::chrono::seconds(5); }});
  ASSERT_EQ(stopper->survivors(id).size(), 1U);
  EXPECT_EQ(stopper->survivors(id)[0].name, "Slurm job 7");
}

TEST_F(SlurmJobsTest, NothingIsStoppedWithoutAnAnswer) {
  const std::string id = add_job();
  set_rows("squeue: down\n", 1);
  const wire::StopResult result = stop(id);
  EXPECT_EQ(result.outcome, Outcome::refused);
  EXPECT_EQ(result.reason, "Slurm does not answer: squeue: down");
  EXPECT_EQ(test::read_stop(job_file(id, "")), "");
  EXPECT_EQ(clean(id).outcome, wire::CleanOutcome::running);
}

TEST_F(SlurmJobsTest, AJobThatWasNotSubmittedNeverStarts) {
  const std::string id = add_job("");
  EXPECT_EQ(report(id).phase, JobPhase::starting);
  EXPECT_EQ(report(id, true).phase, JobPhase::none);
  EXPECT_EQ(read_job(id, "supervisor"), "claimed\n");
  const std::string another = add_job("");
  EXPECT_EQ(stop(another).outcome, Outcome::none);
  EXPECT_EQ(read_job(another, "supervisor"), "claimed\n");
}

// A newer version made the folder.
TEST_F(SlurmJobsTest, AnUnknownBackendIsReportedAndLeftAlone) {
  const std::string id = add_job();
  put_job(id, "backend", "queue\n");
  put_job(id, "job.out", "here\n");
  const std::string text = "this version of remote does not know its backend queue";
  const wire::JobReport one = report(id, true);
  EXPECT_EQ(one.phase, JobPhase::unknown);
  EXPECT_EQ(one.reason, text);
  EXPECT_EQ(one.out_size, 5U);
  EXPECT_EQ(stop(id).outcome, Outcome::refused);
  EXPECT_EQ(stop(id).reason, text);
  EXPECT_EQ(test::read_stop(job_file(id, "")), "");
  EXPECT_EQ(clean(id).outcome, wire::CleanOutcome::running);
  EXPECT_TRUE(calls().empty());
}

}  // namespace
}  // namespace remote::agent
