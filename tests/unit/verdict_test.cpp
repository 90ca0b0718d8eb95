#include "jobs/verdict.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.hpp"
#include "cli/show/jobs.hpp"
#include "cli/show/launches.hpp"
#include "cli/show/verdict.hpp"
#include "jobs/job_fields.hpp"
#include "jobs/transitions.hpp"
#include "support/instants.hpp"

namespace remote::jobs {
namespace {

Job rank(int number, JobState state, std::optional<int> ended, const JobReason& reason = {}) {
  Job job;
  job.key = number + 1;
  job.rank = number;
  job.server = number < 2 ? "a" : "b";
  job.state = state;
  job.ended_at = ended ? std::optional(instant(*ended)) : std::nullopt;
  job.reason = reason;
  return job;
}

const JobReason after_rank_2{.kind = JobReason::Kind::after_rank, .number = 2};
const JobReason after_loss{.kind = JobReason::Kind::after_loss, .text = "b"};
const JobReason by_user{.kind = JobReason::Kind::by_user, .number = 15, .text = "ada@laptop"};

void expect_first(const std::vector<Job>& jobs, std::size_t first, int ahead_ms, bool exact) {
  const Verdict verdict = verdict_of(jobs);
  EXPECT_EQ(verdict.first, jobs[first]);
  EXPECT_EQ(verdict.ahead, std::chrono::milliseconds(ahead_ms));
  EXPECT_EQ(verdict.exact, exact);
}

TEST(VerdictHint, OfAServerThatIsGoneSaysSo) {
  Verdict verdict;
  verdict.first = Job{};
  verdict.first->server = "b";
  EXPECT_EQ(cli::verdict_hint(verdict), "");
  verdict.gone = true;
  EXPECT_EQ(cli::verdict_hint(verdict),
            "b no longer answers: it may have been shut down, or taken back by its provider");
  verdict.reported_at = instant(100);
  EXPECT_EQ(cli::verdict_hint(verdict), "b has not reported since " + format_local_time(instant(100)) +
                                            " and no longer answers: it may have been shut down, or "
                                            "taken back by its provider");
}

TEST(Verdict, AServerThatWasLostSaysSinceWhen) {
  std::vector<Job> jobs = {rank(0, JobState::killed, 104, after_loss),
                           rank(2, JobState::unknown, std::nullopt),
                           rank(3, JobState::unknown, std::nullopt)};
  EXPECT_EQ(cli::verdict_headline(verdict_of(jobs)), "b was lost") << "it has never reported";
  jobs[0].checked_at = instant(105);
  jobs[1].checked_at = instant(90);
  jobs[2].checked_at = instant(91);
  EXPECT_EQ(cli::verdict_headline(verdict_of(jobs)),
            "b was lost (no report since " + format_local_time(instant(91)) + ")");
  jobs[1].state = jobs[2].state = JobState::lost;  // it is back
  EXPECT_EQ(verdict_of(jobs).reported_at, std::nullopt);
}

TEST(Verdict, TheEarliestFailureCountsAndTheRestIsAftermath) {
  const std::vector<Job> jobs = {rank(0, JobState::failed, 104), rank(1, JobState::killed, 107, after_rank_2),
                                 rank(2, JobState::failed, 101), rank(3, JobState::killed, 106, after_rank_2),
                                 rank(4, JobState::succeeded, 90)};
  const Verdict verdict = verdict_of(jobs);
  ASSERT_EQ(verdict.first, jobs[2]);
  EXPECT_EQ(verdict.ahead, std::chrono::seconds(3));
  EXPECT_FALSE(verdict.exact);
  EXPECT_EQ(cli::aftermath(verdict), "2 others were ended after it, 1 failed after it, 1 succeeded");
}

TEST(Verdict, AJobThatRunsSeveralRanksCountsForEach) {
  std::vector<Job> agents = {rank(0, JobState::failed, 104), rank(2, JobState::failed, 101)};
  for (Job& agent : agents) {
    agent.id = JobId::random();
    agent.ranks = 2;
  }
  Job worker = agents[1];
  worker.rank = 3;
  worker.ranks.reset();
  EXPECT_EQ(verdict_of(agents).total, 4);
  EXPECT_EQ(verdict_of(agents).aborted, 2);
  EXPECT_EQ(verdict_of(agents, {worker}).first, worker);
  EXPECT_EQ(verdict_of(agents, {worker}).aborted, 3);
  for (Job& agent : agents) {
    agent.state = JobState::succeeded;
  }
  EXPECT_EQ(verdict_of(agents).succeeded, 4);
}

TEST(Verdict, AnElasticLaunchSucceedsOnEnoughServers) {
  std::vector<Job> agents = {rank(0, JobState::succeeded, 104), rank(2, JobState::failed, 101)};
  for (Job& agent : agents) {
    agent.ranks = 2;
    agent.needed = 1;
  }
  agents[1].result = ExitStatus::signalled(9);
  EXPECT_EQ(verdict_of(agents).left, std::vector<std::string>{"b"});
  EXPECT_EQ(verdict_of(agents).succeeded, 2);
  EXPECT_FALSE(verdict_of(agents).first);
  agents[1].result = ExitStatus::exited(1);  // it gave up, and so did the launch
  EXPECT_EQ(verdict_of(agents).first, agents[1]);
  agents[1].state = JobState::unknown;
  EXPECT_EQ(verdict_of(agents).left.size(), 1U);
  agents[0].needed = agents[1].needed = 2;
  EXPECT_TRUE(verdict_of(agents).left.empty());
}

TEST(Verdict, ASpareCountsOnceItHasReplacedAServer) {
  std::vector<Job> jobs = {rank(0, JobState::succeeded, 104), rank(2, JobState::succeeded, 104),
                           rank(3, JobState::succeeded, 104)};
  jobs[2].spare = true;
  EXPECT_EQ(verdict_of(jobs).total, 2);
  EXPECT_EQ(verdict_of(jobs).succeeded, 2);
  for (Job& job : jobs) {
    job.may_restart = true;
  }
  jobs[0].attempts = {{.number = 1,
                       .began_at = instant(10),
                       .failed_at = instant(22),
                       .next_at = instant(40),
                       .cause = RestartCause::lost}};
  jobs[0].attempts[0].server = "b";
  jobs[0].attempts[0].without = {"b"};
  jobs[1].state = JobState::unknown;
  jobs[2].pid = 7;
  jobs[2].server = "c";
  const Verdict verdict = verdict_of(jobs);
  EXPECT_EQ(verdict.left, std::vector<std::string>{"b"});
  EXPECT_EQ(verdict.succeeded, 2);
  ASSERT_EQ(verdict.attempts.size(), 1U);
  EXPECT_EQ(cli::attempt_text(verdict.attempts[0]), "attempt 1: server b was lost after 12s");
  EXPECT_THAT(cli::state_text(jobs), ::testing::EndsWith(", attempt 2"));
}

TEST(Verdict, SaysWhyALaunchDidNotStartAgain) {
  std::vector<Job> jobs = {rank(0, JobState::killed, 104, after_rank_2), rank(2, JobState::failed, 100)};
  jobs[1].result = ExitStatus::exited(3);
  EXPECT_EQ(cli::no_restart_text(verdict_of(jobs)), "");
  jobs[0].no_restart = NoRestart::repeated;
  EXPECT_EQ(cli::no_restart_text(verdict_of(jobs)),
            "rank 2 failed twice in a row with the same last line, without a newer checkpoint in between");
  jobs[0].no_restart = NoRestart::stopped;
  EXPECT_EQ(cli::no_restart_text(verdict_of(jobs)), "a job was stopped, or its supervisor is gone");
  jobs[0].state = jobs[1].state = JobState::succeeded;
  EXPECT_EQ(cli::no_restart_text(verdict_of(jobs)), "");
}

// Four servers with one rank each and two spares; for the attempts see Attempt::without.
std::vector<Job> restarting(const std::vector<std::vector<std::string>>& without) {
  std::vector<Job> jobs;
  for (const char* server : {"a", "b", "c", "d", "s", "t"}) {
    jobs.push_back(rank(std::min(static_cast<int>(jobs.size()), 3), JobState::succeeded, 200));
    jobs.back().server = server;
    jobs.back().id = JobId::random();
    jobs.back().may_restart = true;
    jobs.back().spare = jobs.size() > 4;
  }
  for (const auto& servers : without) {
    Attempt attempt{.number = 1, .began_at = instant(10), .failed_at = instant(22), .next_at = instant(40)};
    attempt.without = servers;
    jobs[0].attempts.push_back(attempt);
  }
  return jobs;
}

TEST(Verdict, ALostJobIsLeftOutOnlyByAnAttemptWithoutItsServer) {
  for (const JobState state : {JobState::lost, JobState::unknown, JobState::failed}) {
    std::vector<Job> jobs = restarting({});
    jobs[1].state = state;
    EXPECT_TRUE(verdict_of(jobs).left.empty()) << to_string(state);
    EXPECT_LT(verdict_of(jobs).succeeded, verdict_of(jobs).total) << to_string(state);
    // The restart had another reason.
    jobs[0].attempts = restarting({{}, {"c"}})[0].attempts;
    jobs[4].pid = 7;
    EXPECT_TRUE(verdict_of(jobs).left.empty()) << to_string(state);
    jobs[0].attempts[0].without = {"b"};
    EXPECT_EQ(verdict_of(jobs).left, (std::vector<std::string>{"b", "c"})) << to_string(state);
    EXPECT_EQ(launch_state(jobs, verdict_of(jobs)), JobState::succeeded) << to_string(state);
    jobs[0].state = JobState::running;
    EXPECT_EQ(launch_state(jobs, verdict_of(jobs)), JobState::running) << "b is " << to_string(state);
  }
}

TEST(Verdict, OnlyTheServersOfTheLastAttemptAreJudged) {
  std::vector<Job> jobs = restarting({{"b"}});
  jobs[1] = rank(1, JobState::lost, 20, {.kind = JobReason::Kind::processes_gone});
  jobs[1].server = "b";
  jobs[4].pid = 7;
  jobs[0].state = jobs[3].state = jobs[4].state = JobState::killed;
  jobs[0].reason = jobs[3].reason = jobs[4].reason = after_rank_2;
  jobs[2].state = JobState::failed;
  jobs[2].result = ExitStatus::exited(3);
  const Verdict verdict = verdict_of(jobs, {}, {"b"});
  ASSERT_TRUE(verdict.first);
  EXPECT_EQ(verdict.first->server, "c");
  EXPECT_EQ(verdict.total, 4);
  EXPECT_EQ(cli::aftermath(verdict), "3 others were ended after it");
  // A process that failed there in an earlier attempt is not the cause either.
  Job worker = jobs[1];
  worker.failed_at = exact_instant(19000);
  EXPECT_EQ(verdict_of(jobs, {worker}).first->server, "c");
}

TEST(Verdict, AnAgentThatHasTheStoreIsNeverLeftOut) {
  std::vector<Job> agents = {rank(0, JobState::lost, 104), rank(2, JobState::succeeded, 101)};
  for (Job& agent : agents) {
    agent.ranks = 2;
    agent.needed = 1;
  }
  EXPECT_TRUE(verdict_of(agents).left.empty());
  EXPECT_EQ(verdict_of(agents).first, agents[0]);
}

// A launch with one rank per server: each was stopped because this server was lost.
std::vector<Job> accusing(const std::vector<std::pair<std::string, std::string>>& servers) {
  std::vector<Job> jobs;
  for (const auto& [server, lost] : servers) {
    jobs.push_back(rank(static_cast<int>(jobs.size()), JobState::killed, 100,
                        {.kind = JobReason::Kind::after_loss, .text = lost}));
    jobs.back().server = server;
  }
  return jobs;
}

TEST(Verdict, TheServerThatMostOthersMissedWasLost) {
  EXPECT_EQ(verdict_of(accusing({{"n5", "n7"}, {"n6", "n7"}, {"n7", "n5"}, {"n8", "n7"}})).lost_server, "n7");
  EXPECT_EQ(verdict_of(accusing({{"n5", "n7"}, {"n6", "n5"}, {"n7", "n5"}, {"n8", "n5"}})).lost_server, "n5");
  EXPECT_EQ(verdict_of(accusing({{"n5", "n6"}, {"n6", "n5"}})).lost_server, "n6");
  // All ranks of a server have one vote.
  EXPECT_EQ(verdict_of(accusing({{"n5", "n7"}, {"n6", "n7"}, {"n7", "n5"}, {"n7", "n5"}, {"n7", "n5"}}))
                .lost_server,
            "n7");
}

TEST(Verdict, AFailureThatFollowsFromALostServerIsNotTheCause) {
  std::vector<Job> jobs = accusing({{"n5", "n7"}, {"n6", "n7"}, {"n7", "n5"}, {"n8", "n7"}});
  jobs[1].state = JobState::failed;
  jobs[1].reason = {};
  jobs[1].after_peer = true;
  EXPECT_FALSE(verdict_of(jobs).first);
  EXPECT_EQ(cli::verdict_headline(verdict_of(jobs)), "n7 was lost");
  jobs[1].after_peer = false;
  EXPECT_EQ(verdict_of(jobs).first, jobs[1]);
}

TEST(Verdict, ASpareThatWasNotNeededHasNotSucceeded) {
  std::vector<Job> jobs = restarting({});
  wire::JobReport reply;
  reply.phase = wire::JobPhase::ended;
  reply.end = {.how = wire::ProcessEnd::exited(0)};
  jobs[4].state = JobState::running;
  jobs[4] = apply_status(jobs[4], reply, {instant(300), instant(300), {}}, Starter::alive);
  EXPECT_EQ(cli::state_text(jobs[4]), "a spare that was not needed");
  EXPECT_EQ(cli::state_text(jobs), "succeeded");
  EXPECT_EQ(cli::exit_code_of(jobs[4]), 0);
  jobs[5].state = JobState::running;
  reply.pid = 7;
  EXPECT_EQ(apply_status(jobs[5], reply, {instant(300), instant(300), {}}, Starter::alive).state,
            JobState::succeeded);
}

TEST(Verdict, AnAttemptIsToldByItsFailure) {
  Attempt attempt{.number = 2,
                  .began_at = instant(10),
                  .failed_at = instant(12),
                  .next_at = instant(13),
                  .cause = RestartCause::exit};
  attempt.rank = 3;
  attempt.server = "b";
  attempt.result = ExitStatus::exited(7);
  EXPECT_EQ(cli::attempt_text(attempt), "attempt 2: rank 3 on b failed (exit 7) after 2s");
  attempt.cause = RestartCause::lifeline;
  EXPECT_EQ(cli::attempt_text(attempt), "attempt 2: the lifeline on b died after 2s");
  attempt.cause = RestartCause::oom;
  attempt.left_out = true;
  EXPECT_EQ(cli::attempt_text(attempt),
            "attempt 2: rank 3 on b ran out of memory after 2s, and the server was excluded as sick");
}

TEST(Verdict, AServerThatWasCutOffTookTheOthersForLost) {
  const JobReason loss_of_first{.kind = JobReason::Kind::after_loss, .text = "a"};
  std::vector<Job> agents = {rank(0, JobState::succeeded, 104),
                             rank(2, JobState::killed, 101, loss_of_first)};
  agents[0].needed = agents[1].needed = 1;
  agents[0].ranks = agents[1].ranks = 1;
  EXPECT_EQ(verdict_of(agents).left, std::vector<std::string>{"b"});
  agents[0] = rank(0, JobState::killed, 104, by_user);
  agents[0].needed = 1;
  EXPECT_EQ(verdict_of(agents).lost_server, "b");
  agents[0] = rank(0, JobState::unknown, 104);
  agents[0].needed = 1;
  EXPECT_EQ(verdict_of(agents).lost_server, "a");
  agents[0] = rank(0, JobState::killed, 104, loss_of_first);  // it knows itself that it was cut off
  agents[0].needed = 1;
  EXPECT_EQ(verdict_of(agents).lost_server, "a");
}

TEST(Verdict, ALaunchThatStoodStillHasNoFirstFailure) {
  const JobReason after_hang{.kind = JobReason::Kind::after_hang, .number = 1800};
  std::vector<Job> jobs = {rank(0, JobState::killed, 104, after_hang), rank(1, JobState::failed, 104),
                           rank(2, JobState::killed, 104, after_hang)};
  jobs[1].after_peer = true;
  const Verdict verdict = verdict_of(jobs);
  EXPECT_FALSE(verdict.first || verdict.killed_first);
  ASSERT_TRUE(verdict.hung);
  EXPECT_EQ(verdict.hung->reason.number, 1800);
  EXPECT_EQ(cli::verdict_headline(verdict), "hung: ended after 30m 00s without progress");
  EXPECT_EQ(cli::verdict_hint(verdict), "state of its ranks at that time: remote job-why --launch 1");
  EXPECT_EQ(cli::aftermath(verdict), "2 were ended, 1 failed after it");
}

TEST(Verdict, AScriptThatNoPythonStartsHasAHint) {
  Verdict verdict = verdict_of({rank(0, JobState::failed, 104)});
  for (const char* line : {"bash: line 1: train.py: command not found", "sh: 1: train.py: not found"}) {
    verdict.last_lines = {line};
    EXPECT_THAT(cli::verdict_hint(verdict), testing::HasSubstr("python train.py")) << line;
  }
  verdict.first->command = "cd sub && train.py";
  verdict.last_lines = {"bash: line 1: train.py: command not found"};
  EXPECT_THAT(cli::verdict_hint(verdict), testing::EndsWith("--cmd 'cd sub && python train.py'"));
  verdict.first->command = "./sub/x.py --lr 1";
  verdict.last_lines = {"bash: line 1: ./sub/x.py: Permission denied"};
  EXPECT_THAT(cli::verdict_hint(verdict), testing::EndsWith("--cmd 'python ./sub/x.py --lr 1'"));
  verdict.first->command = "cd sub; ./train.py";
  verdict.last_lines = {"bash: line 1: ./train.py: Permission denied"};
  EXPECT_THAT(cli::verdict_hint(verdict), testing::EndsWith("--cmd 'cd sub; python ./train.py'"));
  verdict.first->command = "# first try\ntrain.py";
  verdict.last_lines = {"bash: line 2: train.py: command not found"};
  EXPECT_THAT(cli::verdict_hint(verdict), testing::EndsWith("--cmd $'# first try\\npython train.py'"));
  verdict.first->command = "nice -n 5 train.py";
  for (const char* line : {"nice: 'train.py': No such file or directory",
                           "nice: \u2018train.py\u2019: No such file or directory"}) {
    verdict.last_lines = {line};
    EXPECT_THAT(cli::verdict_hint(verdict), testing::EndsWith("--cmd 'nice -n 5 python train.py'")) << line;
  }
  verdict.first->command = "ls x.py";
  verdict.last_lines = {"ls: cannot access 'x.py': No such file or directory"};
  EXPECT_EQ(cli::verdict_hint(verdict), "");
  verdict.first->command = "'python train.py'";  // one argument after --
  verdict.last_lines = {"bash: line 1: python train.py: command not found"};
  EXPECT_EQ(cli::verdict_hint(verdict), "a line for the shell goes to --cmd: --cmd 'python train.py'");
  verdict.first->command = "train.py";
  verdict.last_lines = {"train.py: not found is what it says of data/x"};
  EXPECT_EQ(cli::verdict_hint(verdict), "");
}

TEST(Verdict, TheLastLinesOfTheFirstFailureHaveTheirRemedy) {
  Verdict verdict = verdict_of({rank(0, JobState::failed, 104)});
  verdict.first->command = "bash train.sh";
  const auto expect_hint = [&](const char* line, const char* hint) {
    verdict.last_lines = {line};
    EXPECT_THAT(cli::verdict_hint(verdict), testing::HasSubstr(hint)) << line;
  };
  expect_hint("RuntimeError: The server socket has failed to listen: Address already in use",
              "--nproc-per-node 1");
  expect_hint("EOFError: EOF when reading a line", "there is no terminal to type on");
  expect_hint("RuntimeError: The NVIDIA driver on your system is too old (found version 11040).",
              "newer CUDA");
  expect_hint(
      "subprocess.CalledProcessError: Command '['git', 'rev-parse', 'HEAD']' returned non-zero exit "
      "status 128.",
      "REMOTE_COMMIT");
  expect_hint("_pickle.UnpicklingError: invalid load key, 'v'.", "git lfs pull");
  expect_hint("FileNotFoundError: [Errno 2] No such file or directory: '/dev/shm/cache'", "RemoveIPC=no");
}

TEST(Verdict, ASuccessNamesWhatLimitsIt) {
  std::vector<Job> jobs = {rank(0, JobState::succeeded, 104), rank(1, JobState::succeeded, 104)};
  jobs[0].command = jobs[1].command = "python train.py";
  EXPECT_THAT(cli::success_notes(jobs), testing::IsEmpty());
  jobs[1].leftovers = 1;
  EXPECT_THAT(cli::success_notes(jobs), testing::ElementsAre(testing::AllOf(
                                            testing::StartsWith("1 process still runs behind the command"),
                                            testing::HasSubstr("`remote job-kill 2` ends it"))));
  jobs[0].leftovers = 2;
  jobs[0].launch = JobId::random();
  jobs[0].command = "python train.py | tee log";
  EXPECT_THAT(cli::success_notes(jobs), testing::ElementsAre(testing::HasSubstr("3 processes still run"),
                                                             testing::HasSubstr("of `tee`")));
  jobs[0].leftovers = jobs[1].leftovers = 0;
  jobs[0].command = "python train.py; echo done";
  EXPECT_THAT(cli::success_notes(jobs),
              testing::ElementsAre("that is the exit status of `echo done`, the end of the list: to count a "
                                   "failure before it, run --cmd 'python train.py && echo done'"));
}

TEST(Verdict, RanksThatStartLaunchersAreSeparateTrainings) {
  std::vector<Job> jobs = {rank(0, JobState::succeeded, 104), rank(2, JobState::succeeded, 104)};
  jobs[0].command = jobs[1].command = "bash train.sh";
  EXPECT_THAT(cli::success_notes(jobs), testing::IsEmpty());
  EXPECT_THAT(cli::success_notes(jobs, "torchrun"),
              testing::ElementsAre(testing::StartsWith(
                  "each rank started torchrun itself, so these were 2 separate trainings")));
  jobs.pop_back();
  EXPECT_THAT(cli::success_notes(jobs, "torchrun"), testing::IsEmpty());
}

TEST(Verdict, WhatTheLaunchEndedIsNeverTheFirst) {
  const std::vector<Job> jobs = {
      rank(0, JobState::killed, 100, {.kind = JobReason::Kind::after_rank, .number = 1}),
      rank(1, JobState::failed, 101)};
  const Verdict verdict = verdict_of(jobs);
  ASSERT_EQ(verdict.first, jobs[1]);
  EXPECT_FALSE(verdict.ahead);
  EXPECT_EQ(cli::aftermath(verdict), "1 other was ended after it");
}

TEST(Verdict, AnEndWithoutATimeComesAfterThoseWithOne) {
  const std::vector<Job> jobs = {rank(0, JobState::lost, std::nullopt), rank(1, JobState::failed, 101)};
  EXPECT_EQ(verdict_of(jobs).first, jobs[1]);
  EXPECT_EQ(cli::aftermath(verdict_of(jobs)), "1 other failed after it");
}

TEST(Verdict, PartsOfASecondDecideWithinIt) {
  std::vector<Job> jobs = {rank(0, JobState::failed, 101), rank(1, JobState::killed, 106, after_rank_2),
                           rank(2, JobState::failed, 101), rank(3, JobState::failed, 101)};
  jobs[0].failed_at = exact_instant(101400);
  jobs[1].failed_at = exact_instant(106100);
  jobs[2].failed_at = exact_instant(101150);
  jobs[3].failed_at = exact_instant(101900);
  expect_first(jobs, 2, 250, true);
  EXPECT_EQ(cli::aftermath(verdict_of(jobs)), "1 other was ended after it, 2 failed after it");
  // the end itself may come later than that of a victim
  jobs[2].ended_at = instant(104);
  EXPECT_EQ(verdict_of(jobs).first, jobs[2]);
}

TEST(Verdict, OneThatTellsOfNoPeerIsTheCauseOfThoseThatDo) {
  std::vector<Job> jobs = {rank(0, JobState::failed, 101), rank(1, JobState::failed, 101),
                           rank(2, JobState::failed, 101), rank(3, JobState::failed, 101)};
  for (Job& job : jobs) {
    job.failed_at = exact_instant(101100 + *job.rank);
    job.after_peer = job.rank != 2;
  }
  jobs[2].failed_at = exact_instant(101700);  // its supervisor was slow
  EXPECT_EQ(verdict_of(jobs).first, jobs[2]);
  jobs[2].failed_at = exact_instant(106200);  // too late to be the cause
  EXPECT_EQ(verdict_of(jobs).first, jobs[0]);
  jobs[2].failed_at.reset();  // the time of its end is unknown
  jobs[2].ended_at.reset();
  jobs[2].state = JobState::lost;
  EXPECT_EQ(verdict_of(jobs).first, jobs[2]);
  jobs[2] = jobs[3];
  EXPECT_EQ(verdict_of(jobs).first, jobs[0]);
}

TEST(Verdict, AWorkerCountsInItsAgentsPlace) {
  std::vector<Job> agents = {rank(0, JobState::failed, 101), rank(2, JobState::failed, 101)};
  agents[0].failed_at = exact_instant(101100);
  agents[1].failed_at = exact_instant(101300);
  for (Job& agent : agents) {
    agent.id = JobId::random();
  }
  Job worker = agents[1];
  worker.rank = 3;
  worker.failed_at = exact_instant(101050);
  Job other = agents[1];
  other.failed_at = exact_instant(101060);
  const Verdict verdict = verdict_of(agents, {other, worker});
  EXPECT_EQ(verdict.first, worker);
  EXPECT_EQ(verdict.ahead, std::chrono::milliseconds(10));
  EXPECT_EQ(cli::aftermath(verdict), "1 other failed after it");
}

TEST(Verdict, AServerThatWasGivenUpIsTheCauseUnlessOneFailedByItself) {
  std::vector<Job> jobs = {rank(0, JobState::failed, 101), rank(2, JobState::unknown, std::nullopt)};
  jobs[0].after_peer = true;
  const Verdict lost = verdict_of(jobs, {}, {"b"});
  EXPECT_EQ(lost.first, std::nullopt);
  EXPECT_EQ(lost.lost_server, "b");
  EXPECT_EQ(cli::aftermath(lost), "1 other failed after it, 1 is unknown");
  jobs[0].after_peer = false;
  EXPECT_EQ(verdict_of(jobs, {}, {"b"}).first, jobs[0]);
  jobs[0].state = JobState::succeeded;
  EXPECT_EQ(verdict_of(jobs, {}, {"b"}).lost_server, "");
}

TEST(Verdict, AJobOfWhichOnlyTheSecondIsKnownFailedAtItsEnd) {
  std::vector<Job> jobs = {rank(0, JobState::failed, 101), rank(1, JobState::failed, 101),
                           rank(2, JobState::failed, 102)};
  jobs[1].failed_at = exact_instant(101700);
  jobs[2].failed_at = exact_instant(102000);
  expect_first(jobs, 1, 0, false);
  jobs[0].ended_at = instant(99);
  expect_first(jobs, 0, 2000, false);
}

TEST(Verdict, ALostServerIsNamed) {
  const std::vector<Job> jobs = {rank(0, JobState::killed, 100, after_loss),
                                 rank(1, JobState::killed, 100, after_loss),
                                 rank(2, JobState::unknown, std::nullopt)};
  const Verdict verdict = verdict_of(jobs);
  EXPECT_EQ(verdict.first, std::nullopt);
  EXPECT_EQ(verdict.lost_server, "b");
  EXPECT_EQ(cli::aftermath(verdict), "2 others were ended after it, 1 is unknown");
}

TEST(Verdict, AKillOfTheUserIsNoFailure) {
  const std::vector<Job> jobs = {rank(0, JobState::killed, 100, by_user),
                                 rank(1, JobState::killed, 100, by_user)};
  const Verdict verdict = verdict_of(jobs);
  EXPECT_EQ(verdict.first, std::nullopt);
  EXPECT_EQ(cli::verdict_headline(verdict), "killed SIGTERM by ada@laptop");
  EXPECT_EQ(cli::aftermath(verdict), "1 other was killed");
}

TEST(Verdict, WhatFailsBecauseSomebodyEndedAnotherHasNotFailedFirst) {
  std::vector<Job> jobs = {rank(0, JobState::failed, 101), rank(1, JobState::killed, 100, by_user)};
  jobs[0].after_peer = true;
  const Verdict verdict = verdict_of(jobs);
  EXPECT_EQ(verdict.first, std::nullopt);
  EXPECT_EQ(verdict.killed_first, jobs[1]);
  EXPECT_EQ(cli::aftermath(verdict), "1 other failed after it");
  EXPECT_EQ(cli::state_text(jobs), "rank 1 killed SIGTERM by ada@laptop");
  // Not if it was stopped much later, or if the failure has its own cause.
  jobs[1].ended_at = instant(160);
  EXPECT_EQ(verdict_of(jobs).first, jobs[0]);
  jobs[1].ended_at = instant(100);
  jobs[0].after_peer = false;
  EXPECT_EQ(verdict_of(jobs).first, jobs[0]);
  EXPECT_EQ(verdict_of(jobs).killed_first, std::nullopt);
}

TEST(Verdict, WhatDiesWhileALaunchIsBeingStoppedHasNotFailedFirst) {
  std::vector<Job> jobs = {rank(0, JobState::killed, 105, by_user), rank(1, JobState::killed, 105, by_user),
                           rank(2, JobState::failed, 102)};
  jobs[0].failed_at = jobs[1].failed_at = exact_instant(101500);  // when they were told to stop
  jobs[2].result = ExitStatus::signalled(11);
  EXPECT_EQ(verdict_of(jobs).killed_first, jobs[0]);
  EXPECT_EQ(cli::state_text(jobs), "killed SIGTERM by ada@laptop");
  EXPECT_EQ(cli::verdict_headline(verdict_of(jobs)), "killed SIGTERM by ada@laptop");
  jobs[0].failed_at = jobs[1].failed_at = exact_instant(104000);  // it had failed before
  EXPECT_EQ(verdict_of(jobs).first, jobs[2]);
}

TEST(Verdict, TheRankThatEndedItsJobIsNamedWithoutAsking) {
  std::vector<Job> agents = {rank(0, JobState::failed, 101), rank(2, JobState::failed, 101)};
  for (Job& agent : agents) {
    agent.id = JobId::random();
    agent.launch = agents[0].id;
    agent.ranks = 2;
    agent.result = ExitStatus::exited(1);
  }
  agents[0].after_peer = true;
  agents[1].reason = {.kind = JobReason::Kind::after_rank, .number = 3, .result = ExitStatus::signalled(9)};
  const Verdict verdict = verdict_of(agents);
  ASSERT_TRUE(verdict.first);
  EXPECT_EQ(verdict.first->id, agents[1].id);
  EXPECT_EQ(verdict.first->rank, 3);
  EXPECT_EQ(ranks_of(*verdict.first), 1);
  EXPECT_EQ(verdict.first->result, ExitStatus::signalled(9));
  EXPECT_EQ(verdict.aborted, 3);
  EXPECT_EQ(cli::state_text(agents), "rank 3 failed SIGKILL");
  EXPECT_EQ(cli::state_text(std::vector<Job>{agents[1]}), "rank 3 failed SIGKILL");
  EXPECT_EQ(cli::state_text(agents[1]), "failed exit 1 (ended after rank 3)");
  agents[1].reason.text = "n2";  // of Slurm
  EXPECT_EQ(cli::state_text(std::vector<Job>{agents[1]}), "rank 3 on n2 failed SIGKILL");
  EXPECT_THAT(cli::verdict_headline(verdict_of(agents)), testing::StartsWith("rank 3 on n2 failed first ("));
}

}  // namespace
}  // namespace remote::jobs
