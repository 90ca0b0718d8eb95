#include <fstream>

#include <gmock/gmock.h>

#include "servers/facts.hpp"
#include "support/script_test.hpp"

// The samples of `top` with every available shell.

namespace remote::jobs {
namespace {

class SampleScript : public test::ScriptTest {
 protected:
  StateAnswer look(const std::vector<JobId>& ids) {
    return ask_state(agent(), {.folder = jobs_folder, .ids = ids, .last_lines = true});
  }
  servers::FactsAnswer ask_load(const std::string& project) {
    return servers::ask_facts(*connection, servers::load_request(project), Cancel());
  }
  // The last line of the only job; "" if none.
  std::string last_line(const JobId& id) { return look({id}).jobs.at(id).last_line.value_or(""); }
  // Waits until the job has written this to the file.
  void until_written(const JobId& id, const std::string& name, const std::string& text) {
    until([&] { return file(id, name).find(text) != std::string::npos; }, text + " in " + name);
  }
};

TEST_P(SampleScript, TellsOfAServerWithoutJobs) {
  const ServerLoad load = ask_load("~/my proj").load(std::nullopt);
  EXPECT_GE(load.cpus, 1);
  EXPECT_GT(load.memory_total, load.memory_available);
  EXPECT_GT(load.disk_total, 0U);
  EXPECT_LE(load.disk_free, load.disk_total);
}

TEST_P(SampleScript, TellsOfJobsOfTheUsersOtherProjects) {
  const JobId id = start("exec sleep 1000");
  // Other tests may also run on this machine; their processes are elsewhere.
  const auto named = [](const servers::FactsAnswer& answer) {
    std::vector<int> jobs;
    for (const OtherProject& other : answer.others) {
      if (other.folder == "~/my proj") {
        jobs.push_back(other.jobs);
      }
    }
    return jobs;
  };
  EXPECT_THAT(named(ask_load("~/my proj")), testing::IsEmpty()) << "this project's are not another's";
  EXPECT_THAT(named(ask_load("~/second")), testing::ElementsAre(1));
  kill(id);
}

TEST_P(SampleScript, TellsOfJobs) {
  const JobId id = start("printf 'one\\ntwo\\n\\n  \\n'; exec sleep 1000");
  until_written(id, "job.out", "two");
  const StateAnswer answer = look({id});
  ASSERT_EQ(answer.jobs.size(), 1U);
  EXPECT_EQ(answer.jobs.at(id).phase, Phase::running);
  EXPECT_EQ(answer.jobs.at(id).last_line, "two") << "blank lines say nothing";
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
  EXPECT_EQ(last_line(id), "x\001y @remote1 load 1 1 1 1") << "it is shown by top, which escapes it";
  kill(id);
}

TEST_P(SampleScript, TellsOfAQuietJobAndOneThatIsNotThere) {
  const JobId id = start("exec sleep 1000");
  EXPECT_EQ(last_line(id), "");
  const JobId absent = JobId::random();
  const StateAnswer answer = look({id, absent});
  EXPECT_EQ(answer.jobs.size(), 2U);
  EXPECT_EQ(answer.jobs.at(absent).phase, Phase::none);
  kill(id);
}

INSTANTIATE_TEST_SUITE_P(Shells, SampleScript, test::every_shell, test::shell_name);

}  // namespace
}  // namespace remote::jobs
