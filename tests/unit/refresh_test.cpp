#include "jobs/refresh.hpp"

#include <gtest/gtest.h>

#include "jobs/reason_text.hpp"

namespace remote::jobs {
namespace {

using Phase = StatusReply::Phase;

constexpr std::int64_t created = 1000000;
constexpr std::int64_t now = created + 100;
constexpr std::int64_t wrong_by = 3600;  // the server's clock is an hour ahead
constexpr Clocks clocks{now + wrong_by, now, wrong_by * 1000};

Job stored_as(State state) {
  Job job;
  job.key = 7;
  job.id = JobId::random();
  job.state = state;
  job.created_at = created;
  return job;
}

StatusReply reply_of(Phase phase) {
  StatusReply reply;
  reply.phase = phase;
  return reply;
}

StatusReply ended(ExitStatus result, std::optional<int> stop = {}, std::string by = "", bool oom = false) {
  StatusReply reply = reply_of(Phase::ended);
  reply.result = result;
  reply.stop_signal = stop;
  reply.stop_by = std::move(by);
  reply.oom = oom;
  return reply;
}

struct Case {
  const char* name;
  State before;
  StatusReply reply;
  Starter starter;
  State after;
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

StatusReply left_behind() {
  StatusReply reply = reply_of(Phase::running);
  reply.left = true;
  reply.pid = 4121;
  return reply;
}

StatusReply because(Phase phase, std::string reason) {
  StatusReply reply = reply_of(phase);
  reply.reason = std::move(reason);
  return reply;
}

StatusReply unsupervised() {
  StatusReply reply = reply_of(Phase::running);
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

INSTANTIATE_TEST_SUITE_P(
    Table, ApplyStatus,
    ::testing::Values(
        Case{"queued",
             State::starting,
             because(Phase::queued, "a free node"),
             alive,
             State::queued,
             {},
             "waiting: a free node"},
        Case{"queued_dead", State::starting, because(Phase::queued, ""), dead, State::queued, {}, ""},
        Case{"requeued",
             State::running,
             because(Phase::queued, "it was preempted"),
             alive,
             State::queued,
             {},
             "waiting: it was preempted"},
        Case{"queued_runs", State::queued, reply_of(Phase::running), alive, State::running, {}, ""},
        Case{"queued_ended", State::queued, ended(ExitStatus::exited(0)), alive, State::succeeded,
             ExitStatus::exited(0), ""},
        Case{"queued_gone",
             State::queued,
             reply_of(Phase::none),
             alive,
             State::lost,
             {},
             "its folder is gone from the server"},
        Case{"cannot_tell",
             State::running,
             because(Phase::unknown, "it needs a newer remote"),
             alive,
             State::unknown,
             {},
             "it needs a newer remote"},
        Case{"none_alive", State::starting, reply_of(Phase::none), alive, State::starting, {}, ""},
        Case{"none_dead", State::starting, reply_of(Phase::none), dead, State::lost, {}, "never started"},
        Case{"none_was_running",
             State::running,
             reply_of(Phase::none),
             alive,
             State::lost,
             {},
             "its folder is gone from the server"},
        Case{"starting", State::starting, reply_of(Phase::starting), alive, State::starting, {}, ""},
        Case{"starting_dead", State::starting, reply_of(Phase::starting), dead, State::starting, {}, ""},
        Case{"never_back_to_starting",
             State::running,
             reply_of(Phase::starting),
             alive,
             State::running,
             {},
             ""},
        Case{"running", State::starting, reply_of(Phase::running), dead, State::running, {}, ""},
        Case{"unsupervised",
             State::running,
             unsupervised(),
             alive,
             State::running,
             {},
             "its supervisor is gone"},
        Case{"left_behind",
             State::running,
             left_behind(),
             alive,
             State::running,
             {},
             "told to end, but its process 4121 is not gone"},
        Case{"exit0", State::running, ended(exit0), alive, State::succeeded, exit0, ""},
        Case{"exit0_oom", State::running, ended(exit0, {}, "", true), alive, State::succeeded, exit0, ""},
        Case{"exit1", State::running, ended(exit1), alive, State::failed, exit1, ""},
        Case{"signal", State::running, ended(segv), alive, State::failed, segv, ""},
        Case{"kill_without_oom", State::running, ended(kill9), alive, State::failed, kill9, ""},
        Case{"oom", State::running, ended(kill9, {}, "", true), alive, State::failed, kill9, "out of memory"},
        Case{"oom_of_a_child_of_a_shell", State::running, ended(exit137, {}, "", true), alive, State::failed,
             exit137, "out of memory"},
        Case{"oom_of_another", State::running, ended(exit1, {}, "", true), alive, State::failed, exit1,
             "the server ran out of memory meanwhile"},
        Case{"stopped", State::running, ended(term, 15, "ada@laptop"), alive, State::killed, term,
             "SIGTERM by ada@laptop"},
        Case{"stopped_by_nobody_known", State::running, ended(term, 15), alive, State::killed, term,
             "SIGTERM"},
        Case{"stopped_then_killed", State::running, ended(kill9, 15, "ada@laptop"), alive, State::killed,
             kill9, "SIGTERM by ada@laptop, then SIGKILL"},
        Case{"stopped_with_code", State::running, ended(exit1, 15, "ada@laptop"), alive, State::killed, term,
             "SIGTERM by ada@laptop, exit 1"},
        Case{"stopped_with_zero", State::running, ended(exit0, 15, "ada@laptop"), alive, State::killed, term,
             "SIGTERM by ada@laptop, exit 0"},
        Case{"ended_after_rank", State::running, ended(term, 15, "rank 2"), alive, State::killed, term,
             "ended after rank 2"},
        Case{"ended_after_loss", State::running, ended(term, 15, "loss of node-2"), alive, State::killed,
             term, "ended after the loss of node-2"},
        Case{"ended_after_what_is_no_rank", State::running, ended(term, 15, "rank x"), alive, State::killed,
             term, "SIGTERM by rank x"},
        Case{"launch_given_up", State::running, ended(kill9, 15, "launch"), alive, State::killed, kill9,
             "SIGTERM by launch, then SIGKILL"},
        Case{"ended_without_result",
             State::running,
             reply_of(Phase::ended),
             alive,
             State::lost,
             {},
             "ended without a result"},
        Case{"gone",
             State::running,
             reply_of(Phase::gone),
             alive,
             State::lost,
             {},
             "supervisor and processes are gone"},
        Case{"rebooted",
             State::starting,
             reply_of(Phase::rebooted),
             alive,
             State::lost,
             {},
             "server restarted"},
        // an explicit answer leads out of lost; one that says no more than before does not
        Case{"lost_ended", State::lost, ended(exit0), alive, State::succeeded, exit0, ""},
        Case{"lost_running", State::lost, reply_of(Phase::running), alive, State::running, {}, ""},
        Case{"lost_none", State::lost, reply_of(Phase::none), dead, State::lost, {}, ""},
        Case{"lost_gone", State::lost, reply_of(Phase::gone), alive, State::lost, {}, ""},
        Case{"lost_starting", State::lost, reply_of(Phase::starting), alive, State::lost, {}, ""},
        // no other final state changes
        Case{"succeeded_stays", State::succeeded, ended(exit1), alive, State::succeeded, {}, ""},
        Case{"failed_stays", State::failed, reply_of(Phase::running), alive, State::failed, {}, ""},
        Case{"killed_stays", State::killed, reply_of(Phase::rebooted), alive, State::killed, {}, ""}),
    [](const auto& test) { return test.param.name; });

TEST(Refresh, ShiftsTheServersTimesToTheLaptopsClock) {
  StatusReply reply = ended(exit0);
  reply.pid = 42;
  reply.started_at = created + 10 + wrong_by;
  reply.ended_at = created + 60 + wrong_by;
  const Job job = apply_status(stored_as(State::running), reply, clocks, alive);
  EXPECT_EQ(job.started_at, created + 10);
  EXPECT_EQ(job.ended_at, created + 60);
  EXPECT_EQ(job.checked_at, now);
  EXPECT_EQ(job.pid, 42);
}

TEST(Refresh, TimesStayWithinTheJobsLife) {
  StatusReply reply = ended(exit0);
  reply.started_at = created - 1 + wrong_by;   // rounding of two clocks
  reply.ended_at = created + 5000 + wrong_by;  // the server's clock was set back meanwhile
  const Job job = apply_status(stored_as(State::running), reply, clocks, alive);
  EXPECT_EQ(job.started_at, created);
  EXPECT_EQ(job.ended_at, now);
}

TEST(Refresh, AStartThatWasStoredDoesNotFlicker) {
  Job job = stored_as(State::running);
  job.started_at = created + 10;
  StatusReply reply = reply_of(Phase::running);
  reply.started_at = created + 11 + wrong_by;
  EXPECT_EQ(apply_status(job, reply, clocks, alive).started_at, created + 10);
  reply.started_at = created + 20 + wrong_by;
  EXPECT_EQ(apply_status(job, reply, clocks, alive).started_at, created + 20);
}

// A job that wrote its last words at second 50.250 and whose result was written at 52.500.
StatusReply failed_at_50(ExitStatus result) {
  StatusReply reply = ended(result);
  reply.ended_at = created + 52 + wrong_by;
  reply.wrote_ms = (created + 50 + wrong_by) * 1000 + 250;
  reply.done_ms = (created + 52 + wrong_by) * 1000 + 500;
  reply.err_size = 100;
  return reply;
}

std::optional<std::int64_t> moment_of(const StatusReply& reply, const Clocks& at = clocks) {
  const auto moment = apply_status(stored_as(State::running), reply, at, alive).failed_ms;
  return moment ? std::optional(*moment - created * 1000) : std::nullopt;
}

TEST(Refresh, AFailureBeginsWithItsLastWords) {
  EXPECT_EQ(moment_of(failed_at_50(exit1)), 50250);
  StatusReply reply = failed_at_50(exit1);
  reply.wrote_ms = *reply.done_ms - 10001;  // said long before
  EXPECT_EQ(moment_of(reply), 52500);
  reply.wrote_ms = *reply.done_ms + 1;  // by what it left behind
  EXPECT_EQ(moment_of(reply), 52500);
  reply = failed_at_50(exit1);
  reply.err_size = 0;  // it said nothing: that is when the file was made
  EXPECT_EQ(moment_of(reply), 52500);
  reply.wrote_ms.reset();
  EXPECT_EQ(moment_of(reply), 52500);
}

TEST(Refresh, ASignalStrikesAtTheEnd) {
  EXPECT_EQ(moment_of(failed_at_50(segv)), 52500);
  EXPECT_EQ(moment_of(failed_at_50(exit137)), 52500);  // in a child of a shell
  StatusReply killed = failed_at_50(term);
  killed.stop_signal = 15;
  EXPECT_EQ(moment_of(killed), 52500);
}

TEST(Refresh, AFailuresMomentIsUnknownWithoutPartsOfASecond) {
  EXPECT_FALSE(moment_of(failed_at_50(exit0)));
  StatusReply reply = failed_at_50(exit1);
  reply.done_ms.reset();
  EXPECT_FALSE(moment_of(reply));
  EXPECT_FALSE(moment_of(failed_at_50(exit1), Clocks{now + wrong_by, now, {}}));
  reply = failed_at_50(exit1);
  reply.done_ms = *reply.done_ms - 3000;  // the files are kept by another clock
  EXPECT_FALSE(moment_of(reply));
  // a job that runs after all has not failed
  Job job = stored_as(State::lost);
  job.failed_ms = 1;
  EXPECT_FALSE(apply_status(job, reply_of(Phase::running), clocks, alive).failed_ms);
}

TEST(Refresh, ClocksThatMayAgreeDo) {
  StatusAnswer answer;
  answer.server_now = 1000;
  EXPECT_FALSE(clocks_of(answer, 999900, 1000300).ahead_ms);
  answer.server_now_ms = 1000100;
  EXPECT_EQ(clocks_of(answer, 999900, 1000300).ahead_ms, 0);
  EXPECT_EQ(clocks_of(answer, 1000200, 1000300).ahead_ms, -100);  // behind, by as much at least
  EXPECT_EQ(clocks_of(answer, 999000, 999800).ahead_ms, 300);
  EXPECT_EQ(clocks_of(answer, 999000, 999800).local, 999);
  EXPECT_EQ(clocks_of(answer, 999000, 999800).server, 1000);
}

TEST(Refresh, SilenceIsUnknownWithTheAgeOfTheNews) {
  Job job = stored_as(State::running);
  EXPECT_EQ(reason_text(as_unanswered(job, now).reason), "no answer, and no news yet");
  job.checked_at = now - 125;
  const Job shown = as_unanswered(job, now);
  EXPECT_EQ(shown.state, State::unknown);
  EXPECT_EQ(reason_text(shown.reason), "no answer; last news 2m 05s ago: running");
  EXPECT_EQ(shown.checked_at, job.checked_at);
  for (const State state : {State::succeeded, State::failed, State::killed, State::lost}) {
    EXPECT_EQ(as_unanswered(stored_as(state), now).state, state);
  }
}

struct Merge {
  State stored;
  std::optional<std::int64_t> stored_at;
  State news;
  std::optional<std::int64_t> news_at;
  State after;
};

TEST(Refresh, MergesWhatTwoProcessesHeard) {
  const std::vector<Merge> table{
      {State::starting, {}, State::running, 5, State::running},
      {State::starting, {}, State::lost, {}, State::lost},     // told by the starter itself
      {State::starting, 5, State::lost, {}, State::starting},  // but not against a server
      {State::running, 5, State::running, 6, State::running},
      {State::running, 5, State::starting, 6, State::running},
      {State::running, 5, State::failed, 4, State::running},  // older news
      {State::running, 5, State::failed, 5, State::failed},
      {State::running, 5, State::unknown, 9, State::running},
      {State::failed, 5, State::running, 9, State::failed},
      {State::killed, 5, State::succeeded, 9, State::killed},
      {State::succeeded, 5, State::lost, 9, State::succeeded},
      {State::lost, 5, State::running, 6, State::running},
      {State::lost, 5, State::succeeded, 6, State::succeeded},
      {State::lost, 5, State::running, 5, State::lost},    // not later
      {State::lost, {}, State::running, {}, State::lost},  // not from a server
      {State::lost, {}, State::running, 1, State::running},
      {State::lost, 5, State::starting, 6, State::lost},
  };
  for (std::size_t i = 0; i < table.size(); ++i) {
    Job stored = stored_as(table[i].stored);
    stored.checked_at = table[i].stored_at;
    Job news = stored_as(table[i].news);
    news.checked_at = table[i].news_at;
    news.key = 99;
    news.created_at = 1;
    const Job merged = merge_news(stored, news);
    EXPECT_EQ(to_string(merged.state), to_string(table[i].after)) << "row " << i;
    EXPECT_EQ(merged.key, stored.key);
    EXPECT_EQ(merged.created_at, stored.created_at);
    EXPECT_GE(merged.checked_at.value_or(0), stored.checked_at.value_or(0)) << "row " << i;
  }
}

TEST(Refresh, AFailuresMomentComesWithItsState) {
  Job stored = stored_as(State::running);
  stored.checked_at = 5;
  Job news = stored_as(State::failed);
  news.checked_at = 6;
  news.failed_ms = 5500;
  const Job failed = merge_news(stored, news);
  EXPECT_EQ(failed.failed_ms, 5500);
  news.checked_at = 7;
  news.failed_ms = 5600;
  EXPECT_EQ(merge_news(failed, news).failed_ms, 5500);
}

}  // namespace
}  // namespace remote::jobs
