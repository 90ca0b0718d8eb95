#include "agent/launch/watched_job.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "agent/job_folders.hpp"

namespace remote::agent {
namespace {

using ::testing::ElementsAre;
using wire::Ending;
using wire::EndKind;

class WatchedJobTest : public ::testing::Test {
 protected:
  static constexpr int own_rank = 3;

  static wire::RankFailure make_failure(int rank, Ending ending, bool after_peer = false) {
    return {.rank = rank, .server = "", .ending = ending, .after_peer = after_peer, .mark = ""};
  }
  void put(const std::string& name, const std::string& text) { jobs.put(id, name, text); }
  WatchedJob watch(bool is_mpi = false, bool has_restarts = false) {
    return {jobs.host(), jobs.jobs(), id, is_mpi, has_restarts};
  }
  JobLook look(bool is_mpi = false) { return watch(is_mpi).look(own_rank); }
  // Expects a failure with this cause.
  void expect_failure(const wire::RankFailure& failure, bool is_mpi = false) {
    const JobLook found = look(is_mpi);
    EXPECT_TRUE(found.has_ended);
    ASSERT_TRUE(found.failure);
    EXPECT_EQ(*found.failure, failure);
  }

  const std::string victim =
      "1700000000000\nremote: exited with 14, as ranks of Open MPI 5 do when another one has failed\n";
  test::JobFolders jobs;
  std::string id = jobs.make({{"spec.json", ""}, {"job.out", ""}, {"job.err", ""}});
};

TEST_F(WatchedJobTest, AJobRunsUntilItHasAResult) {
  EXPECT_FALSE(look().has_ended) << "its guard has not started";
  put("supervisor", "claimed\n");
  EXPECT_FALSE(look().has_ended);
  id = jobs.make_running();
  EXPECT_FALSE(look().has_ended);
  const std::string whole = test::format_end("exit 0 1700000000000 supervisor");
  put("journal.jsonl", whole.substr(0, whole.size() - 1));
  EXPECT_FALSE(look().has_ended) << "an incomplete line";
  put("journal.jsonl", test::format_end("exit 0 1700000000000 supervisor\n"));
  JobLook found = look();
  EXPECT_TRUE(found.has_ended);
  EXPECT_FALSE(found.failure);
  EXPECT_FALSE(found.stopped_for);
  put("journal.jsonl", test::format_end("never 0 1700000000000 claim\n"));
  found = look();
  EXPECT_TRUE(found.has_ended);
  EXPECT_FALSE(found.failure);
  put("journal.jsonl", test::format_end("exit 7 1700000000000 supervisor\n"));
  expect_failure(make_failure(own_rank, {EndKind::exit, 7}));
  put("journal.jsonl", test::format_end("signal 11 1700000000000 supervisor\n"));
  expect_failure(make_failure(own_rank, {EndKind::signal, 11}));
}

TEST_F(WatchedJobTest, AFailedRankOfARunningMpirunIsNamed) {
  id = jobs.make_running();
  EXPECT_FALSE(look(true).failed_rank);
  put("failures/agent", "4 signal 11 1700000000000 mpirun\n");
  EXPECT_FALSE(look(true).has_ended);
  EXPECT_EQ(look(true).failed_rank, make_failure(4, {EndKind::signal, 11}));
  EXPECT_FALSE(look(false).failed_rank) << "torchrun may start its workers again";
}

TEST_F(WatchedJobTest, TheResultCanBeInTheFallbackFolder) {
  const fs::path place = fs::path(jobs.host().root) / "tmp" / ("remote-" + std::to_string(::geteuid()));
  test::JobFolders::put_file(place / (id + ".journal.jsonl"),
                             test::format_end("exit 5 1700000002000 supervisor\n"));
  fs::permissions(place, fs::perms::owner_all);
  expect_failure(make_failure(own_rank, {EndKind::exit, 5}));
  append_lines(Path(place.string()) / (id + ".journal.jsonl"),
               test::format_stop("15 user:ada 1700000001000"));
  EXPECT_FALSE(look().failure);
  EXPECT_EQ(look().stopped_for, rules::Seconds(1));
}

TEST_F(WatchedJobTest, AJobWithoutProcessesAndResultIsGone) {
  const std::string guard = "999999999 1 boot 999999999\n";
  put("supervisor", guard);
  expect_failure(make_failure(own_rank, {EndKind::gone, 0}));
  put("pid", jobs.this_process() + "\n");
  EXPECT_FALSE(look().has_ended) << "its main process lives";
  put("pid", "999999999 1\n");
  put("backend", "slurm\n");
  EXPECT_FALSE(look().has_ended) << "its processes can be elsewhere";
  fs::remove(jobs.folder(id) / "backend");
  put("job.err", "RuntimeError: Connection closed by peer\n");
  expect_failure(make_failure(own_rank, {EndKind::gone, 0}, true));
  put("supervisor", jobs.this_process() + " boot -\n");
  EXPECT_FALSE(look().has_ended);
  fs::remove_all(jobs.folder(id));
  const JobLook found = look();
  EXPECT_TRUE(found.has_ended) << "it was removed";
  EXPECT_FALSE(found.failure);
}

TEST_F(WatchedJobTest, ProcessesOnRecordCountIfTheFolderIsNotVisible) {
  id = jobs.make_running();
  WatchedJob job = watch();
  EXPECT_FALSE(job.look(own_rank).has_ended);
  const fs::path aside = jobs.path() / "aside";
  fs::rename(jobs.folder(id), aside);
  EXPECT_FALSE(job.look(own_rank).has_ended);
  EXPECT_TRUE(look().has_ended) << "nothing is known about its processes";
}

TEST_F(WatchedJobTest, ProcessesOnRecordCountIfTheirFilesAreMissing) {
  put("supervisor", "999999999 1 boot -\n");
  put("pid", jobs.this_process() + "\n");
  WatchedJob job = watch();
  EXPECT_FALSE(job.look(own_rank).has_ended);
  fs::remove(jobs.folder(id) / "supervisor");
  fs::remove(jobs.folder(id) / "pid");
  EXPECT_FALSE(job.look(own_rank).has_ended) << "its main process lives";
  put("pid", "999999999 1\n");
  EXPECT_TRUE(job.look(own_rank).has_ended);
}

TEST_F(WatchedJobTest, AnAgentNamesTheWorkerThatFailed) {
  put("journal.jsonl", test::format_end("exit 1 1700000000000 supervisor\n"));
  put("failures/agent", "5 signal 9 1700000000000 torchrun\n3 signal 15 1700000000001 torchrun\n");
  expect_failure(make_failure(5, {EndKind::signal, 9}));
  put("journal.jsonl",
      test::format_entry(wire::OutOfMemory{}) + test::format_end("exit 1 1700000000000 supervisor\n"));
  expect_failure(make_failure(5, {EndKind::out_of_memory, 9}));
  put("journal.jsonl", test::format_end("signal 9 1700000000000 supervisor\n"));
  expect_failure(make_failure(own_rank, {EndKind::signal, 9}));
  put("journal.jsonl", test::format_end("exit 1 1700000000000 supervisor\n"));
  put("failures/agent", "2000000 exit 1 1700000000000 torchrun\nx exit 1 1700000000000\n4 exit 2 17");
  expect_failure(make_failure(own_rank, {EndKind::exit, 1}));
}

TEST_F(WatchedJobTest, TheFirstWorkerThatFailedOnItsOwnIsNamed) {
  put("journal.jsonl", test::format_end("exit 137 1700000000009 supervisor\n"));
  put("failures/agent",
      "2 exit 14 1700000000000 mpirun\n3 signal 9 1700000000001 mpirun\n4 signal 15 1700000000002 mpirun\n");
  put("failures/rank.2", victim);
  expect_failure(make_failure(3, {EndKind::signal, 9}));
}

TEST_F(WatchedJobTest, WorkersThatFailedBecauseOfOthersAreMarked) {
  put("journal.jsonl", test::format_end("exit 14 1700000000009 supervisor\n"));
  put("failures/agent", "2 exit 14 1700000000000 mpirun\n");
  put("failures/rank.2", victim);
  expect_failure(make_failure(2, {EndKind::exit, 14}, true), true);
  fs::remove(jobs.folder(id) / "failures/agent");
  expect_failure(make_failure(own_rank, {EndKind::exit, 14}, true), true);  // mpirun's own exit status
  expect_failure(make_failure(own_rank, {EndKind::exit, 14}, false), false);
  put("journal.jsonl", test::format_end("signal 11 1700000000009 supervisor\n"));
  expect_failure(make_failure(own_rank, {EndKind::signal, 11}, false), true);
}

TEST_F(WatchedJobTest, AWorkerFollowsByItsSignalOrItsLastWords) {
  const auto failed = [&](const std::string& agent) {
    put("failures/agent", agent);
    return watch().find_failed_worker();
  };
  EXPECT_FALSE(watch().find_failed_worker());
  EXPECT_TRUE(failed("2 signal 6 1700000000000 torchrun\n")->after_peer);
  EXPECT_TRUE(failed("2 signal 15 1700000000000 torchrun\n")->after_peer);
  EXPECT_FALSE(failed("2 signal 11 1700000000000 torchrun\n")->after_peer);
  put("failures/rank.2", "1700000000000\nValueError: bad\n");
  EXPECT_FALSE(failed("2 signal 6 1700000000000 torchrun\n")->after_peer) << "it raised an error";
  put("ranks/7.err", "Connection reset by peer\n");
  EXPECT_TRUE(failed("7 exit 1 1700000000000 torchrun\n")->after_peer);
  EXPECT_EQ(failed("7 exit 1 1700000000000\n8 exit 4 1700000000000\n")->rank, 8);
  // mpirun stops ranks with a signal, which explains less than a rank's own follow-up failure.
  EXPECT_FALSE(failed("9 signal 15 1700000000000 mpirun\n"));
  EXPECT_EQ(failed("9 signal 15 1700000000000 mpirun\n7 exit 1 1700000000000 mpirun\n")->rank, 7);
  EXPECT_EQ(failed("9 signal 15 1700000000000 torchrun\n7 exit 1 1700000000000\n")->rank, 9);
}

// MPICH's mpirun kills the other ranks, and may record that before the end of the rank that failed.
TEST_F(WatchedJobTest, UnderMpiAKilledRankGivesWayToOneThatExited) {
  put("failures/agent", "0 signal 9 1700000000000 mpirun\n2 exit 3 1700000000090 mpirun\n");
  EXPECT_EQ(watch(true).find_failed_worker(), make_failure(2, {EndKind::exit, 3}));
  EXPECT_EQ(watch(false).find_failed_worker(), make_failure(0, {EndKind::signal, 9}));
  put("failures/agent", "0 signal 9 1700000000000 mpirun\n1 signal 15 1700000000090 mpirun\n");
  EXPECT_EQ(watch(true).find_failed_worker(), make_failure(0, {EndKind::signal, 9})) << "somebody killed it";
}

TEST_F(WatchedJobTest, LastWordsCanBlameAPeer) {
  const std::string lost =
      "Traceback (most recent call last):\nRuntimeError: Connection closed by peer [10.0.0.2]:1\n";
  const auto follows = [&](const std::string& result, const std::string& words) {
    put("journal.jsonl", test::format_end(result + " 1700000000000 supervisor\n"));
    put("job.err", words);
    return look().failure.value().after_peer;
  };
  EXPECT_TRUE(follows("exit 1", lost));
  EXPECT_FALSE(follows("exit 1", lost + "Traceback (most recent call last):\nValueError: other\n"));
  EXPECT_FALSE(follows(
      "exit 1", lost + "remote: the ranks begin anew (restart 1) at 2026-11-24T11:58:19Z after rank 1\n"));
  EXPECT_FALSE(follows("signal 9", lost));
  EXPECT_FALSE(follows("exit 137", lost));
  EXPECT_TRUE(follows("signal 11", lost));
}

TEST_F(WatchedJobTest, AStopIsNoFailure) {
  const std::string end = test::format_end("signal 15 1700000002500 supervisor\n");
  put("journal.jsonl", test::format_stop("15 user:ada%40laptop 1700000001000") + end);
  JobLook found = look();
  EXPECT_TRUE(found.has_ended);
  EXPECT_FALSE(found.failure);
  EXPECT_EQ(found.stopped_for, rules::Seconds(1.5));
  put("journal.jsonl", test::format_stop("15 user:ada 1700000009000") + end);
  EXPECT_EQ(look().stopped_for, rules::Seconds(0)) << "the clock was set";
  for (const char* other : {"15 rank:4 1700000001000", "15 lost:b 1700000001000"}) {
    put("journal.jsonl", test::format_stop(other) + end);
    found = look();
    EXPECT_TRUE(found.has_ended);
    EXPECT_FALSE(found.failure) << other;
    EXPECT_FALSE(found.stopped_for) << other;
  }
}

TEST_F(WatchedJobTest, TheEndOfAnAttemptIsRead) {
  const auto read = [&] { return watch(false, true).look(own_rank).round; };
  EXPECT_FALSE(read());
  const auto format = [](int attempt, const wire::ProcessEnd& how) {
    return test::format_entry(wire::AttemptEnded{attempt, {.how = how, .by = "supervisor"}});
  };
  const std::string killed = format(2, wire::ProcessEnd::signalled(9));
  put("journal.jsonl", killed);
  EXPECT_EQ(read()->attempt, 2);
  EXPECT_EQ(read()->ending, (Ending{EndKind::signal, 9}));
  EXPECT_FALSE(look().round) << "a launch without restarts";
  put("journal.jsonl", test::format_entry(wire::OutOfMemory{}) + killed);
  EXPECT_EQ(read()->ending, (Ending{EndKind::out_of_memory, 9}));
  put("journal.jsonl", killed + format(3, wire::ProcessEnd::exited(9)));
  EXPECT_EQ(read()->ending, (Ending{EndKind::exit, 9}));
  for (const std::string& text :
       {std::string(), killed.substr(0, killed.size() - 1), format(-1, {}), format(1, {.code = 999})}) {
    put("journal.jsonl", text);
    EXPECT_FALSE(read()) << text;
  }
}

TEST_F(WatchedJobTest, TheResultForTheVerdict) {
  EXPECT_FALSE(watch().read_result().succeeded);
  put("journal.jsonl", test::format_end("exit 0 1700000000000 supervisor\n"));
  EXPECT_TRUE(watch().read_result().succeeded);
  EXPECT_FALSE(watch().read_result().ended_because);
  put("journal.jsonl", test::format_end("never 0 1700000000000 claim\n"));
  EXPECT_FALSE(watch().read_result().succeeded);
  put("journal.jsonl", test::format_end("signal 15 1700000000000 supervisor\n"));
  EXPECT_FALSE(watch().read_result().succeeded);
  const std::vector<wire::EndReason> reasons{wire::RankEnded{7}, wire::ServerLoss{"my gpu"}, wire::Hang{60}};
  for (const wire::EndReason& reason : reasons) {
    put("journal.jsonl", test::format_stop("15 " + to_stop_word(to_stopped_by(reason)) + " 1700000000000"));
    EXPECT_EQ(watch().read_result().ended_because, reason);
  }
  put("journal.jsonl", test::format_stop("15 user:rank 1700000000000"));
  EXPECT_FALSE(watch().read_result().ended_because);
}

TEST_F(WatchedJobTest, FilesWithTheLastWords) {
  EXPECT_THAT(WatchedJob::list_output_files({}), ElementsAre("job.err", "job.out"));
  EXPECT_THAT(WatchedJob::list_output_files(12), ElementsAre("ranks/12.err", "job.err", "job.out"));
}

TEST_F(WatchedJobTest, TheFifoClosesWithItsWriter) {
  EXPECT_EQ(watch().fifo(), -1);
  const Path path = watch().folder() / ".alive";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const int guard = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  WatchedJob job = watch();
  ASSERT_GE(job.fifo(), 0);
  job.drain_fifo();
  EXPECT_GE(job.fifo(), 0);
  ASSERT_EQ(::write(guard, "ended\n", 6), 6);
  job.drain_fifo();
  EXPECT_GE(job.fifo(), 0);
  ::close(guard);
  job.drain_fifo();
  EXPECT_EQ(job.fifo(), -1);
}

TEST_F(WatchedJobTest, LengthsOfTheOutputAreMarked) {
  WatchedJob job = watch();
  job.look(own_rank);
  EXPECT_EQ(jobs.read(id, "marks"), "") << "nothing was written";
  put("job.out", "12345");
  job.look(own_rank);
  const std::string marks = jobs.read(id, "marks");
  EXPECT_THAT(marks, ::testing::MatchesRegex("[0-9]+ 5 0\n"));
  put("job.err", "1");
  job.look(own_rank);
  EXPECT_EQ(jobs.read(id, "marks"), marks) << "less than ten seconds later";
  WatchedJob next = watch();
  next.look(own_rank);
  EXPECT_THAT(jobs.read(id, "marks"), ::testing::EndsWith(" 5 1\n"));
  EXPECT_THAT(jobs.read(id, "marks"), ::testing::StartsWith(marks));
}

TEST_F(WatchedJobTest, WhatTheJobPutsInPlaceOfItsFilesBlocksNothing) {
  put("job.out", "12345");
  put("supervisor", "999999999 1 boot -\n");
  test::JobFolders::put_file(jobs.path() / "other", "");
  fs::create_directories(jobs.folder(id) / "failures");
  for (const char* name : {"journal.jsonl", "pid", "marks", "failures/agent", "failures/rank.1"}) {
    ASSERT_EQ(::mkfifo((jobs.folder(id) / name).c_str(), 0600), 0);
  }
  EXPECT_TRUE(watch(true, true).look(own_rank).has_ended);
  fs::remove(jobs.folder(id) / "marks");
  fs::create_symlink(jobs.path() / "other", jobs.folder(id) / "marks");
  watch().look(own_rank);
  EXPECT_EQ(fs::file_size(jobs.path() / "other"), 0U) << "a link is not followed";
}

}  // namespace
}  // namespace remote::agent
