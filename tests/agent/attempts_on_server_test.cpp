#include "agent/launch/attempts_on_server.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "agent/job/attempts.hpp"
#include "agent/job_folders.hpp"

namespace remote::agent {
namespace {

using rules::Seconds;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using wire::Ending;
using wire::EndKind;

class AttemptsOnServerTest : public ::testing::Test {
 protected:
  AttemptsOnServerTest() {
    for (int i = 0; i < 2; ++i) {
      ids.push_back(jobs.make({{"spec.json", ""}, {"job.out", ""}, {"job.err", "one\n"}}));
    }
    spec.server = "b";
    spec.servers = {{"a", 2, ""}, {"b", 2, ""}};
    spec.timeout_seconds = 60;
    spec.restarts.emplace().most = 3;
  }
  ~AttemptsOnServerTest() override {
    for (const int guard : guards) {
      ::close(guard);
    }
  }

  // Call it after the files of the jobs were written.
  AttemptsOnServer& attempts() {
    if (!attempts_) {
      for (const std::string& id : ids) {
        watched.push_back(std::make_unique<WatchedJob>(jobs.host(), jobs.jobs(), id, spec.uses_mpi(), true));
      }
      attempts_ = std::make_unique<AttemptsOnServer>(jobs.host(), jobs.jobs(), spec, watched);
    }
    return *attempts_;
  }
  // Starts the jobs' guards, which wait for orders.
  void start_guards() {
    for (const std::string& id : ids) {
      const std::string path = jobs.folder(id) / ".next";
      ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
      guards.push_back(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    }
  }
  std::string read_orders(std::size_t job) const {
    std::array<char, 512> buffer{};
    const ssize_t count = ::read(guards.at(job), buffer.data(), buffer.size());
    return {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))};
  }
  bool start(int attempt, wire::Shape shape = shape_of_second()) {
    ranks = {99};
    return attempts().start(attempt, shape, "a.local:2,b.local:2", ranks);
  }
  static wire::Shape shape_of_second() {
    return {.port = 29500,
            .world_size = 4,
            .first_rank = 2,
            .node_rank = 1,
            .nodes = 2,
            .resume_from = "ckpt/e 3.pt",
            .why = wire::RankFailure{0, "s0", {EndKind::exit, 3}, false, "m"}};
  }
  // The first job failed like this, after this output.
  wire::RankFailure describe(Ending ending, const std::string& words, const std::string& file = "job.err") {
    jobs.put(ids.front(), file, words);
    rules::LaunchJob job{.id = ids.front(), .rank = 2};
    job.round = rules::Round{1, ending};
    return attempts().describe_failure(job);
  }
  std::string mark(const std::string& words) { return describe({EndKind::exit, 1}, words).mark; }
  std::string read(std::size_t job, const std::string& name) { return jobs.read(ids.at(job), name); }

  test::JobFolders jobs;
  std::vector<std::string> ids;
  wire::LaunchSpec spec;
  std::vector<std::unique_ptr<WatchedJob>> watched;
  std::vector<int> guards;
  std::vector<int> ranks;

