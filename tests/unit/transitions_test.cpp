#include "jobs/transitions.hpp"

#include <gtest/gtest.h>

#include "jobs/from_wire.hpp"
#include "jobs/job_json.hpp"
#include "support/instants.hpp"
#include "support/job_reports.hpp"

namespace remote::jobs {
namespace {

using Phase = wire::JobPhase;

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Instant created = instant(1000000);
constexpr Instant now = created + seconds(100);
constexpr seconds wrong_by{3600};  // the server's clock is an hour ahead
constexpr Clocks clocks{now + wrong_by, now, wrong_by};

Job stored_as(JobState state) {
  Job job;
  job.key = 7;
  job.id = JobId::random();
  job.state = state;
  job.created_at = created;
  return job;
}

wire::Moment to_moment(ExactInstant instant) {
  return instant.time_since_epoch();
}

wire::JobReport reply_of(Phase phase) {
  wire::JobReport reply;
  reply.phase = phase;
  return reply;
}

wire::JobReport ended(ExitStatus result, std::optional<int> stop = {}, wire::StoppedBy by = {},
                      bool oom = false) {
  wire::JobReport reply = reply_of(Phase::ended);
  reply.end = {.how = to_process_end(result), .by = "supervisor"};
  if (stop) {
    reply.stop = {.signal = *stop, .by = std::move(by)};
  }
  reply.oom = oom;
  return reply;
}

wire::JobReport on_disk(ExitStatus result, FolderFlaw flaw) {
  wire::JobReport reply = ended(result);
  reply.disk = flaw;
  return reply;
}

TEST(Transitions, ALostJobHasNoTimeOfItsFailure) {
  for (const Phase phase : {Phase::gone, Phase::rebooted, Phase::none}) {
    Job job = stored_as(JobState::running);
    job.failed_at = exact_instant(created.time_since_epoch().count() * 1000);  // the time of its last output
    const Job lost = apply_status(job, reply_of(phase), clocks, Starter::alive);
    EXPECT_EQ(lost.state, JobState::lost);
    EXPECT_FALSE(lost.failed_at);
  }
}

// As after the server's address in configs.yaml was changed or reassigned to another machine.
TEST(Transitions, AMissingFolderOnAnotherMachineLosesNothing) {
  Job job = stored_as(JobState::running);
  job.machine = "12ab";
  wire::JobReport report = reply_of(Phase::none);
  report.machine = "34cd";
  for (const Phase phase : {Phase::none, Phase::unknown}) {
    report.phase = phase;
    report.reason = phase == Phase::unknown ? "cannot see the folder of the project" : "";
    const Job unseen = apply_status(job, report, clocks, Starter::alive);
    EXPECT_EQ(unseen.state, JobState::unknown);
    EXPECT_EQ(unseen.reason.kind, JobReason::Kind::other_machine);
    EXPECT_EQ(merge_news(job, unseen, clocks.local).state, JobState::running)
        << "so it is queried again, and is known when its machine answers";
  }
  report = reply_of(Phase::none);
  for (const char* machine : {"", "12ab"}) {
    report.machine = machine;
    EXPECT_EQ(apply_status(job, report, clocks, Starter::alive).reason.kind, JobReason::Kind::folder_gone);
  }
  report.machine = "34cd";
  job.machine.reset();
  EXPECT_EQ(apply_status(job, report, clocks, Starter::alive).reason.kind, JobReason::Kind::folder_gone);
}

struct Case {
  const char* name;
  JobState before;
  wire::JobReport reply;
  Starter starter;
  JobState after;
  std::optional<ExitStatus> result;
  std::string reason;
};

class ApplyStatus : public ::testing::TestWithParam<Case> {};

TEST_P(ApplyStatus, Gives) {
  const Case& c = GetParam();
  const Job after = apply_status(stored_as(c.before), c.reply, clocks, c.starter);
  EXPECT_EQ(to_string(after.state), to_string(c.after));
  EXPECT_EQ(after.result, c.result);
  EXPECT_EQ(reason_text(after.reason), c.reason);
}

wire::JobReport left_behind() {
  wire::JobReport reply = reply_of(Phase::running);
  reply.left = true;
  reply.pid = 4121;
  return reply;
}

wire::JobReport because(Phase phase, std::string reason) {
  wire::JobReport reply = reply_of(phase);
  reply.reason = std::move(reason);
  return reply;
}

wire::JobReport unsupervised() {
  wire::JobReport reply = reply_of(Phase::running);
  reply.supervised = false;
  return reply;
}

const auto exit0 = ExitStatus::exited(0);
const auto exit1 = ExitStatus::exited(1);
const auto exit137 = ExitStatus::exited(137);
const auto term = ExitStatus::signalled(15);
const auto kill9 = ExitStatus::signalled(9);
const auto segv = ExitStatus::signalled(11);
constexpr auto alive = Starter::alive;
constexpr auto dead = Starter::dead;

wire::JobReport failed_because(std::string backend, std::string reason) {
  wire::JobReport reply = ended(ExitStatus::exited(127));
  reply.backend = std::move(backend);
  reply.reason = std::move(reason);
  return reply;
}

INSTANTIATE_TEST_SUITE_P(
    Table, ApplyStatus,
    ::testing::Values(
        Case{"failed_on_a_full_disk", JobState::running, failed_because("local", "it did not start"), alive,
             JobState::failed, ExitStatus::exited(127), "it did not start"},
        Case{"failed_by_its_scheduler", JobState::running, failed_because("slurm", "TIMEOUT"), alive,
             JobState::failed, ExitStatus::exited(127), "Slurm: TIMEOUT"},
        Case{"queued",
             JobState::starting,
             because(Phase::queued, "a free node"),
             alive,
             JobState::queued,
             {},
             "waiting: a free node"},
        Case{"queued_dead", JobState::starting, because(Phase::queued, ""), dead, JobState::queued, {}, ""},
        Case{"requeued",
             JobState::running,
             because(Phase::queued, "it was preempted"),
             alive,
             JobState::queued,
             {},
             "waiting: it was preempted"},
        Case{"queued_runs", JobState::queued, reply_of(Phase::running), alive, JobState::running, {}, ""},
        Case{"queued_ended", JobState::queued, ended(ExitStatus::exited(0)), alive, JobState::succeeded,
             ExitStatus::exited(0), ""},
        Case{"queued_gone",
             JobState::queued,
             reply_of(Phase::none),
             alive,
             JobState::lost,
             {},
             "its folder is gone from the server"},
        Case{"cannot_tell",
             JobState::running,
             because(Phase::unknown, "it needs a newer remote"),
             alive,
             JobState::unknown,
             {},
             "it needs a newer remote"},
        Case{"none_alive", JobState::starting, reply_of(Phase::none), alive, JobState::starting, {}, ""},
        Case{"none_dead",
             JobState::starting,
             reply_of(Phase::none),
             dead,
             JobState::lost,
             {},
             "never started"},
        Case{"none_was_running",
             JobState::running,
             reply_of(Phase::none),
             alive,
             JobState::lost,
             {},
             "its folder is gone from the server"},
        Case{"starting", JobState::starting, reply_of(Phase::starting), alive, JobState::starting, {}, ""},
        Case{
            "starting_dead", JobState::starting, reply_of(Phase::starting), dead, JobState::starting, {}, ""},
        Case{"never_back_to_starting",
             JobState::running,
             reply_of(Phase::starting),
             alive,
             JobState::running,
             {},
             ""},
        Case{"running", JobState::starting, reply_of(Phase::running), dead, JobState::running, {}, ""},
        Case{"unsupervised",
             JobState::running,
             unsupervised(),
             alive,
             JobState::running,
             {},
             "its supervisor is gone"},
        Case{"left_behind",
             JobState::running,
             left_behind(),
             alive,
             JobState::running,
             {},
             "asked to end, but its process 4121 still runs"},
        Case{"exit0", JobState::running, ended(exit0), alive, JobState::succeeded, exit0, ""},
        Case{"exit0_oom", JobState::running, ended(exit0, {}, {}, true), alive, JobState::succeeded, exit0,
             ""},
        Case{"exit1", JobState::running, ended(exit1), alive, JobState::failed, exit1, ""},
        Case{"signal", JobState::running, ended(segv), alive, JobState::failed, segv, ""},
        Case{"kill_without_oom", JobState::running, ended(kill9), alive, JobState::failed, kill9, ""},
        Case{"oom", JobState::running, ended(kill9, {}, {}, true), alive, JobState::failed, kill9,
             "out of memory"},
        Case{"oom_of_a_child_of_a_shell", JobState::running, ended(exit137, {}, {}, true), alive,
             JobState::failed, exit137, "out of memory"},
        Case{"oom_of_another", JobState::running, ended(exit1, {}, {}, true), alive, JobState::failed, exit1,
             "the server ran out of memory meanwhile"},
        Case{"full_disk", JobState::running, on_disk(exit1, FolderFlaw::full), alive, JobState::failed, exit1,
             "the disk there was full"},
        Case{"quota", JobState::running, on_disk(exit1, FolderFlaw::quota), alive, JobState::failed, exit1,
             "the disk quota there was used up"},
        Case{"stopped", JobState::running, ended(term, 15, by_ada), alive, JobState::killed, term,
             "SIGTERM by ada@laptop"},
        Case{"stopped_by_nobody_known", JobState::running, ended(term, 15), alive, JobState::killed, term,
             "SIGTERM"},
        Case{"stopped_then_killed", JobState::running, ended(kill9, 15, by_ada), alive, JobState::killed,
             kill9, "SIGTERM by ada@laptop, then SIGKILL"},
        Case{"stopped_with_code", JobState::running, ended(exit1, 15, by_ada), alive, JobState::killed, term,
             "SIGTERM by ada@laptop, exit 1"},
        Case{"stopped_with_zero", JobState::running, ended(exit0, 15, by_ada), alive, JobState::killed, term,
             "SIGTERM by ada@laptop, exit 0"},
        Case{"ended_after_rank", JobState::running,
             ended(term, 15, {.cause = wire::StopCause::rank, .number = 2}), alive, JobState::killed, term,
             "ended after rank 2"},
        Case{"ended_after_loss", JobState::running,
             ended(term, 15, {.cause = wire::StopCause::lost, .text = "node-2"}), alive, JobState::killed,
             term, "ended after the loss of node-2"},
        Case{"ended_after_hang", JobState::running,
             ended(term, 15, {.cause = wire::StopCause::hang, .number = 90}), alive, JobState::killed, term,
             "hung: ended after 1m 30s without progress"},
        Case{"ended_after_what_is_no_rank", JobState::running,
             ended(term, 15, wire::StoppedBy{.text = "rank x"}), alive, JobState::killed, term,
             "SIGTERM by rank x"},
        Case{"launch_given_up", JobState::running, ended(kill9, 15, {.cause = wire::StopCause::launch}),
             alive, JobState::killed, kill9, "SIGTERM by launch, then SIGKILL"},
        Case{"ended_without_result",
             JobState::running,
             reply_of(Phase::ended),
             alive,
             JobState::lost,
             {},
             "ended without a result"},
        Case{"gone",
             JobState::running,
             reply_of(Phase::gone),
             alive,
             JobState::lost,
             {},
             "supervisor and processes are gone"},
        Case{"rebooted",
             JobState::starting,
             reply_of(Phase::rebooted),
             alive,
             JobState::lost,
             {},
             "server restarted"},
        // an explicit answer ends the state lost; an uninformative one does not
        Case{"lost_ended", JobState::lost, ended(exit0), alive, JobState::succeeded, exit0, ""},
        Case{"lost_running", JobState::lost, reply_of(Phase::running), alive, JobState::running, {}, ""},
        Case{"lost_none", JobState::lost, reply_of(Phase::none), dead, JobState::lost, {}, ""},
        Case{"lost_gone", JobState::lost, reply_of(Phase::gone), alive, JobState::lost, {}, ""},
        Case{"lost_starting", JobState::lost, reply_of(Phase::starting), alive, JobState::lost, {}, ""},
        // no other final state changes
        Case{"succeeded_stays", JobState::succeeded, ended(exit1), alive, JobState::succeeded, {}, ""},
        Case{"failed_stays", JobState::failed, reply_of(Phase::running), alive, JobState::failed, {}, ""},
        Case{"killed_stays", JobState::killed, reply_of(Phase::rebooted), alive, JobState::killed, {}, ""}),
    [](const auto& test) { return test.param.name; });

TEST(Transitions, ShiftsTheServersTimesToTheLaptopsClock) {
  wire::JobReport reply = ended(exit0);
  reply.pid = 42;
  reply.started_at = to_moment(created + seconds(10) + wrong_by);
  reply.end->at = to_moment(created + seconds(60) + wrong_by);
  const Job job = apply_status(stored_as(JobState::running), reply, clocks, alive);
  EXPECT_EQ(job.started_at, created + seconds(10));
  EXPECT_EQ(job.ended_at, created + seconds(60));
  EXPECT_EQ(job.checked_at, now);
  EXPECT_EQ(job.pid, 42);
}

TEST(Transitions, TimesStayWithinTheJobsLife) {
  wire::JobReport reply = ended(exit0);
  reply.started_at = to_moment(created - seconds(1) + wrong_by);  // rounding of two clocks
  reply.end->at = to_moment(created + seconds(5000) + wrong_by);  // the server's clock was set back meanwhile
  const Job job = apply_status(stored_as(JobState::running), reply, clocks, alive);
  EXPECT_EQ(job.started_at, created);
  EXPECT_EQ(job.ended_at, now);
}

TEST(Transitions, AStartThatWasStoredDoesNotFlicker) {
  Job job = stored_as(JobState::running);
  job.started_at = created + seconds(10);
  wire::JobReport reply = reply_of(Phase::running);
  reply.started_at = to_moment(created + seconds(11) + wrong_by);
  EXPECT_EQ(apply_status(job, reply, clocks, alive).started_at, created + seconds(10));
  reply.started_at = to_moment(created + seconds(5) + wrong_by);
  EXPECT_EQ(apply_status(job, reply, clocks, alive).started_at, created + seconds(5));
}

// Two practice servers share a machine, and each finds the processes of the other's points.
TEST(Transitions, AWaitingPointIsNotTakenForAProcessOfAnotherServersPoint) {
  Job point = stored_as(JobState::starting);
  point.point = SweepPoint{.number = 2, .values = {{"n", "3"}}, .waiting = true};
  wire::JobReport report = reply_of(Phase::running);
  report.pid = 4711;
  report.reason = "its folder is not there or cannot be seen";
  EXPECT_TRUE(apply_status(point, report, clocks, Starter::dead).point->waiting);
  report.started_at = to_moment(ExactInstant(now + wrong_by));
  EXPECT_FALSE(apply_status(point, report, clocks, Starter::dead).point->waiting);
}

TEST(Transitions, AServersClockThatWasSetBackMakesNoJobYounger) {
  Job job = stored_as(JobState::running);
  job.started_at = created + seconds(10);
  wire::JobReport reply = reply_of(Phase::running);
  reply.started_at = to_moment(created + seconds(10) + wrong_by + seconds(7200));
  EXPECT_EQ(apply_status(job, reply, clocks, alive).started_at, created + seconds(10));
  reply.started_at = to_moment(created + seconds(20) + wrong_by);
  EXPECT_EQ(apply_status(job, reply, clocks, alive).started_at, created + seconds(10));
  job.backend = "slurm";  // Slurm, which has restarted it
  EXPECT_EQ(apply_status(job, reply, clocks, alive).started_at, created + seconds(20));
}

// A job that wrote its last words at second 50.250 and whose result was written at 52.500.
wire::JobReport failed_at_50(ExitStatus result) {
  wire::JobReport reply = ended(result);
  reply.wrote_at = to_moment(created + wrong_by + milliseconds(50250));
  reply.end->at = to_moment(created + wrong_by + milliseconds(52500));
  reply.err_size = 100;
  return reply;
}

std::optional<std::int64_t> moment_of(const wire::JobReport& reply, const Clocks& at = clocks) {
  const auto moment = apply_status(stored_as(JobState::running), reply, at, alive).failed_at;
  return moment ? std::optional((*moment - created).count()) : std::nullopt;
}

TEST(Transitions, AFailureBeginsWithItsLastWords) {
  EXPECT_EQ(moment_of(failed_at_50(exit1)), 50250);
  wire::JobReport reply = failed_at_50(exit1);
  reply.wrote_at = *reply.end->at - milliseconds(10001);  // written long before
  EXPECT_EQ(moment_of(reply), 52500);
  reply.wrote_at = *reply.end->at + milliseconds(1);  // written by a leftover process
  EXPECT_EQ(moment_of(reply), 52500);
  reply = failed_at_50(exit1);
  reply.err_size = 0;  // no output: that is when the file was created
  EXPECT_EQ(moment_of(reply), 52500);
  reply.wrote_at.reset();
  EXPECT_EQ(moment_of(reply), 52500);
}

TEST(Transitions, ARankThatWaitedInADebuggerFailedWhenItsExceptionWasRaised) {
  wire::JobReport reply = failed_at_50(exit1);
  reply.wrote_at = *reply.end->at - milliseconds(40000);
  reply.raised_at = *reply.end->at - milliseconds(40050);
  EXPECT_EQ(moment_of(reply), 12450);
  reply.raised_at = *reply.end->at + milliseconds(1);
  EXPECT_EQ(moment_of(reply), 52500);
}

TEST(Transitions, ASignalStrikesAtTheEnd) {
  EXPECT_EQ(moment_of(failed_at_50(segv)), 52500);
  EXPECT_EQ(moment_of(failed_at_50(exit137)), 52500);  // in a child of a shell
  wire::JobReport killed = failed_at_50(term);
  killed.stop = {.signal = 15, .by = {}, .at = to_moment(created + wrong_by + milliseconds(51250))};
  EXPECT_EQ(moment_of(killed), 51250) << "when it was told to";
  killed.stop->at += seconds(2);
  EXPECT_EQ(moment_of(killed), 52500);
}

TEST(Transitions, WhoTellsOfAPeerThatIsGoneDoesSoAtItsEnd) {
  const auto after_peer = [](wire::JobReport reply) {
    reply.after_peer = true;
    return apply_status(stored_as(JobState::running), reply, clocks, alive).after_peer;
  };
  EXPECT_TRUE(after_peer(failed_at_50(exit1)));
  EXPECT_TRUE(after_peer(failed_at_50(segv)));  // while exiting
  EXPECT_FALSE(after_peer(failed_at_50(exit137)));
  EXPECT_FALSE(after_peer(failed_at_50(exit0)));
  wire::JobReport reply = failed_at_50(exit1);
  reply.wrote_at = *reply.end->at - milliseconds(10001);  // written long before
  EXPECT_FALSE(after_peer(reply));
}

TEST(Transitions, AFailuresMomentIsUnknownWithoutPartsOfASecond) {
  EXPECT_FALSE(moment_of(failed_at_50(exit0)));
  wire::JobReport reply = failed_at_50(exit1);
  reply.end->at.reset();
  EXPECT_FALSE(moment_of(reply));
  EXPECT_FALSE(moment_of(failed_at_50(exit1), Clocks{now + wrong_by, now, {}}));
  reply = failed_at_50(exit1);
  reply.end->at = to_moment(created + wrong_by + seconds(52));  // as busybox writes it
  EXPECT_FALSE(moment_of(reply));
  reply = failed_at_50(exit1);
  reply.end->by = "-";  // an older build wrote whole seconds
  EXPECT_FALSE(moment_of(reply));
  // a job that turns out to be running has not failed
  Job job = stored_as(JobState::lost);
  job.failed_at = exact_instant(1);
  EXPECT_FALSE(apply_status(job, reply_of(Phase::running), clocks, alive).failed_at);
}

TEST(Transitions, ClocksThatMayAgreeDo) {
  const auto measured = [](int asked, int answered) {
    return clocks_of({exact_instant(1000100), exact_instant(answered)}, exact_instant(asked),
                     exact_instant(answered));
  };
  EXPECT_EQ(measured(999900, 1000300).ahead, milliseconds(0));
  EXPECT_EQ(measured(1000200, 1000300).ahead, milliseconds(-100));  // behind, by at least this much
  EXPECT_EQ(measured(999000, 999800).ahead, milliseconds(300));
  EXPECT_EQ(measured(999000, 999800).local, instant(999));
  EXPECT_EQ(measured(999000, 999800).server, instant(1000));
}

// With many jobs or a busy server, the clock comes first in the answer.
TEST(Transitions, AnAnswerThatTakesLongMovesNoTime) {
  const auto measured = [](int read) {
    return clocks_of({exact_instant(read), exact_instant(1000200)}, exact_instant(1000000),
                     exact_instant(1025200));
  };
  const Clocks late = measured(1000100);
  EXPECT_EQ(late.server, instant(1025));
  EXPECT_EQ(late.local, instant(1025));
  EXPECT_EQ(late.ahead, milliseconds(0));
  EXPECT_EQ(measured(1000300).ahead, milliseconds(100));
}

// As when jobs are stopped, which takes their grace period: the clock was read before that.
TEST(Transitions, AnAnswerThatComesAllAtOnceAndLateMovesNoTime) {
  const Clocks late = clocks_of({exact_instant(1000100), exact_instant(1025200)}, exact_instant(1000000),
                                exact_instant(1025200));
  EXPECT_EQ(late.server, late.local);
  EXPECT_EQ(late.ahead, milliseconds(0));
}

TEST(Transitions, ALaptopsClockThatWasSetBackMeanwhileCounts) {
  const Clocks clocks_now = clocks_of({exact_instant(1000100), exact_instant(1000200)},
                                      exact_instant(1000000), exact_instant(940200));
  EXPECT_EQ(clocks_now.local, instant(940));
  EXPECT_EQ(clocks_now.server, instant(1000));
}

TEST(Transitions, SilenceIsUnknownWithTheAgeOfTheNews) {
  Job job = stored_as(JobState::running);
  EXPECT_EQ(reason_text(as_unanswered(job, now).reason), "no answer, and no report yet");
  job.checked_at = now - seconds(125);
  const Job shown = as_unanswered(job, now);
  EXPECT_EQ(shown.state, JobState::unknown);
  EXPECT_EQ(reason_text(shown.reason), "no answer; last report 2m 05s ago: running");
  EXPECT_EQ(shown.checked_at, job.checked_at);
  for (const JobState state : {JobState::succeeded, JobState::failed, JobState::killed, JobState::lost}) {
    EXPECT_EQ(as_unanswered(stored_as(state), now).state, state);
  }
}

struct Merge {
  JobState stored;
  std::optional<Instant> stored_at;
  JobState news;
  std::optional<Instant> news_at;
  JobState after;
};

TEST(Transitions, MergesWhatTwoProcessesHeard) {
  const std::vector<Merge> table{
      {JobState::starting, {}, JobState::running, instant(5), JobState::running},
      {JobState::starting, {}, JobState::lost, {}, JobState::lost},              // from the starter itself
      {JobState::starting, instant(5), JobState::lost, {}, JobState::starting},  // but not against a server
      {JobState::running, instant(5), JobState::running, instant(6), JobState::running},
      {JobState::running, instant(5), JobState::starting, instant(6), JobState::running},
      {JobState::running, instant(5), JobState::failed, instant(4), JobState::running},  // older report
      {JobState::running, instant(5), JobState::failed, instant(5), JobState::failed},
      {JobState::running, instant(5), JobState::unknown, instant(9), JobState::running},
      {JobState::failed, instant(5), JobState::running, instant(9), JobState::failed},
      {JobState::killed, instant(5), JobState::succeeded, instant(9), JobState::killed},
      {JobState::succeeded, instant(5), JobState::lost, instant(9), JobState::succeeded},
      {JobState::lost, instant(5), JobState::running, instant(6), JobState::running},
      {JobState::lost, instant(5), JobState::succeeded, instant(6), JobState::succeeded},
      {JobState::lost, instant(5), JobState::running, instant(5), JobState::lost},  // not later
      {JobState::lost, {}, JobState::running, {}, JobState::lost},                  // not from a server
      {JobState::lost, {}, JobState::running, instant(1), JobState::running},
      {JobState::lost, instant(5), JobState::starting, instant(6), JobState::lost},
  };
  for (std::size_t i = 0; i < table.size(); ++i) {
    Job stored = stored_as(table[i].stored);
    stored.checked_at = table[i].stored_at;
    Job news = stored_as(table[i].news);
    news.checked_at = table[i].news_at;
    news.key = 99;
    news.created_at = instant(1);
    const Job merged = merge_news(stored, news, instant(1000));
    EXPECT_EQ(to_string(merged.state), to_string(table[i].after)) << "row " << i;
    EXPECT_EQ(merged.key, stored.key);
    EXPECT_EQ(merged.created_at, stored.created_at);
    EXPECT_GE(merged.checked_at.value_or(Instant()), stored.checked_at.value_or(Instant())) << "row " << i;
  }
}

TEST(Transitions, AFailuresMomentComesWithItsState) {
  Job stored = stored_as(JobState::running);
  stored.checked_at = instant(5);
  Job news = stored_as(JobState::failed);
  news.checked_at = instant(6);
  news.failed_at = exact_instant(5500);
  const Job failed = merge_news(stored, news, instant(1000));
  EXPECT_EQ(failed.failed_at, exact_instant(5500));
  news.checked_at = instant(7);
  news.failed_at = exact_instant(5600);
  EXPECT_EQ(merge_news(failed, news, instant(1000)).failed_at, exact_instant(5500));
}

TEST(Transitions, AClockThatWasSetBackHoldsNoNewsUp) {
  Job stored = stored_as(JobState::running);
  stored.checked_at = instant(4600);
  Job news = stored_as(JobState::succeeded);
  news.checked_at = instant(1000);
  EXPECT_EQ(merge_news(stored, news, instant(1000)).state, JobState::succeeded);
  stored.state = JobState::lost;
  news.state = JobState::running;
  EXPECT_EQ(merge_news(stored, news, instant(1000)).state, JobState::running);
  // Local changes have no date, and are older than any report of a server.
  stored.state = JobState::running;
  news.state = JobState::failed;
  news.checked_at.reset();
  EXPECT_EQ(merge_news(stored, news, instant(1000)).state, JobState::running);
}

TEST(Transitions, OfAnEndedJobOnlyWhatItHasLeftBehindIsNews) {
  wire::JobReport reply = ended(ExitStatus::exited(0));
  reply.leftovers = 2;
  const Job job = apply_status(stored_as(JobState::running), reply, clocks, Starter::alive);
  EXPECT_EQ(job.state, JobState::succeeded);
  EXPECT_EQ(job.leftovers, 2);
  EXPECT_FALSE(is_over(job));
  EXPECT_EQ(apply_status(job, reply_of(Phase::unknown), clocks, Starter::alive).leftovers, 2);
  reply.end->how = wire::ProcessEnd::exited(3);
  reply.leftovers.reset();
  Job later = apply_status(job, reply, {clocks.server + seconds(5), clocks.local + seconds(5), clocks.ahead},
                           Starter::alive);
  EXPECT_EQ(later.state, JobState::succeeded);
  EXPECT_EQ(later.result, ExitStatus::exited(0));
  EXPECT_TRUE(is_over(later));
  EXPECT_TRUE(is_over(merge_news(job, later, now + seconds(6))));
  // an outdated report does not come back
  EXPECT_TRUE(is_over(merge_news(later, job, now + seconds(6))));
}

TEST(Transitions, WhatCouldNotBeLookedForIsAskedAboutAgain) {
  wire::JobReport reply = ended(ExitStatus::exited(0));
  reply.unseen = true;
  const Job job = apply_status(stored_as(JobState::running), reply, clocks, Starter::alive);
  EXPECT_EQ(job.state, JobState::succeeded);
  EXPECT_FALSE(is_over(job));
  EXPECT_FALSE(is_over(apply_status(job, reply, clocks, Starter::alive)));
  reply.unseen = false;
  EXPECT_TRUE(is_over(apply_status(job, reply, clocks, Starter::alive)));
}

}  // namespace
}  // namespace remote::jobs
