#include <algorithm>
#include <iterator>

#include <gtest/gtest.h>
#include <remote/error.hpp>
#include <remote/sweep.hpp>

#include "jobs/index.hpp"
#include "jobs/job_json.hpp"
#include "jobs/transitions.hpp"
#include "support/instants.hpp"

namespace remote {
namespace {

using Values = std::vector<std::string>;

std::string refusal(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.message() + " / " + error.hint();
  }
  return "";
}
Values values(const std::string& text) {
  return parse_sweep_parameter(text).values;
}
Values texts(const std::vector<SweepRow>& points) {
  Values all;
  std::ranges::transform(points, std::back_inserter(all), sweep_point_text);
  return all;
}

TEST(SweepParameters, ListsAndRanges) {
  EXPECT_EQ(parse_sweep_parameter("lr=1e-3,1e-4").name, "lr");
  EXPECT_EQ(values("lr=1e-3,1e-4"), (Values{"1e-3", "1e-4"}));
  EXPECT_EQ(values("seed=0..4"), (Values{"0", "1", "2", "3", "4"}));
  EXPECT_EQ(values("n=2..-1,9"), (Values{"2", "1", "0", "-1", "9"}));
  EXPECT_EQ(values("path=../a,x..y"), (Values{"../a", "x..y"}));
  EXPECT_EQ(values("text=a=b,,c"), (Values{"a=b", "", "c"}));
  for (const char* wrong : {"", "lr", "lr=", "=1", "1x=1", "a b=1", "a-b=1"}) {
    EXPECT_NE(refusal([&] { parse_sweep_parameter(wrong); }), "") << wrong;
  }
  EXPECT_NE(refusal([] { parse_sweep_parameter("n=0..2000000000"); }).find("10000 points"),
            std::string::npos);
}

TEST(SweepParameters, RowsOfAFile) {
  EXPECT_EQ(texts(parse_sweep_rows("lr, note\r\n1e-3,\"a, \"\"b\"\"\"\r\n\n2,c\n")),
            (Values{"lr=1e-3 note=a, \"b\"", "lr=2 note=c"}));
  EXPECT_NE(refusal([] { parse_sweep_rows("a,b\n1,2\n1\n"); }).find("line 3"), std::string::npos);
  EXPECT_NE(refusal([] { parse_sweep_rows("a\n\"x\n"); }).find("line 2"), std::string::npos);
  EXPECT_NE(refusal([] { parse_sweep_rows("a\n"); }), "");
  EXPECT_NE(refusal([] { parse_sweep_rows("a b\n1\n"); }), "");
}

TEST(SweepParameters, PointsAreAllCombinations) {
  const SweepParameter lr{"lr", {"1", "2"}};
  const SweepParameter seed{"seed", {"0", "1"}};
  EXPECT_EQ(texts(sweep_points({lr, seed}, {})),
            (Values{"lr=1 seed=0", "lr=1 seed=1", "lr=2 seed=0", "lr=2 seed=1"}));
  EXPECT_EQ(texts(sweep_points({seed}, {{{"lr", "7"}}, {{"lr", "8"}}})),
            (Values{"lr=7 seed=0", "lr=7 seed=1", "lr=8 seed=0", "lr=8 seed=1"}));
  EXPECT_NE(refusal([&] { sweep_points({}, {}); }), "");
  EXPECT_NE(refusal([&] { sweep_points({lr, {"LR", {"1"}}}, {}); }).find("twice"), std::string::npos);
  const SweepParameter many{"a", Values(101, "x")};
  EXPECT_NE(refusal([&] { sweep_points({many, {"b", Values(100, "x")}}, {}); }), "");
  EXPECT_EQ(sweep_points({{"a", Values(100, "x")}, {"b", Values(100, "x")}}, {}).size(), most_sweep_points);
}

TEST(SweepParameters, WordsAreFilledIn) {
  const SweepRow point{{"lr", "1e-3"}, {"seed", "{lr}"}};
  EXPECT_EQ(fill_sweep_word("--lr={lr}/{seed}", point), "--lr=1e-3/{lr}");
  EXPECT_EQ(fill_sweep_word("{{lr}} }}{{", point), "{lr} }{");
  EXPECT_EQ(fill_sweep_word("plain", point), "plain");
  EXPECT_NE(refusal([&] { fill_sweep_word("{sed}", point); }).find("did you mean 'seed'?"),
            std::string::npos);
  EXPECT_NE(refusal([&] { fill_sweep_word("{lr", point); }).find("twice"), std::string::npos);
  EXPECT_NE(refusal([&] { fill_sweep_word("a}", point); }), "");
  EXPECT_EQ(sweep_variable("lr_Max"), "SWEEP_LR_MAX");
}

Job point(int key, int number, JobState state, std::vector<NamedNumber> numbers = {}) {
  Job job;
  job.key = key;
  job.id = JobId::random();
  job.launch = JobId::parse("0123456789abcdef0123456789abcdef");
  job.server = "a";
  job.remote_folder = {"~/proj", ".jobs"};
  job.state = state;
  job.point =
      SweepPoint{number, {{"lr", std::to_string(number)}}, state == JobState::queued, std::move(numbers)};
  return job;
}

TEST(SweepResults, TheNewestJobOfAPointCountsAndTheBestIsFound) {
  const std::vector<Job> jobs{point(3, 2, JobState::succeeded, {{"loss", 0.3}, {"acc", 0.1}}),
                              point(1, 0, JobState::killed), point(2, 1, JobState::failed, {{"loss", 0.1}}),
                              point(4, 0, JobState::succeeded, {{"loss", 0.2}, {"acc", 0.9}})};
  const SweepResults least = sweep_results(jobs);
  ASSERT_EQ(least.points.size(), 3U);
  EXPECT_EQ(least.points[0].key, 4);
  EXPECT_EQ(least.parameters, Values{"lr"});
  EXPECT_EQ(least.best_by->name, "loss");
  EXPECT_EQ(least.best, 0U);  // a failed point is never the best
  EXPECT_EQ(sweep_results(jobs, parse_sweep_best("max:loss")).best, 2U);
  EXPECT_EQ(sweep_results(jobs, parse_sweep_best("max:ACC")).best, 0U);
  EXPECT_FALSE(sweep_results(jobs, parse_sweep_best("min:none")).best_by);
  EXPECT_FALSE(sweep_results({point(1, 0, JobState::queued)}).best);
  for (const char* wrong : {"", "loss", "min", "min:", "least:loss"}) {
    EXPECT_NE(refusal([&] { parse_sweep_best(wrong); }), "") << wrong;
  }
}

TEST(SweepJobs, AreKeptInRecordAndIndex) {
  Job job = point(3, 7, JobState::queued, {{"loss", 0.25}});
  job.point->values.emplace_back("note", "a\tb \"c\"");
  EXPECT_EQ(jobs::from_json_text(jobs::to_json_text(job)), job);
  const jobs::Index index(std::string(jobs::index_header) + jobs::index_line({}, job));
  const jobs::Index::Row* row = index.find(job.id);
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(jobs::Index::job(*row), job);
}

TEST(SweepJobs, APointThatWaitsIsLostByNoAnswer) {
  const jobs::Clocks clocks{instant(1000), instant(1000), std::nullopt};
  const Job job = point(3, 0, JobState::queued);
  wire::JobReport reply;
  EXPECT_EQ(jobs::apply_status(job, reply, clocks, jobs::Starter::dead), job);
  reply.phase = wire::JobPhase::running;
  reply.started_at = std::chrono::seconds(1000);
  const Job runs = jobs::apply_status(job, reply, clocks, jobs::Starter::alive);
  EXPECT_EQ(runs.state, JobState::running);
  EXPECT_FALSE(runs.point->waiting);
  // New numbers of an ended job also count as an update.
  Job ended = point(3, 0, JobState::succeeded);
  Job measured = ended;
  measured.point->numbers = {{"loss", 0.5}};
  EXPECT_EQ(jobs::merge_news(ended, measured, instant(1000)).point, measured.point);
  EXPECT_EQ(jobs::merge_news(measured, ended, instant(1000)).point, measured.point);
  reply.phase = wire::JobPhase::none;
  EXPECT_EQ(jobs::apply_status(runs, reply, clocks, jobs::Starter::alive).state, JobState::lost);
}

}  // namespace
}  // namespace remote