 private:
  std::unique_ptr<AttemptsOnServer> attempts_;
};

TEST_F(AttemptsOnServerTest, TheAttemptOnRecordIsRead) {
  EXPECT_EQ(attempts().attempt(), 1);
  for (const auto& [text, number] : std::map<std::string, int>{{"number 7\nRANK=1\n", 7},
                                                               {"number 7", 1},
                                                               {"number x\n", 1},
                                                               {"number 7 x\n", 1},
                                                               {"number -3\n", 1},
                                                               {"number 99999999\n", 1},
                                                               {"", 1}}) {
    jobs.put(ids[0], "attempt", text);
    EXPECT_EQ(attempts().attempt(), number) << text;
  }
}

TEST_F(AttemptsOnServerTest, ASpareHadNoAttempt) {
  jobs.put(ids[0], "spare", "");
  EXPECT_EQ(attempts().attempt(), 0);
  jobs.put(ids[0], "attempt", "number 2\n");
  EXPECT_EQ(attempts().attempt(), 2);
}

TEST_F(AttemptsOnServerTest, AnEarlierSupervisorIsFoundByItsLease) {
  EXPECT_FALSE(attempts().find_revived(Seconds(1000)));
  attempts().renew_lease(Seconds(1023.459));
  EXPECT_EQ(read(0, "lease"), "102345\n");
  EXPECT_EQ(read(1, "lease"), "102345\n");
  auto revived = attempts().find_revived(Seconds(1000));
  ASSERT_TRUE(revived);
  EXPECT_EQ(revived->lease_until, Seconds(1023.45));
  EXPECT_EQ(revived->attempt_began, Seconds(1000)) << "unknown";
  jobs.put(ids[0], "lease", "99999999999\n");
  EXPECT_EQ(attempts().find_revived(Seconds(1000))->lease_until, Seconds(1060)) << "longer than any lease";
  jobs.put(ids[0], "lease", "x\n");
  EXPECT_EQ(attempts().find_revived(Seconds(1000))->lease_until, Seconds(1000));

  const auto set_age = [&](const char* name, int seconds) {
    jobs.put(ids[0], name, "");
    const fs::path path = jobs.folder(ids[0]) / name;
    fs::last_write_time(path, fs::last_write_time(path) - std::chrono::seconds(seconds));
  };
  set_age("pid", 300);
  EXPECT_NEAR(attempts().find_revived(Seconds(1000))->attempt_began.count(), 700, 20);
  set_age("attempt", 100);
  EXPECT_NEAR(attempts().find_revived(Seconds(1000))->attempt_began.count(), 900, 20);
}

TEST_F(AttemptsOnServerTest, QuestionsAreRandom) {
  std::set<std::uint64_t> questions;
  for (int i = 0; i < 8; ++i) {
    questions.insert(AttemptsOnServer::choose_first_question());
  }
  EXPECT_GT(questions.size(), 6U);
  EXPECT_LT(*questions.rbegin(), std::uint64_t{1} << 53U);
}

TEST_F(AttemptsOnServerTest, AnAttemptBegins) {
  start_guards();
  jobs.put(ids[1], "ranks/3.err", "x\n");
  jobs.put(ids[1], "ranks/3.out", "");
  jobs.put(ids[1], "ranks/.hidden.err", "");
  ASSERT_TRUE(start(2));
  EXPECT_TRUE(ranks.empty()) << "the jobs keep their ranks";
  const std::string common =
      "number 2\nMASTER_PORT=29500\nNODE_RANK=1\nGROUP_WORLD_SIZE=2\nRESTART_COUNT=1\nRESUME_FROM=ckpt/e "
      "3.pt\n";
  EXPECT_EQ(read(0, "attempt"), common +
                                    "RANK=2\nWORLD_SIZE=4\nROLE_RANK=2\nROLE_WORLD_SIZE=4\nGROUP_RANK=1\n"
                                    "TORCHELASTIC_RESTART_COUNT=1\n");
  EXPECT_THAT(read(1, "attempt"), HasSubstr("\nRANK=3\nWORLD_SIZE=4\nROLE_RANK=3\n"));
  const std::string line =
      "remote: the ranks begin anew \\(restart 1\\) at "
      "20[0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-9][0-9]:[0-9][0-9]:"
      "[0-9][0-9]Z after rank 0 on s0 failed \\(exit 3\\)\n";
  EXPECT_THAT(read(0, "job.err"), MatchesRegex("one\n" + line));
  EXPECT_THAT(read(1, "ranks/3.err"), MatchesRegex("x\n" + line));
  EXPECT_EQ(read(1, "ranks/3.out") + read(1, "ranks/.hidden.err"), "");
  EXPECT_EQ(read_orders(0), "go 2\n");
  EXPECT_EQ(read_orders(1), "go 2\n");
  EXPECT_EQ(attempts().attempt(), 2);
}

TEST_F(AttemptsOnServerTest, AgentsNumberTheirOwnRanks) {
  spec.restarts->numbers_own_ranks = true;
  start_guards();
  wire::Shape shape = shape_of_second();
  shape.resume_from.clear();
  ASSERT_TRUE(start(3, shape));
  EXPECT_EQ(read(0, "attempt"),
            "number 3\nMASTER_PORT=29500\nNODE_RANK=1\nGROUP_WORLD_SIZE=2\nRESTART_COUNT=2\nRESUME_FROM=\n");
}

TEST_F(AttemptsOnServerTest, MpirunGetsItsHosts) {
  spec.restarts->numbers_own_ranks = true;
  spec.servers.front().mpi_host = "a.local";
  start_guards();
  ASSERT_TRUE(start(2));
  EXPECT_THAT(read(1, "attempt"),
              HasSubstr("\nWORLD_SIZE=4\nGROUP_RANK=1\nREMOTE_MPI_HOSTS=a.local:2,b.local:2\n"));
  EXPECT_THAT(read(1, "attempt"), Not(HasSubstr("\nRANK=")));
}

TEST_F(AttemptsOnServerTest, ASpareGetsItsRanks) {
  jobs.put(ids[0], "spare", "");
  start_guards();
  ASSERT_TRUE(start(2));
  EXPECT_THAT(ranks, ::testing::ElementsAre(2, 3));
}

TEST_F(AttemptsOnServerTest, TheCauseIsForPeople) {
  start_guards();
  const auto describe_cause = [&](std::optional<wire::Cause> cause) {
    wire::Shape shape = shape_of_second();
    shape.why = std::move(cause);
    EXPECT_TRUE(start(2, shape));
    const std::string text = read(0, "job.err");
    return text.substr(text.rfind(" after ") + 7);
  };
  EXPECT_EQ(describe_cause(wire::RankFailure{7, "b", {EndKind::out_of_memory, 9}, false, ""}),
            "rank 7 on b failed (out of memory, signal 9)\n");
  EXPECT_EQ(describe_cause(wire::RankFailure{7, "b\x1b[2J\n", {EndKind::signal, 11}, false, ""}),
            "rank 7 on b\\x1b[2J\\x0a failed (signal 11)\n");
  EXPECT_EQ(describe_cause(wire::ServerLoss{"b"}), "the loss of b\n");
  EXPECT_EQ(describe_cause(wire::SupervisorDeath{"a"}), "the death of the lifeline on a\n");
  EXPECT_EQ(describe_cause(wire::Hang{119}), "119 s without progress\n");
  EXPECT_EQ(describe_cause(wire::Hang{185}), "3 min without progress\n");
  EXPECT_EQ(describe_cause({}), "an unknown failure\n");
}

TEST_F(AttemptsOnServerTest, WithoutAGuardNothingStarts) {
  EXPECT_FALSE(start(2)) << "it has no FIFO";
  start_guards();
  EXPECT_TRUE(start(2));
  ::close(guards.back());
  guards.pop_back();
  EXPECT_FALSE(start(3)) << "it has exited";
  const fs::path fifo = jobs.folder(ids[1]) / ".next";
  fs::remove(fifo);
  test::JobFolders::put_file(fifo, "");
  EXPECT_FALSE(start(4)) << "it is a file";
  EXPECT_EQ(read(1, ".next"), "");
}

TEST_F(AttemptsOnServerTest, AFullDiskStartsNothing) {
  start_guards();
  fs::remove(jobs.folder(ids[1]) / "job.err");
  fs::create_directories(jobs.folder(ids[1]) / "job.err");
  EXPECT_FALSE(start(2));
  EXPECT_EQ(read_orders(0), "");
}

TEST_F(AttemptsOnServerTest, AReleaseLetsTheGuardsRecordTheEnds) {
  start_guards();
  attempts().release({wire::ServerLoss{"my gpu"}, NoRestart::coordinator_lost}, {ids[1]});
  EXPECT_EQ(read_orders(0), "end\n");
  EXPECT_EQ(read_orders(1), "end\n");
  EXPECT_EQ(test::read_stop(jobs.folder(ids[0])), "");
  EXPECT_THAT(test::read_stop(jobs.folder(ids[1])), ContainsRegex("^15 lost:my%20gpu 1[0-9]+"));
  EXPECT_EQ(watched[1]->read_result().ended_because, wire::EndReason(wire::ServerLoss{"my gpu"}));
  EXPECT_EQ(read_own_history(jobs.folder(ids[0])).no_restart, NoRestart::coordinator_lost);
  EXPECT_EQ(read_own_history(jobs.folder(ids[1])).no_restart, std::nullopt) << "one record is enough";
}

TEST_F(AttemptsOnServerTest, AReleaseChangesNoRecord) {
  jobs.put(ids[0], "journal.jsonl", test::format_stop("15 user:ada 1700000000000"));
  jobs.put(ids[1], "journal.jsonl", test::format_end("exit 0 1700000000000 supervisor\n"));
  attempts().release({.reason = wire::RankEnded{1}}, ids);  // the guards have exited
  EXPECT_EQ(test::read_stop(jobs.folder(ids[0])), "15 user:ada 1700000000000");
  EXPECT_EQ(test::read_stop(jobs.folder(ids[1])), "");
  attempts().release({}, {});
  EXPECT_EQ(read_own_history(jobs.folder(ids[0])).no_restart, std::nullopt);
}

TEST_F(AttemptsOnServerTest, TheMarkIsADigestOfTheLastLine) {
  const std::string digest = mark("step 1\nValueError: a bad batch\n");
  EXPECT_THAT(digest, MatchesRegex("[0-9a-f]+"));
  EXPECT_EQ(mark("step 2\nValueError: a bad batch\n \t\n\n"), digest);
  EXPECT_EQ(mark(std::string(5000, 'x') + "\nValueError: a bad batch"), digest);
  EXPECT_NE(mark("ValueError: another bad batch\n"), digest);
  EXPECT_NE(mark("ValueError: a bad batch\nremote: the ranks begin anew (restart 1) at x\n"), digest);
  EXPECT_EQ(mark(""), mark("ValueError\nremote: the ranks begin anew (restart 1) at x\n"));
  fs::remove(jobs.folder(ids[0]) / "job.err");
  rules::LaunchJob job{.id = ids[0], .rank = 2};
  job.round = rules::Round{1, {EndKind::signal, 9}};
  const wire::RankFailure failure = attempts().describe_failure(job);
  EXPECT_EQ(failure.rank, 2);
  EXPECT_EQ(failure.ending, (Ending{EndKind::signal, 9}));
  EXPECT_NE(failure.mark, "");
}

// The message of torch 2.11 on a GPU that other processes also use.
TEST_F(AttemptsOnServerTest, TheMarkIsTheSameInTwoRunsThatFailTheSameWay) {
  const auto out_of_memory = [](const std::string& free, const std::string& pid, const std::string& time) {
    return "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB. GPU 0 has a total "
           "capacity of "
           "79.18 GiB of which " +
           free + " GiB is free. Process " + pid +
           " has 682.00 MiB memory in use.\n[rank1]:[W1126 16:05:40." + time +
           " ProcessGroupNCCL.cpp:1575] Warning: destroy_process_group() was not called before program "
           "exit\n";
  };
  const std::string digest = mark(out_of_memory("5.83", "12403", "816896340"));
  EXPECT_EQ(mark(out_of_memory("5.80", "77", "105485338")), digest);
  EXPECT_NE(mark("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.00 GiB. GPU 0 has\n"),
            digest);
  EXPECT_EQ(mark("[rank0]:[E1126 16:05:40.8 a.cpp:1] PID 12: no 0x12f\n"),
            mark("[rank0]:[E1127 09:00:00.9 a.cpp:1] PID 7: no 0xAB\n"));
  EXPECT_NE(mark("IndexError: 5\n"), mark("IndexError: 6\n"));
  EXPECT_NE(mark("rapid 5\n"), mark("rapid 6\n"));
  EXPECT_NE(mark("[E11 1] x\n"), mark("[E11 2] x\n"));
}

TEST_F(AttemptsOnServerTest, TheMarkNamesTheProblemOfAMachine) {
  EXPECT_EQ(mark("CUDA error: GPU is lost\n"), "gpu");
  EXPECT_EQ(mark("RuntimeError: no CUDA-capable device is detected\nConnection reset by peer\n"), "gpu");
  EXPECT_EQ(mark("uncorrectable ECC error encountered\n"), "ecc");
  EXPECT_EQ(mark("NVRM: Xid 79: GPU has fallen off the bus\n"), "gpu");
  EXPECT_EQ(mark("NVRM: Xid 31\n"), "xid");
  EXPECT_EQ(mark("OSError: [Errno 28] No space left on device\n"), "disk");
  EXPECT_NE(mark("GPU is lost\nremote: the ranks begin anew (restart 1) at x\nother\n"), "gpu");
  EXPECT_FALSE(describe({EndKind::exit, 1}, "Stale file handle\nBroken pipe\n").after_peer);
}

TEST_F(AttemptsOnServerTest, AFailureCanFollowFromAPeers) {
  const wire::RankFailure failure = describe({EndKind::signal, 6}, "Connection reset by peer\nend\n");
  EXPECT_TRUE(failure.after_peer);
  EXPECT_EQ(failure.mark, "");
  EXPECT_FALSE(describe({EndKind::signal, 6}, "Traceback (most recent call last):\nValueError\n").after_peer);
}

TEST_F(AttemptsOnServerTest, TheFailedWorkerOfAnAgentIsDescribed) {
  spec.restarts->numbers_own_ranks = true;
  jobs.put(ids[0], "failures/agent", "5 exit 3 1700000000000 torchrun\n");
  jobs.put(ids[0], "job.err", "ChildFailedError\n");
  const wire::RankFailure failure = describe({EndKind::exit, 1}, "GPU is lost\n", "ranks/5.err");
  EXPECT_EQ(failure.rank, 5);
  EXPECT_EQ(failure.ending, (Ending{EndKind::exit, 3}));
  EXPECT_EQ(failure.mark, "gpu");
  EXPECT_EQ(describe({EndKind::signal, 9}, "GPU is lost\n", "ranks/5.err").rank, 2) << "the agent itself";
}

TEST_F(AttemptsOnServerTest, WithoutAnAgentFilesOfWorkersDoNotCount) {
  jobs.put(ids[0], "failures/agent", "5 exit 3 1700000000000 torchrun\n");
  EXPECT_EQ(describe({EndKind::exit, 1}, "x\n").rank, 2);
}

TEST_F(AttemptsOnServerTest, MpirunFailsBecauseOfARank) {
  spec.restarts->numbers_own_ranks = true;
  spec.servers.front().mpi_host = "a.local";
  EXPECT_TRUE(describe({EndKind::exit, 1}, "x\n").after_peer) << "of another server";
  EXPECT_FALSE(describe({EndKind::signal, 9}, "x\n").after_peer);
  jobs.put(ids[0], "failures/agent", "5 exit 3 1700000000000 mpirun\n");
  const wire::RankFailure failure =
      describe({EndKind::exit, 1}, "1700000000001\nValueError\n", "failures/rank.5");
  EXPECT_EQ(failure.rank, 5);
  EXPECT_FALSE(failure.after_peer);
  EXPECT_EQ(describe({EndKind::exit, 1}, "1700000000002\nValueError\n", "failures/rank.5").mark,
            failure.mark);
  EXPECT_EQ(describe({EndKind::exit, 1}, "1700000000001\n", "failures/rank.5").mark,
            describe({EndKind::exit, 1}, "1700000000002\n", "failures/rank.5").mark)
      << "the time is not part of it";
}

TEST_F(AttemptsOnServerTest, AttemptsAreRecorded) {
  const Seconds now = read_boot_clock();
  const wire::Cause failure = wire::RankFailure{3, "my gpu", {EndKind::out_of_memory, 9}, false, "m"};
  attempts().record_attempt(1, now - Seconds(20), now - Seconds(5), now, failure, {"my gpu", "a,b", "-"},
                            true);
  attempts().record_attempt(2, now, now, now, wire::ServerLoss{"b"}, {}, false);
  attempts().record_attempt(3, now, now, now, wire::Hang{60}, {}, false);
  attempts().record_attempt(4, now, now, now, wire::SupervisorDeath{"a"}, {}, false);
  EXPECT_THAT(read(0, "attempts"),
              MatchesRegex("1 [0-9]+ [0-9]+ [0-9]+ oom 9 3 1 my%20gpu my%20gpu,a%2Cb,-\n"
                           "2 [0-9]+ [0-9]+ [0-9]+ lost - - 0 b -\n3 [0-9]+ [0-9]+ [0-9]+ hang - - 0 - -\n"
                           "4 [0-9]+ [0-9]+ [0-9]+ lifeline - - 0 a -\n"));
  const auto records = read_attempts(jobs.folder(ids[0]).string());
  ASSERT_EQ(records.size(), 4U);
  EXPECT_EQ(records[0].without, (std::vector<std::string>{"my gpu", "a,b", "-"}));
  EXPECT_NEAR(static_cast<double>((records[0].next_at - records[0].began_at).count()), 20'000, 50);
  EXPECT_NEAR(static_cast<double>((read_wall_clock() - records[0].next_at).count()), 0, 20'000);
  EXPECT_EQ(read(1, "attempts"), "");
}

TEST_F(AttemptsOnServerTest, ARefusedCheckpointIsReported) {
  attempts().refuse_checkpoint();
  EXPECT_THAT(read(0, "job.err"),
              HasSubstr("one\nremote: the ranks do not begin: the first server named a checkpoint"));
  EXPECT_THAT(read(1, "job.err"), HasSubstr("checkpoint"));
}

TEST_F(AttemptsOnServerTest, ASickServerIsMarked) {
  const fs::path sick = fs::path(jobs.jobs().jobs) / ".sick";
  attempts().mark_sick("m1");
  attempts().mark_sick("../x");
  EXPECT_FALSE(fs::exists(sick));
  attempts().mark_sick("disk");
  EXPECT_THAT(read(0, "../.sick"), MatchesRegex("disk 1[0-9]+\n"));
}

TEST_F(AttemptsOnServerTest, CheckpointsAreThoseOfTheProject) {
  EXPECT_TRUE(attempts().find_checkpoints().empty());
  spec.restarts->checkpoint_files = "e*.pt";
  spec.restarts->checkpoint_complete = "e*.done";
  test::JobFolders::put_file(fs::path(jobs.jobs().project) / "e1.pt", "");
  test::JobFolders::put_file(fs::path(jobs.jobs().project) / "e1.done", "");
  EXPECT_THAT(attempts().find_checkpoints(), ::testing::ElementsAre("e1.pt"));
}

}  // namespace
}  // namespace remote::agent
