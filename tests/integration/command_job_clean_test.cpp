// `remote job-clean`.

#include <algorithm>

#include "support/command_world.hpp"

namespace remote::test {
namespace {

class CommandJobClean : public ::testing::Test {
 protected:
  CommandResult clean(std::vector<std::string> words, const Terminals& terminals = {}) {
    words.insert(words.begin(), "job-clean");
    return world.run(words, terminals);
  }
  bool there(const Job& job) { return fs::exists(world.there(job.server) / ".jobs" / job.id.text()); }
  bool here(const Job& job) { return fs::exists(world.store().job_folder(job.id)); }
  CommandWorld world;
};

TEST_F(CommandJobClean, WithoutJobsNothingIsRemoved) {
  EXPECT_THAT(clean({}), Ends(0, "", "no jobs removed\n"));
  EXPECT_THAT(clean({"--json"}), Ends(0, "[]\n", ""));
  EXPECT_THAT(clean({"--job", "1", "--yes"}), Refused("no job '1'"));
}

TEST_F(CommandJobClean, RemovesEndedJobsHereAndThereAndLeavesTheOthers) {
  const auto ended = world.ended_job("a", "echo out");
  const auto failed = world.ended_job("b", "exit 1");
  const auto running = world.job("a", "sleep 1000");
  EXPECT_THAT(clean({"--yes"}), Ends(0, "", "1 unfinished job skipped\n2 jobs removed\n"));
  EXPECT_FALSE(there(ended) || here(ended) || there(failed) || here(failed));
  EXPECT_TRUE(there(running) && here(running));
  EXPECT_EQ(world.job("a", "true").key, 4);  // keys are not reused
}

TEST_F(CommandJobClean, NeedsAYesWhereNobodyCanBeAsked) {
  const auto job = world.ended_job("a", "true");
  EXPECT_THAT(clean({"--older", "0"}),
              Refused("job-clean: that would remove 1 ended job with its output, here "
                      "and on the servers\n hint: add --yes\n"));
  EXPECT_THAT(clean({"--job", "1"}), Refused("add --yes"));  // a job key needs --yes without a terminal
  EXPECT_TRUE(there(job) && here(job));
}

TEST_F(CommandJobClean, OnATerminalItShowsThemAndAsks) {
  const auto job = world.ended_job("a", "true");
  EXPECT_THAT(
      clean({"--color", "never"}, screen("n\n")),
      Ends(1, "",
           "  job 1 on a: succeeded: true\nRemove 1 ended job with its output, here and on the servers? "
           "[y/N] error: nothing was removed: not confirmed\n"));
  EXPECT_TRUE(there(job) && here(job));
  EXPECT_THAT(clean({}, screen("yes\n")), Ends(0, "", HasSubstr("[y/N] 1 job removed\n")));
  EXPECT_FALSE(there(job) || here(job));
}

TEST_F(CommandJobClean, ManyJobsAreShownInPart) {
  std::vector<Job> jobs(22);
  std::ranges::generate(jobs, [] { return old_record("true"); });
  world.store().add(jobs);
  const CommandResult result = clean({}, screen("n\n"));
  EXPECT_THAT(result.err, AllOf(HasSubstr("  job 20 on a: "), Not(HasSubstr("  job 21 on a: ")),
                                HasSubstr("  … and 2 more\nRemove 22 ended jobs with their output")));
}

TEST_F(CommandJobClean, YoungOnesStayWithOlder) {
  std::vector<Job> old = {old_record("true")};  // the folder on the server is already gone
  world.store().add(old);
  const auto young = world.ended_job("a", "true");
  EXPECT_THAT(clean({"--older", "1", "--yes"}), Ends(0, "", "no jobs removed\n"));
  EXPECT_THAT(clean({"--older", "0.02", "--yes"}), Ends(0, "", "1 job removed\n"));  // half an hour
  EXPECT_FALSE(here(old.front()));
  EXPECT_TRUE(here(young));
  EXPECT_THAT(clean({"--older", "0", "--yes"}), Ends(0, "", "1 job removed\n"));
}

TEST_F(CommandJobClean, WrongAgesAreRefused) {
  EXPECT_THAT(clean({"--older", "-1"}), Refused("--older"));
  EXPECT_THAT(clean({"--older", "old"}), Refused("--older"));
}

TEST_F(CommandJobClean, ARunningOneThatIsNamedStaysAndThatIsAFailure) {
  const auto job = world.job("a", "sleep 1000");
  EXPECT_THAT(clean({"--job", "1", "--yes"}),
              Ends(1, "", "warning: job 1 on a: not removed: running\nno jobs removed\n"));
  EXPECT_TRUE(there(job) && here(job));
}

TEST_F(CommandJobClean, TagsChoose) {
  const auto kept = world.ended_job("a", "true", {"--tag", "x"});
  const auto removed = world.ended_job("a", "true", {"--tag", "y"});
  EXPECT_THAT(clean({"--tag", "y", "--yes"}), Ends(0, "", "1 job removed\n"));
  EXPECT_TRUE(here(kept));
  EXPECT_FALSE(here(removed));
}

TEST_F(CommandJobClean, AServerThatIsNotReachedKeepsItsRecords) {
  const auto first = world.ended_job("a", "true");
  const auto second = world.ended_job("b", "true");
  world.cut_off({"b"});
  EXPECT_THAT(clean({"--yes"}), Ends(1, "", AllOf(StartsWith("error: b: "), HasSubstr("\n1 job removed\n"))));
  EXPECT_FALSE(here(first));
  EXPECT_TRUE(here(second) && there(second));
}

TEST_F(CommandJobClean, AJobOfAServerThatIsGoneCanBeForgotten) {
  const auto gone = world.ended_job("a", "true");
  const auto other = world.ended_job("b", "true");
  world.configure("name: proj\npython: {manager: system}\nservers:\n  b: {hostname: b}\n");
  EXPECT_THAT(clean({"1", "--yes"}), Ends(1, "", HasSubstr("remote job-clean --forget 1\n")));
  EXPECT_TRUE(here(gone));
  EXPECT_THAT(clean({"--forget", "--yes"}), Refused("no job is named"));
  EXPECT_THAT(clean({"--forget", "1"}), Refused("that would remove 1 job only here"));
  EXPECT_THAT(clean({"--forget", "1", "--yes"}), Ends(0, "", "1 job removed, only here\n"));
  EXPECT_TRUE(!here(gone) && there(gone) && here(other));
}

TEST_F(CommandJobClean, JsonSaysWhatBecameOfEach) {
  const auto job = world.ended_job("a", "true");
  const CommandResult result = clean({"--yes", "--json"});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.json(), nlohmann::json::parse(R"([{"key": 1, "id": ")" + job.id.text() +
                                                 R"(", "server": "a", "removed": true, "reason": ""}])"));
}

}  // namespace
}  // namespace remote::test
