#include <fstream>

#include <gmock/gmock.h>

#include "jobs/refresh.hpp"
#include "support/command_world.hpp"
#include "support/job_journal.hpp"
#include "support/job_world.hpp"

// Job records that name files outside the project: a project may come from another person, with its .remote
// folder.

namespace remote::jobs {
namespace {

namespace fs = std::filesystem;
using test::CommandWorld;
using ::testing::AllOf;
using ::testing::HasSubstr;

class HostileRecords : public ::testing::Test {
 protected:
  // A folder on server `a`, outside the project, that looks like an ended job's; returns the record that
  // names it.
  Job forged() {
    Job job = test::old_record("true");
    job.remote_folder = {"~/precious", "cache"};
    const fs::path folder = precious(job);
    make_folders(folder);
    std::ofstream(folder / "journal.jsonl") << test::format_end(0);
    std::ofstream(folder / "job.out") << "precious\n";
    std::ofstream(folder / "job.err") << "";
    std::vector<Job> jobs{job};
    world.store().add(jobs);
    return jobs.front();
  }
  fs::path precious(const Job& job) { return world.servers().home("a") / "precious/cache" / job.id.text(); }
  CommandWorld world;
};

TEST_F(HostileRecords, NothingIsRemovedOrBroughtBecauseARecordNamesIt) {
  const Job job = forged();
  for (const std::vector<std::string>& words : {std::vector<std::string>{"job-clean", "--yes"},
                                                {"job-kill", "--job", "1", "--grace", "0"},
                                                {"job-tail", "--job", "1", "--no-follow"},
                                                {"job-pull", "--job", "1", "cache"},
                                                {"job-rsync"}}) {
    const test::CommandResult result = world.run(words);
    EXPECT_EQ(result.code, 1) << words[0] << ": " << result;
    EXPECT_THAT(result.err,
                AllOf(HasSubstr("its record places it in ~/precious/cache, but configs.yaml in ~/proj/.jobs"),
                      HasSubstr("put 'name', 'remote_path' and")))
        << words[0];
  }
  EXPECT_TRUE(fs::exists(precious(job) / "job.out"));
  EXPECT_EQ(test::read_journal(precious(job)), test::format_end(0));
  EXPECT_FALSE(fs::exists(world.brought(job, "job.out")));
  EXPECT_TRUE(fs::exists(world.store().job_folder(job.id))) << "its record stays";
}

TEST_F(HostileRecords, OneHidesNoOtherJob) {
  test::JobWorld jobs;
  const Job good = jobs.run("a", "exec sleep 300");
  Job forged = good;
  forged.id = JobId::random();
  forged.key = 2;
  forged.remote_folder.project = "/etc";
  const News news = refresh(jobs.site(), {forged, good}, std::chrono::seconds(20));
  ASSERT_EQ(news.silent.size(), 1U);
  EXPECT_THAT(news.silent[0].message(), HasSubstr("cannot ask about job 2"));
  EXPECT_EQ(news.jobs[0].state, JobState::unknown);
  EXPECT_EQ(news.jobs[1].state, JobState::running);
}

}  // namespace
}  // namespace remote::jobs
