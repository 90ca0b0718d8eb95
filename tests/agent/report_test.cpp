#include <sys/stat.h>
#include <unistd.h>

#include "agent/facts/machine_digest.hpp"
#include "agent/job_reports.hpp"
#include "agent/waiting.hpp"

namespace remote::agent {
namespace {

using std::chrono::milliseconds;
using ::testing::IsEmpty;
using wire::JobPhase;
using wire::ProcessEnd;

constexpr const char* anew =
    "remote: the ranks begin anew (restart 1) at 2026-11-24T11:58:19Z after rank 1\n";

using Reports = test::Reports;

TEST_F(Reports, OfAnEndedJob) {
  const std::string id = jobs.make_ended("signal 9", {{"job.out", "12345"}});
  jobs.put(id, "journal.jsonl",
           test::format_entry(wire::JobStarted{milliseconds(1763712000999)}) +
               test::format_entry(wire::OutOfMemory{}) +
               test::format_entry(wire::DiskRefused{.flaw = FolderFlaw::quota}) +
               test::format_stop("15 user:a%20b%25 1763712001999\n") + jobs.read(id, "journal.jsonl"));
  const wire::JobReport job = report(id);
  EXPECT_EQ(job.id, id);
  EXPECT_EQ(job.phase, JobPhase::ended);
  EXPECT_EQ(job.backend, "local");
  EXPECT_EQ(job.pid, 999999999);
  EXPECT_EQ(job.reason, "");
  EXPECT_TRUE(job.supervised);
  ASSERT_TRUE(job.end && job.end->at);
  EXPECT_EQ(job.end->how, ProcessEnd::signalled(9));
  EXPECT_EQ(job.end->by, "supervisor");
  EXPECT_EQ(job.started_at, milliseconds(1763712000000));
  ASSERT_TRUE(job.stop);
  EXPECT_EQ(job.stop->signal, 15);
  EXPECT_EQ(job.stop->by, (wire::StoppedBy{.cause = wire::StopCause::user, .text = "a b%"}));
  EXPECT_EQ(job.stop->at, milliseconds(1763712001999));
  EXPECT_TRUE(job.oom);
  EXPECT_EQ(job.disk, FolderFlaw::quota);
  EXPECT_EQ(job.out_size, 5U);
  EXPECT_EQ(job.err_size, 0U);
  EXPECT_FALSE(job.last_line);
  EXPECT_FALSE(job.usage_asked);
}

TEST_F(Reports, OfARunningJob) {
  const std::string id = jobs.make_running({{"job.out", "x"}, {"job.err", "yy\n"}});
  age(id, {"job.out"}, std::chrono::hours(1));
  wire::JobReport job = report(id, {.last_line = true});
  EXPECT_EQ(job.phase, JobPhase::running);
  EXPECT_EQ(job.pid, ::getpid());
  EXPECT_EQ(job.last_line, "yy");
  ASSERT_TRUE(job.wrote_at);
  EXPECT_LT(std::chrono::abs(*job.wrote_at - read_wall_clock()), test::patience);
  EXPECT_FALSE(job.after_peer);
  fs::remove(jobs.folder(id) / "job.err");
  fs::remove(jobs.folder(id) / "job.out");
  job = report(id);
  EXPECT_FALSE(job.wrote_at);
  EXPECT_EQ(job.out_size, 0U);
}

TEST_F(Reports, OfAJobWithoutAFolderNameTheMachine) {
  test::HostFolder::put(jobs.host().root / "etc/machine-id", "5\n");
  EXPECT_EQ(report(test::JobFolders::new_id()).machine, read_machine_digest(jobs.host()));
  EXPECT_EQ(report(jobs.make_ended("exit 0")).machine, "");
}

TEST_F(Reports, OneWhosePidCouldNotBeWrittenDidNotStart) {
  const std::string id = jobs.make_ended("exit 127");
  EXPECT_EQ(report(id).reason, "") << "the command's own exit code";
  jobs.put(id, "pid", "");
  const wire::JobReport job = report(id);
  EXPECT_EQ(job.phase, JobPhase::ended);
  EXPECT_EQ(job.reason, "it did not start, because its folder cannot be written: is the disk full?");
}

TEST_F(Reports, HaveTheTimeOfAFailuresLastWords) {
  const std::string id = jobs.make_ended("exit 3", {{"job.err", "why\n"}});
  age(id, {"job.err"}, milliseconds(100));
  const wire::JobReport job = report(id);
  ASSERT_TRUE(job.wrote_at && job.end && job.end->at);
  EXPECT_GE((*job.end->at - *job.wrote_at).count(), 90);
  EXPECT_LE((*job.end->at - *job.wrote_at).count(), 5000);
  EXPECT_FALSE(report(jobs.make_ended("exit 0", {{"job.err", "why\n"}})).wrote_at);
  const std::string stopped = jobs.make_ended("exit 0", {{"job.err", "why\n"}});
  test::append(jobs.folder(stopped), test::format_stop("15 - 1763712001999"));
  EXPECT_TRUE(report(stopped).wrote_at);
}

// The record is written after the process ends, and other processes end in between. A network file system may
// have a different clock.
TEST_F(Reports, DoNotTrustTheClockOfAnotherMachine) {
  const std::string id = jobs.make_ended("exit 3", {{"job.err", "why\n"}});
  EXPECT_TRUE(report(id).wrote_at);
  age(id, {"journal.jsonl", "job.err"}, milliseconds(-5000));
  EXPECT_FALSE(report(id).wrote_at);
  EXPECT_TRUE(report(id).end->at);
  // A result without its time proves nothing.
  const std::string timeless =
      jobs.make_ended("exit 3", {{"job.err", "why\n"}, {"journal.jsonl", test::format_end("exit 3 \n")}});
  const wire::JobReport job = report(timeless);
  EXPECT_EQ(job.phase, JobPhase::ended);
  EXPECT_EQ(job.end->how, ProcessEnd::exited(3));
  EXPECT_FALSE(job.end->at);
  EXPECT_FALSE(job.wrote_at);
}

// If a rank printed nothing in its last attempt, its failure time is when it ended, not when the attempt
// started.
TEST_F(Reports, ADividerOfAttemptsIsNotALastWord) {
  const auto wrote = [&](const std::string& words) {
    return report(jobs.make_ended("exit 3", {{"job.err", words}, {"attempt", "number 2\n"}}))
        .wrote_at.has_value();
  };
  EXPECT_FALSE(wrote(std::string("why\n") + anew));
  EXPECT_TRUE(wrote(std::string(anew) + "why\n"));
  EXPECT_TRUE(report(jobs.make_ended("exit 3", {{"job.err", anew}})).wrote_at) << "there are no attempts";
}

TEST_F(Reports, HaveTheTimeOfAnErrorThatWaitedForADebugger) {
  const auto raised = [&](const std::string& text) {
    return report(jobs.make_ended("exit 3", {{"raised", text}})).raised_at;
  };
  EXPECT_EQ(raised("1764000000123\n"), milliseconds(1764000000123));
  for (const char* wrong : {"", "x\n", "-1\n", "1 2\n", "99999999999999999\n", "999999999999999\n", "12\n"}) {
    EXPECT_FALSE(raised(wrong)) << wrong;
  }
  EXPECT_FALSE(report(jobs.make_ended("exit 0", {{"raised", "1764000000123\n"}})).raised_at);
}

TEST_F(Reports, SayWhoseLastWordsBlameAPeer) {
  const auto blames = [&](const std::string& words, const std::string& end = "exit 1") {
    return report(jobs.make_ended(end, {{"job.err", words}})).after_peer;
  };
  EXPECT_TRUE(blames("RuntimeError: Read error: Connection reset by peer"));
  EXPECT_TRUE(blames("torch.distributed.DistNetworkError: failed to recv, got 0 bytes\n", "signal 6"));
  EXPECT_FALSE(blames(""));
  EXPECT_FALSE(blames("Connection reset by peer", "exit 0"));
  EXPECT_FALSE(blames(std::string("Connection reset by peer\n") + anew)) << "an earlier attempt";
}

TEST_F(Reports, SayWhenTheLaunchHung) {
  const auto hung = [&](const std::string& text) { return report(jobs.make_running({{"hung", text}})).hung; };
  auto record = hung("1763711000123 1800\n");
  ASSERT_TRUE(record);
  EXPECT_EQ(record->at, milliseconds(1763711000123));
  EXPECT_EQ(record->stood, std::chrono::minutes(30));
  EXPECT_FALSE(record->moved_at);
  record = hung("1763711000123 1800 1763711500000\n");
  ASSERT_TRUE(record);
  EXPECT_EQ(record->moved_at, milliseconds(1763711500000));
  for (const char* wrong :
       {"", "1763711000123\n", "x 2\n", "1763711000123 -2\n", "1763711000123 2 x\n", "1763711000123 2 3 4\n",
        "9999999999999999 2\n", "1763711000123 1234567890\n", "12 2\n"}) {
    EXPECT_FALSE(hung(wrong)) << wrong;
  }
}

TEST_F(Reports, DamagedEndsAreIgnored) {
  const std::string id = jobs.make_ended("exit 3");
  const auto read = [&](const std::string& journal) {
    jobs.put(id, "journal.jsonl", journal);
    return report(id);
  };
  EXPECT_EQ(read(test::format_end("never 0 1700000000123 claim")).phase, JobPhase::none);
  const std::string line = test::format_end("exit 3 1700000000123 supervisor");
  EXPECT_EQ(read(line).end->at, milliseconds(1700000000123));
  const wire::JobEnd impossible{.how = {.code = 3333}, .at = milliseconds(1), .by = "supervisor"};
  for (const std::string& journal : {std::string(), std::string("exit 3 1700000000123 supervisor\n"),
                                     line.substr(0, 20), test::format_entry(wire::JobEnded{impossible})}) {
    EXPECT_FALSE(read(journal).end) << journal;
  }
}

TEST_F(Reports, APidAloneProvesNothing) {
  const std::string pid = std::to_string(::getpid());
  const std::string id =
      jobs.make({{"pid", pid + " 1\n"}, {"supervisor", pid + " 1 " + boot + " " + pid + "\n"}});
  EXPECT_EQ(report(id).phase, JobPhase::gone);
  // After a reboot of the server not even both together prove that it is the same process.
  jobs.put(id, "supervisor", me + " another-boot -\n");
  EXPECT_EQ(report(id).phase, JobPhase::rebooted);
}

TEST_F(Reports, HaveWhatLastsOnlyWhileAJobRuns) {
  const std::string wait = me + " 3 88 - train.py\n";
  const std::string id = jobs.make_running({{"debug/1.7", wait}, {"lifeline", "waiting for b\n"}});
  const wire::JobReport job = report(id);
  ASSERT_EQ(job.waits.size(), 1U);
  ASSERT_TRUE(job.lifeline);
  EXPECT_EQ(job.lifeline->reason, "waiting for b");
  const wire::JobReport ended =
      report(jobs.make_ended("exit 1", {{"debug/1.7", wait}, {"lifeline", "waiting for b\n"}}));
  EXPECT_THAT(ended.waits, IsEmpty());
  EXPECT_FALSE(ended.lifeline);
}

TEST_F(Reports, HaveTheAttempts) {
  const std::string attempts = "1 1000 2500 3000 exit 7 3 0 my%20gpu\n";
  EXPECT_EQ(report(jobs.make_ended("exit 1", {{"attempts", attempts}})).attempts.size(), 1U);
  EXPECT_EQ(report(jobs.make_running({{"attempts", attempts}})).attempts.size(), 1U);
}

TEST_F(Reports, AnUnknownBackendIsNamed) {
  const wire::JobReport job = report(jobs.make_running({{"backend", "lsf\n"}}));
  EXPECT_EQ(job.phase, JobPhase::unknown);
  EXPECT_EQ(job.backend, "lsf");
  EXPECT_EQ(job.reason, "this version of remote does not know its backend lsf");
  EXPECT_EQ(report(jobs.make_running({{"backend", "$(id)\n"}})).phase, JobPhase::unknown);
}

TEST_F(Reports, ARecordInTheSecondPlaceComesHome) {
  const std::string id = jobs.make_running();
  jobs.put(id, "supervisor", "999999999 1 " + boot + " -\n");
  jobs.put(id, "pid", "999999999 1\n");
  const fs::path second = fs::path(jobs.host().root) / "var/tmp" / ("remote-" + std::to_string(::geteuid()));
  test::HostFolder::put(
      second / (id + ".journal.jsonl"),
      test::format_stop("15 user:ada 1700000000000") + test::format_end("exit 5 1700000000123 supervisor\n"));
  fs::permissions(second, fs::perms::owner_all);
  const wire::JobReport job = report(id);
  EXPECT_EQ(job.phase, JobPhase::ended);
  ASSERT_TRUE(job.end && job.stop);
  EXPECT_EQ(job.end->how, ProcessEnd::exited(5));
  EXPECT_EQ(job.stop->by.text, "ada");
  EXPECT_EQ(test::read_end(jobs.folder(id)), "exit 5 1700000000123 supervisor\n");
  EXPECT_EQ(test::read_stop(jobs.folder(id)), "15 user:ada 1700000000000");
  EXPECT_FALSE(fs::exists(second));
  EXPECT_EQ(report(id).end->how, ProcessEnd::exited(5));
}

TEST_F(Reports, AnAbandonedSharedFileIsRemoved) {
  const fs::path shared = jobs.path() / ".remote-init-0123456789abcdef0123456789abcdef";
  test::HostFolder::put(shared / "launch", "0123456789abcdef0123456789abcdef\n");
  test::HostFolder::put(shared / "store", "x");
  const std::string id = jobs.make({{"pid", "999999999 1\n"},
                                    {"supervisor", "999999999 1 " + boot + " -\n"},
                                    {"init_file", "1\n" + shared.string() + "\n"}});
  EXPECT_EQ(report(id).phase, JobPhase::gone);
  EXPECT_FALSE(fs::exists(shared));
}

TEST_F(Reports, OddFilesDoNotBlock) {
  const std::string id = jobs.make_running();
  for (const char* name : {"job.out", "job.err"}) {
    fs::remove(jobs.folder(id) / name);
  }
  for (const char* name : {"job.out", "hung", "attempts", "lifeline", "lifeline.pid", "lifeline.json",
                           "journal.jsonl", "attempt"}) {
    ASSERT_EQ(::mkfifo((jobs.folder(id) / name).c_str(), 0600), 0) << name;
  }
  fs::create_directory(jobs.folder(id) / "job.err");
  const wire::JobReport job = report(id, {.last_line = true});
  EXPECT_EQ(job.phase, JobPhase::running);
  EXPECT_EQ(job.err_size, 0U);
  EXPECT_FALSE(job.started_at || job.stop || job.hung || job.lifeline || job.last_line);
}

TEST_F(Reports, OfManyJobsTakeLittleTime) {
  std::vector<std::string> ids;
  for (int i = 0; i < 1500; ++i) {
    ids.push_back(i % 3 == 0 ? jobs.make_running({{"job.out", "12345"}})
                  : i % 3 == 1
                      ? jobs.make_ended("exit 1", {{"job.out", "12345"}, {"job.err", "why\n"}})
                      : jobs.make({{"supervisor", std::to_string(::getpid()) + " 1 " + boot + " -\n"},
                                   {"pid", std::to_string(::getpid()) + " 1\n"},
                                   {"job.out", "12345"}}));
  }
  const auto begin = read_boot_clock();
  const auto reports = report_all(ids);
  const auto took = read_boot_clock() - begin;
  EXPECT_LT(took, test::patience);  // 0.1 s on an idle machine
  RecordProperty("milliseconds", static_cast<int>(took.count()));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(reports[i].id, ids[i]);
    EXPECT_EQ(reports[i].out_size, 5U);
    EXPECT_EQ(reports[i].phase, i % 3 == 0   ? JobPhase::running
                                : i % 3 == 1 ? JobPhase::ended
                                             : JobPhase::gone);
  }
}

}  // namespace
}  // namespace remote::agent
