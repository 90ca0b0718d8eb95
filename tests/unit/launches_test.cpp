#include "cli/show/launches.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/ranges.hpp"
#include "cli/show/job_table.hpp"
#include "cli/show/jobs.hpp"
#include "support/instants.hpp"
#include "ui/full_screen.hpp"

namespace remote::cli {
namespace {

using ::testing::ElementsAre;

Job rank(int number, JobState state = JobState::running) {
  Job job;
  job.key = 45 + number;
  job.id = JobId::random();
  job.server = "node-" + std::to_string(number / 2 + 1);
  job.rank = number;
  job.launch = *JobId::parse(std::string(32, 'a'));
  job.state = state;
  if (state == JobState::failed) {
    job.result = ExitStatus::exited(3);
  }
  return job;
}

TEST(Launches, NumbersInOrderAreRanges) {
  EXPECT_EQ(ranges({}), "");
  EXPECT_EQ(ranges({7}), "7");
  EXPECT_EQ(numbers_of("7", 9), std::vector({7}));
  EXPECT_EQ(numbers_of("1-3", 3), std::vector({1, 2, 3}));
  for (const char* wrong : {"", "-", "1-", "-3", "3-1", "1-4", "1-2-3", "a", "1,2", " 1", "99999999999"}) {
    EXPECT_EQ(numbers_of(wrong, 3), std::nullopt) << wrong;
  }
  EXPECT_EQ(ranges({48, 45, 47, 46, 50}), "45-48, 50");
  EXPECT_EQ(ranges({1, 3, 5, 7, 9, 11, 13}), "1, 3, 5, 7, 9 and 2 more");
}

TEST(Launches, OfALaunchThatEndsOnlyTheVerdictNamesARank) {
  Job agent = rank(0, JobState::failed);
  agent.ranks = 2;
  agent.reason.kind = JobReason::Kind::after_rank;
  const Job first = rank(2, JobState::failed);
  ui::Terminal terminal;
  EndTeller ends(terminal, {rank(0), rank(2)});
  EXPECT_EQ(terminal.captured([&] { ends.take(agent); }), "");
  EXPECT_EQ(terminal.captured([&] { ends.take(first); }), "a rank failed; waiting for the other ranks\n");
}

TEST(Launches, OfALaunchThatHasEndedNoRankIsWaitedFor) {
  const Batch ended{rank(0), rank(2, JobState::failed)};
  ui::Terminal terminal;
  EndTeller some(terminal, ended);
  EXPECT_EQ(terminal.captured([&] { some.take(ended[1]); }), "a rank failed; waiting for the other ranks\n");
  EndTeller none(terminal, {rank(0, JobState::succeeded), ended[1]});
  EXPECT_EQ(terminal.captured([&] { none.take(ended[1]); }), "");
}

TEST(Launches, ManyServersAreCounted) {
  Batch batch;
  for (int i = 0; i < 64; ++i) {
    batch.push_back(rank(i));
  }
  EXPECT_EQ(describe(batch), "jobs 45-108 (ranks 0-63 on 32 servers)");
  EXPECT_EQ(describe(Batch{rank(0), rank(3)}), "jobs 45, 48 (ranks 0, 3 on node-1, node-2)");
  EXPECT_EQ(describe(Batch{rank(3)}), "job 48 (rank 3 on node-2)");
}

TEST(Launches, TheirStateIsThatOfWhatMatters) {
  using enum JobState;
  EXPECT_EQ(state_text({rank(0), rank(1)}), "running");
  EXPECT_EQ(state_text({rank(0, starting), rank(1)}), "running");
  EXPECT_EQ(state_text({rank(0, unknown), rank(1, failed)}), "unknown; rank 1 failed exit 3");
  EXPECT_EQ(state_text({rank(0, succeeded), rank(1, succeeded)}), "succeeded");
  EXPECT_EQ(state_text({rank(0, succeeded), rank(1, killed)}), "1 succeeded, 1 killed");
  EXPECT_EQ(state_text({rank(0, killed), rank(1, failed)}), "rank 1 failed exit 3");
  EXPECT_EQ(count_text({rank(0), rank(1, starting), rank(2, failed), rank(3, killed)}),
            "1 running, 1 starting, 2 ended");
}

TEST(Launches, ProcessesLeftBehindAreCountedOnce) {
  using enum JobState;
  Batch batch{rank(0, failed), rank(1, killed)};
  batch[0].leftovers = 1;
  EXPECT_EQ(state_text(batch), "rank 0 failed exit 3 (ended, 1 process left)");
  batch[1].leftovers = 1;
  EXPECT_EQ(state_text(batch), "rank 0 failed exit 3 (ended, 2 processes left)");
  Batch stopped{rank(0, killed), rank(1, killed)};
  stopped[0].leftovers = stopped[1].leftovers = 1;
  EXPECT_EQ(state_text(stopped), "killed (ended, 2 processes left)");
}

TEST(Launches, WhoWaitsInADebuggerIsNotSilent) {
  Batch batch{rank(0), rank(1)};
  for (Job& job : batch) {
    job.checked_at = instant(1000);
    job.failed_at = exact_instant(700'000);
  }
  batch[1].waits = {{"1.7", 1, "train.py", 88, ""}};
  EXPECT_EQ(silence_of(batch), std::nullopt);
  EXPECT_EQ(state_text(batch), "running (waiting in breakpoint() train.py:88)");
  EXPECT_THAT(
      row_notices({{batch, false}}),
      ElementsAre(
          "job 46 (rank 1 on node-1): waiting in breakpoint() train.py:88: remote attach 1 --job 46"));
  batch[1].waits.push_back({"2.7", 1, "deep/\x1b[2J/" + std::string(60, 'a') + "/data.py", 9, "ValueError"});
  EXPECT_EQ(state_text(batch[1]), "running (waiting in breakpoint() train.py:88 and 1 more)");
  EXPECT_EQ(wait_text(batch[1].waits[1]), "pdb after ValueError data.py:9");
}

TEST(Launches, OneThatWritesNothingAnyMoreIsToldAsSilent) {
  Batch batch{rank(0), rank(1)};
  for (Job& job : batch) {
    job.checked_at = instant(1000);
    job.failed_at = exact_instant(700'000);
  }
  EXPECT_EQ(silence_of(batch), std::chrono::minutes(5));
  EXPECT_EQ(state_text(batch), "running, silent for 5m");
  EXPECT_EQ(rough_duration(std::chrono::seconds(59)), "59s");
  EXPECT_EQ(rough_duration(std::chrono::minutes(181)), "3h");
  EXPECT_EQ(age_of_output(batch[0]), "5m 00s ago");
  EXPECT_THAT(row_notices({{batch, false}}),
              ElementsAre("launch 45 has been silent for 5m 00s: remote job-stacks --launch 45"));
  batch[0].wrote_nothing = true;
  EXPECT_EQ(age_of_output(batch[0]), "never");
  batch[1].failed_at = exact_instant(990'000);  // one rank writes as usual
  EXPECT_EQ(silence_of(batch), std::nullopt);
  EXPECT_EQ(state_text(batch), "running");
  batch[1].failed_at.reset();
  EXPECT_EQ(silence_of(batch), std::nullopt);
}

TEST(Launches, AJobThatRunsSeveralRanksCountsForEach) {
  using enum JobState;
  const auto agent = [](int first, JobState state = running) {
    Job job = rank(first, state);
    job.ranks = 2;
    return job;
  };
  EXPECT_EQ(describe(agent(2)), "job 47 (ranks 2-3 on node-2)");
  EXPECT_EQ(describe(Batch{agent(0), agent(2)}), "jobs 45, 47 (ranks 0-3 on node-1, node-2)");
  EXPECT_EQ(count_text({agent(0), agent(2, succeeded)}), "2 running, 2 ended");
  EXPECT_EQ(state_text({agent(0, succeeded), agent(2, killed)}), "2 succeeded, 2 killed");
  EXPECT_EQ(state_text({agent(0, killed), agent(2, failed)}), "ranks 2-3 failed exit 3");
  Batch elastic{agent(0, succeeded), agent(2, lost)};
  elastic[0].needed = elastic[1].needed = 1;
  EXPECT_EQ(state_text(elastic), "succeeded without node-2");
}

TEST(Launches, JobsOfOneLaunchShareALineAndOthersDoNot) {
  Lines lines;
  Job alone = rank(7);
  alone.launch.reset();
  lines.add(rank(0), "killed");
  lines.add(rank(1), "killed");
  lines.add(alone, "killed");
  lines.add(rank(2), "NOT ended");
  EXPECT_THAT(lines.text(),
              ElementsAre("jobs 45-46 (ranks 0-1 on node-1): killed", "job 52 (rank 7 on node-4): killed",
                          "job 47 (rank 2 on node-2): NOT ended"));
}

TEST(FullScreen, AFrameNeverScrolls) {
  using ui::FullScreen;
  EXPECT_EQ(FullScreen::frame({"a", "b"}, 3), "\033[H\033[2Ka\033[0m\r\n\033[2Kb\033[0m\r\n\033[J");
  EXPECT_EQ(FullScreen::frame({"a", "b"}, 2), "\033[H\033[2Ka\033[0m\r\n\033[2Kb\033[0m");
  EXPECT_EQ(FullScreen::frame({"a", "b", "c"}, 2),
            "\033[H\033[2Ka\033[0m\r\n\033[2K… 2 more lines; a larger window shows them");
  EXPECT_EQ(FullScreen::frame({"a", "b"}, 0), "\033[H\033[2K… 2 more lines; a larger window shows them");
}

}  // namespace
}  // namespace remote::cli
