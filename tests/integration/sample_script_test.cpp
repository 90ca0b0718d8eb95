#include <fstream>

#include <gmock/gmock.h>

#include "jobs/sample.hpp"
#include "support/script_test.hpp"

// The samples of top on the shells there are.

namespace remote::jobs {
namespace {

class SampleScript : public test::ScriptTest {
 protected:
  SampleAnswer look(const std::vector<JobId>& ids) {
    auto action = sample_action(jobs_folder, ids);
    SampleAnswer answer;
    answer.with_jobs = !ids.empty();
    return servers::read_answer(exec(action.script.input()), answer);
  }
  // The only job's last line; "" for none.
  std::string last_line(const JobId& id) {
    const SampleAnswer answer = look({id});
    return answer.last_lines.empty() ? "" : answer.last_lines.front().second;
  }
  // Waits until the job has written this to the file.
  void until_written(const JobId& id, const std::string& name, const std::string& text) {
    until([&] { return file(id, name).find(text) != std::string::npos; }, text + " in " + name);
  }
};

TEST_P(SampleScript, TellsOfAServerWithoutJobs) {
  const ServerLoad load = look({}).facts.load(std::nullopt);
  EXPECT_GE(load.cpus, 1);
  EXPECT_GT(load.memory_total, load.memory_available);
  EXPECT_GT(load.disk_total, 0U);
  EXPECT_LE(load.disk_free, load.disk_total);
}

TEST_P(SampleScript, TellsOfJobsOfTheUsersOtherProjects) {
  const JobId id = start("exec sleep 1000");
  // Other tests may run on this machine as well: theirs are elsewhere.
  const auto named = [](const SampleAnswer& answer) {
    std::vector<int> jobs;
    for (const OtherProject& other : answer.facts.others) {
      if (other.folder == "~/my proj") {
        jobs.push_back(other.jobs);
      }
    }
    return jobs;
  };
  EXPECT_THAT(named(look({})), testing::IsEmpty()) << "this project's are not another's";
  const auto action = sample_action({"~/second", ".jobs"}, {});
  EXPECT_THAT(named(servers::read_answer(exec(action.script.input()), SampleAnswer{})),
              testing::ElementsAre(1));
  kill(id);
}

TEST_P(SampleScript, TellsOfJobs) {
  const JobId id = start("printf 'one\\ntwo\\n\\n  \\n'; exec sleep 1000");
  until_written(id, "job.out", "two");
  const SampleAnswer answer = look({id});
  ASSERT_EQ(answer.status.jobs.size(), 1U);
  EXPECT_EQ(answer.status.jobs[0].phase, Phase::running);
  ASSERT_EQ(answer.last_lines.size(), 1U);
  EXPECT_EQ(answer.last_lines[0].second, "two") << "blank lines say nothing";
  kill(id);
}

TEST_P(SampleScript, TakesTheStreamThatWasWrittenToLast) {
  const JobId id = start(
      "echo out; touch -d 2020-01-01 \".jobs/$REMOTE_JOB_ID/job.out\"; printf '10%%\\r20%%\\r' >&2; exec "
      "sleep 1000");
  until_written(id, "job.err", "20%");
  EXPECT_EQ(last_line(id), "20%") << "a progress bar's last state";
  kill(id);
}

TEST_P(SampleScript, TakesNoLineForOneOfOurs) {
  const JobId id = start("printf '@remote1 end\\nx\\001y @remote1 load 1 1 1 1'; exec sleep 1000");
  until_written(id, "job.out", "1 1 1 1");
  EXPECT_EQ(last_line(id), "x\001y @remote1 load 1 1 1 1");
  kill(id);
}

TEST_P(SampleScript, TellsOfAQuietJobAndOneThatIsNotThere) {
  const JobId id = start("exec sleep 1000");
  EXPECT_EQ(last_line(id), "");
  const SampleAnswer answer = look({id, JobId::random()});
  EXPECT_EQ(answer.status.jobs.size(), 2U);
  EXPECT_EQ(answer.status.jobs[1].phase, Phase::none);
  kill(id);
}

INSTANTIATE_TEST_SUITE_P(Shells, SampleScript, test::every_shell, test::shell_name);

}  // namespace
}  // namespace remote::jobs
