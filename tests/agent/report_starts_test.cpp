#include "agent/job_reports.hpp"
#include "agent/started.hpp"

namespace remote::agent {
namespace {

using std::chrono::milliseconds;
using ::testing::StartsWith;
using wire::JobPhase;
using ReportsOfStarts = test::Reports;

TEST_F(ReportsOfStarts, OfAJobThatIsNotThere) {
  const std::string id = test::JobFolders::new_id();
  wire::JobReport job = report(id, {.last_line = true});
  EXPECT_EQ(job.phase, JobPhase::none);
  EXPECT_FALSE(job.last_line);
  EXPECT_FALSE(fs::exists(jobs.folder(id)));
  fs::remove_all(fs::path(jobs.jobs().project));
  job = report(id);
  EXPECT_EQ(job.phase, JobPhase::unknown);
  EXPECT_THAT(job.reason, StartsWith("cannot see the folder of the project, /"));
}

TEST_F(ReportsOfStarts, AFolderThatIsGoneHidesNoProcess) {
  const std::string id = test::JobFolders::new_id();
  const test::Started process = test::run_sleep({"REMOTE_JOB_ID=" + id});
  for (const wire::JobReport& job : {report(id), claim(id)}) {
    EXPECT_EQ(job.phase, JobPhase::running);
    EXPECT_EQ(job.pid, process.pid());
    EXPECT_EQ(job.reason, "its folder is not there or cannot be seen");
  }
  EXPECT_FALSE(fs::exists(jobs.folder(id)));
}

TEST_F(ReportsOfStarts, AClaimedJobNeverStarts) {
  const std::string id = test::JobFolders::new_id();
  EXPECT_EQ(claim(id).phase, JobPhase::none);
  EXPECT_EQ(jobs.read(id, "supervisor"), "claimed\n");
  EXPECT_THAT(test::read_end(jobs.folder(id)), StartsWith("never 0 "));
  EXPECT_EQ(report(id).phase, JobPhase::none);
  EXPECT_EQ(claim(id).phase, JobPhase::none);
  fs::remove(jobs.folder(id) / "journal.jsonl");
  EXPECT_EQ(report(id).phase, JobPhase::none);
  // Its folder exists, but not its supervisor.
  const std::string empty = jobs.make({{"spec.json", ""}});
  EXPECT_EQ(report(empty).phase, JobPhase::starting);
  EXPECT_EQ(claim(empty).phase, JobPhase::none);
  EXPECT_EQ(report(empty).phase, JobPhase::none);
}

TEST_F(ReportsOfStarts, AClaimIsTooLateForAJobThatHasBegun) {
  const std::string running = jobs.make_running();
  EXPECT_EQ(claim(running).phase, JobPhase::running);
  const std::string ended = jobs.make_ended("exit 3");
  EXPECT_EQ(claim(ended).phase, JobPhase::ended);
  // Its supervisor is about to write the file.
  const std::string starting = jobs.make({{"supervisor", ""}, {"spec.json", ""}});
  const test::Started process = test::run_sleep({"REMOTE_JOB_ID=" + starting});
  const wire::JobReport job = claim(starting);
  EXPECT_EQ(job.phase, JobPhase::starting);
  EXPECT_FALSE(job.pid);
  EXPECT_EQ(test::read_end(jobs.folder(starting)), "");
}

TEST_F(ReportsOfStarts, AClaimThatCannotBeWrittenIsUnknown) {
  const std::string id = test::JobFolders::new_id();
  const fs::path folder = jobs.folder(id).parent_path();
  fs::remove_all(folder);
  test::HostFolder::put(folder, "a file");
  const wire::JobReport job = claim(id);
  EXPECT_EQ(job.phase, JobPhase::unknown);
  EXPECT_EQ(job.reason, "cannot write in " + folder.string());
}

// Their supervisors died after creating their file and before writing it, as on a full disk.
TEST_F(ReportsOfStarts, AbandonedStartsAreAwaitedTogether) {
  std::vector<std::string> ids;
  for (int i = 0; i < 150; ++i) {
    ids.push_back(jobs.make({{"supervisor", ""}}));
  }
  const auto begin = read_boot_clock();
  for (const wire::JobReport& job : report_all(ids, {.claim = true})) {
    EXPECT_EQ(job.phase, JobPhase::none);
    EXPECT_THAT(test::read_end(jobs.folder(job.id)), StartsWith("never 0 "));
  }
  const auto took = read_boot_clock() - begin;
  EXPECT_GE(took, milliseconds(1000));
  EXPECT_LT(took, test::patience) << "one after the other take 150 s";
}

TEST_F(ReportsOfStarts, AStartThatWasOnlySlowIsNotAbandoned) {
  const std::string id = jobs.make({{"supervisor", ""}});
  const std::string other = jobs.make({{"supervisor", ""}});
  Backends backends(jobs.host(), jobs.jobs());
  Reporter reporter(backends);
  std::vector<wire::JobReport> reports{reporter.report(id, {.claim = true}),
                                       reporter.report(other, {.claim = true})};
  EXPECT_TRUE(reporter.is_open(id));
  jobs.put(id, "supervisor", me + " " + boot + " -\n");
  jobs.put(id, "pid", me + "\n");
  reporter.finish(reports);
  EXPECT_FALSE(reporter.is_open(id));
  EXPECT_EQ(reports.at(0).phase, JobPhase::running);
  EXPECT_EQ(reports.at(1).phase, JobPhase::none);
  EXPECT_EQ(test::read_end(jobs.folder(id)), "");
}

}  // namespace
}  // namespace remote::agent
