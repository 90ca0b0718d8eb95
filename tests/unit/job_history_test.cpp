#include "rules/job_history.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "wire/json_text.hpp"
#include "wire/read_json.hpp"

// Derives the state of a job from the entries of its journal.

namespace remote::rules {
namespace {

using std::chrono::milliseconds;
using wire::JobEnd;
using wire::JobEntry;
using wire::ProcessEnd;
using Entries = std::vector<JobEntry>;

JobEnd end_with(const ProcessEnd& how, long long at = 1000, const char* by = "supervisor") {
  return {.how = how, .at = milliseconds(at), .by = by};
}

wire::StopRequested stop_by(const char* user, long long at, int pid, bool records_end = false) {
  return {.stop = {.by = {.text = user}, .at = milliseconds(at)},
          .stopper = {pid, 7},
          .records_end = records_end};
}

wire::StopFinished finish(const wire::StopRequested& request, bool had_no_effect) {
  return {.requested_at = request.stop.at, .stopper = request.stopper, .had_no_effect = had_no_effect};
}

const wire::JobEnded exit_3{end_with(ProcessEnd::exited(3))};
const wire::JobFoundEnded killed{end_with(ProcessEnd::signalled(9), 2000, "kill")};

TEST(JobHistory, OfAnEmptyJournal) {
  const JobHistory history = fold({});
  EXPECT_FALSE(history.has_ended() || history.started_at || history.last_attempt || history.stop);
  EXPECT_FALSE(history.was_out_of_memory);
  EXPECT_TRUE(history.stoppers.empty() && history.survivors.empty());
}

TEST(JobHistory, OfAJobThatEnded) {
  const JobHistory history = fold(Entries{wire::JobStarted{milliseconds(5)}, exit_3});
  EXPECT_EQ(history.started_at, milliseconds(5));
  EXPECT_TRUE(history.has_ended());
  EXPECT_EQ(history.end, exit_3.end);
}

// The ranks of a job with a lease start later.
TEST(JobHistory, TheLastStartCounts) {
  EXPECT_EQ(fold(Entries{wire::JobStarted{milliseconds(5)}, wire::JobStarted{milliseconds(9)}}).started_at,
            milliseconds(9));
}

TEST(JobHistory, TheSupervisorKnowsBestHowTheJobEnded) {
  EXPECT_EQ(fold(Entries{exit_3, killed}).end, exit_3.end);
  EXPECT_EQ(fold(Entries{killed, exit_3}).end, exit_3.end) << "it only seemed to be dead";
  EXPECT_EQ(fold(Entries{killed}).end, killed.end);
  const wire::JobFoundEnded later{end_with(ProcessEnd::signalled(15), 3000, "kill")};
  EXPECT_EQ(fold(Entries{killed, later}).end, killed.end);
}

TEST(JobHistory, AnEndedJobHasStarted) {
  const wire::JobNeverStarts never{milliseconds(4)};
  EXPECT_EQ(fold(Entries{never}).never_starts_since, milliseconds(4));
  EXPECT_TRUE(fold(Entries{never}).has_ended());
  for (const Entries& entries : {Entries{never, exit_3}, Entries{exit_3, never}}) {
    EXPECT_FALSE(fold(entries).never_starts_since);
    EXPECT_EQ(fold(entries).end, exit_3.end);
  }
  EXPECT_FALSE(fold(Entries{never, killed}).end);
  EXPECT_EQ(fold(Entries{never, wire::JobNeverStarts{milliseconds(8)}}).never_starts_since, milliseconds(4));
}

// Slurm runs the job again.
TEST(JobHistory, ARestartReopensTheJob) {
  const wire::OutOfMemory oom{milliseconds(900)};
  const wire::JobRestarted restart{milliseconds(1500)};
  EXPECT_TRUE(fold(Entries{oom, exit_3}).was_out_of_memory);
  EXPECT_TRUE(fold(Entries{exit_3, oom}).was_out_of_memory);
  const JobHistory history = fold(Entries{wire::JobStarted{milliseconds(5)}, oom, exit_3, restart});
  EXPECT_FALSE(history.has_ended() || history.was_out_of_memory);
  EXPECT_EQ(history.started_at, milliseconds(5));
  EXPECT_EQ(fold(Entries{exit_3, restart, killed}).end, killed.end);
  const wire::DiskRefused full{milliseconds(900), FolderFlaw::full};
  EXPECT_EQ(fold(Entries{full, exit_3}).disk, FolderFlaw::full);
  EXPECT_EQ(fold(Entries{full, exit_3, restart}).disk, FolderFlaw::none);
}

TEST(JobHistory, TheLastAttemptThatEnded) {
  const wire::AttemptEnded first{1, end_with(ProcessEnd::signalled(9))};
  const wire::AttemptEnded second{2, end_with(ProcessEnd::exited(0), 2000)};
  const wire::JobRestarted restart{milliseconds(1500)};
  EXPECT_EQ(fold(Entries{first}).last_attempt, first);
  EXPECT_FALSE(fold(Entries{first}).has_ended()) << "another attempt may follow";
  EXPECT_EQ(fold(Entries{first, restart}).last_attempt, first);
  EXPECT_EQ(fold(Entries{first, restart, second}).last_attempt, second);
}

TEST(JobHistory, TellsWhyNoOtherAttemptFollows) {
  EXPECT_EQ(fold(Entries{exit_3}).no_restart, std::nullopt);
  EXPECT_EQ(fold(Entries{wire::RestartRefused{NoRestart::repeated}, exit_3}).no_restart, NoRestart::repeated);
}

TEST(JobHistory, TheFirstStopCounts) {
  const auto ada = stop_by("ada", 10, 1);
  const auto bob = stop_by("bob", 11, 2);
  EXPECT_EQ(fold(Entries{ada}).stop, ada.stop);
  EXPECT_EQ(fold(Entries{ada, bob}).stop, ada.stop);
  EXPECT_EQ(fold(Entries{ada, bob, exit_3}).stop, ada.stop);
  EXPECT_EQ(fold(Entries{ada, bob, exit_3, finish(ada, false), finish(bob, true)}).stop, ada.stop);
}

// The job ended before these stops.
TEST(JobHistory, AStopWithoutEffectDoesNotCount) {
  const auto ada = stop_by("ada", 10, 1);
  const auto bob = stop_by("bob", 10, 2);
  EXPECT_FALSE(fold(Entries{ada, exit_3, finish(ada, true)}).stop);
  EXPECT_EQ(fold(Entries{ada, bob, exit_3, finish(ada, true)}).stop, bob.stop) << "it is still at work";
  EXPECT_FALSE(fold(Entries{ada, bob, exit_3, finish(ada, true), finish(bob, true)}).stop);
  EXPECT_FALSE(fold(Entries{ada, bob, exit_3, finish(bob, true), finish(ada, true)}).stop);
}

TEST(JobHistory, AStopperWithoutASupervisorIsNamedUntilItHasFinished) {
  const auto ada = stop_by("ada", 10, 1, true);
  const auto bob = stop_by("bob", 11, 2, true);
  const std::vector<wire::RecordedProcess> both{{1, 7}, {2, 7}};
  EXPECT_EQ(fold(Entries{ada, bob}).stoppers, both);
  EXPECT_EQ(fold(Entries{ada, bob, finish(ada, false)}).stoppers,
            (std::vector<wire::RecordedProcess>{{2, 7}}));
  EXPECT_TRUE(fold(Entries{stop_by("ada", 10, 1)}).stoppers.empty()) << "the supervisor records the end";
}

TEST(JobHistory, TheSurvivorsOfTheLastStop) {
  const wire::RecordedSurvivor survivor{.process = wire::RecordedProcess{5, 6}};
  wire::StopFinished first = finish(stop_by("ada", 10, 1), false);
  first.survivors = {survivor};
  EXPECT_EQ(fold(Entries{first}).survivors, first.survivors);
  EXPECT_TRUE(fold(Entries{first, finish(stop_by("bob", 11, 2), false)}).survivors.empty());
}

// Entries of the fallback folder are first copied to the journal and then removed.
TEST(JobHistory, RepeatedEntriesChangeNothing) {
  const auto ada = stop_by("ada", 10, 1, true);
  const std::vector<Entries> tails{{exit_3},
                                   {ada, killed},
                                   {ada, exit_3, finish(ada, true)},
                                   {wire::OutOfMemory{}, stop_by("bob", 11, 2), exit_3},
                                   {wire::JobNeverStarts{milliseconds(4)}}};
  for (const Entries& tail : tails) {
    for (std::size_t begin = 0; begin <= tail.size(); ++begin) {
      Entries once{wire::JobStarted{milliseconds(5)}};
      once.insert(once.end(), tail.begin(), tail.end());
      Entries twice = once;
      twice.insert(twice.end(), tail.begin() + static_cast<std::ptrdiff_t>(begin), tail.end());
      EXPECT_EQ(fold(twice), fold(once)) << begin;
    }
  }
}

TEST(JobHistory, EntriesAreReadableText) {
  EXPECT_EQ(wire::to_json_text(JobEntry(exit_3)),
            R"({"kind":"ended","end":{"how":{"code":3,"signal":0},"at":1000,"by":"supervisor","node":""}})");
  wire::StopFinished finished = finish(stop_by("ada", 10, 1), true);
  finished.survivors = {{.process = wire::RecordedProcess{5, 6}, .name = "a"}, {.name = "container b"}};
  for (const JobEntry& entry :
       Entries{wire::JobStarted{milliseconds(5)}, wire::JobRestarted{milliseconds(6)},
               wire::AttemptEnded{2, exit_3.end}, wire::RestartRefused{NoRestart::hang},
               wire::OutOfMemory{milliseconds(7)}, exit_3, killed, wire::JobNeverStarts{milliseconds(8)},
               stop_by("ada", 10, 1, true), finished}) {
    EXPECT_EQ(wire::try_read_json<JobEntry>(wire::to_json_text(entry)), entry);
  }
  EXPECT_FALSE(wire::try_read_json<JobEntry>(R"({"kind":"of a later version","at":1})"));
  EXPECT_FALSE(wire::try_read_json<JobEntry>(R"({"kind":"started"})"));
}

}  // namespace
}  // namespace remote::rules
