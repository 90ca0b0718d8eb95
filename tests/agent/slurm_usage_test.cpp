#include "agent/slurm/usage.hpp"
#include "agent/slurm_host.hpp"

namespace remote {

void PrintTo(const JobUsage& usage, std::ostream* out) {
  *out << usage.cpus << " " << usage.cpu_percent << " " << usage.memory_mib << " " << usage.requested_mib;
}

}  // namespace remote

namespace remote::agent {
namespace {

class SlurmUsageTest : public test::SlurmHost {
 protected:
  // A job that ended this many seconds ago.
  std::string ended(const std::string& number, int seconds_ago) {
    const std::string id = add_job(number);
    const auto at = read_wall_clock() - std::chrono::seconds(seconds_ago);
    put_job(id, "journal.jsonl", test::format_end("exit 0 " + std::to_string(at.count()) + " slurm\n"));
    return id;
  }
  std::vector<wire::JobReport> ask(const std::vector<std::string>& ids) {
    std::vector<JobRecord> jobs;
    std::vector<wire::JobReport> reports(ids.size());
    std::vector<wire::JobReport*> pointers;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      jobs.push_back(record(ids[i]));
      pointers.push_back(&reports[i]);
    }
    make_slurm_backend(fake.host, folder)->report_usage(jobs, pointers);
    return reports;
  }
  wire::JobReport ask(const std::string& id) { return ask(std::vector{id}).at(0); }
};

// The format of 22.05, and the format before 21.08, when ReqMem was per node or per CPU.
TEST_F(SlurmUsageTest, IsAskedForOnceAndForAllJobs) {
  set_accounts(
      "70|COMPLETED|100|03:20.500|4|2|614400K|||\n"
      "70.batch|COMPLETED|100|00:00.015|2|1||10488K|1\n"
      "70.0|COMPLETED|100|03:20.485|4|2||97593K|2\n"
      "70.extern|COMPLETED|100|00:00|4|2||0|2\n"
      "71_3|CANCELLED by 0|86400|2-00:00:00|8|2|4096000Kn||\n"
      "71_3.batch|CANCELLED|86400|2-00:00:00|8|1||3250585.60K|1\n"
      "72|TIMEOUT|10|00:01|3|1|1024000Kc||\n"
      "a line of a site's wrapper\n");
  const std::vector<std::string> ids{ended("70", 10), ended("71_3", 10), ended("72", 10)};
  std::vector<wire::JobReport> reports = ask(ids);
  EXPECT_EQ(calls(), std::vector<std::string>{
                         "sacct -n -P --units=K -j 70,71_3,72 -o "
                         "JobID,State,ElapsedRaw,TotalCPU,AllocCPUS,NNodes,ReqMem,MaxRSS,NTasks"});
  // Its row has an extra column, so it is ignored.
  EXPECT_FALSE(reports[0].usage_asked);
  EXPECT_FALSE(reports[0].usage);
  EXPECT_EQ(reports[1].usage, (JobUsage{8, 25, 3174, 8000}));
  EXPECT_EQ(reports[2].usage, (JobUsage{3, 3, 0, 3000}));
  EXPECT_TRUE(reports[2].usage_asked);

  set_accounts("70|COMPLETED|100|03:20.500|4|2|614400K||\n70.0|COMPLETED|100|03:20.485|4|2||97593K|2\n");
  reports = ask(ids);
  EXPECT_EQ(reports[0].usage, (JobUsage{4, 50, 191, 600}));
  EXPECT_EQ(reports[1].usage, (JobUsage{8, 25, 3174, 8000}));
  // It stays in the folders.
  EXPECT_EQ(read_job(ids[0], "slurm.used"), "4 50 191 600\n");
  EXPECT_EQ(ask(ids)[0].usage, (JobUsage{4, 50, 191, 600}));
  EXPECT_EQ(calls().size(), 2U);
}

TEST_F(SlurmUsageTest, IsWaitedForInTheFirstTwoMinutes) {
  const std::string early = ended("80", 5);
  set_accounts("80|RUNNING|100|00:00|4|2|614400K||\n");
  EXPECT_FALSE(ask(early).usage_asked);
  set_accounts("", 124);  // a timeout
  EXPECT_FALSE(ask(early).usage_asked);
  EXPECT_EQ(read_job(early, "slurm.used"), "(none)");
  set_accounts("");
  const std::string late = ended("81", 200);
  const wire::JobReport report = ask(late);
  EXPECT_TRUE(report.usage_asked);
  EXPECT_FALSE(report.usage);
  EXPECT_EQ(read_job(late, "slurm.used"), "-\n");
  EXPECT_EQ(calls().size(), 3U);
  add_program("sacct", "sleep 10");
  EXPECT_FALSE(ask(early).usage_asked);
}

TEST_F(SlurmUsageTest, CostsNothingWithoutAccounting) {
  set_accounts("Slurm accounting storage is disabled\n", 1);
  const std::string id = ended("90", 5);
  EXPECT_TRUE(ask(id).usage_asked);
  EXPECT_TRUE(ask(id).usage_asked);
  EXPECT_EQ(calls().size(), 1U);
  EXPECT_EQ(read_job(id, "slurm.used"), "-\n");
  // sacct is not asked about a job without a number.
  const std::string unknown = ended("", 5);
  EXPECT_TRUE(ask(unknown).usage_asked);
  EXPECT_EQ(calls().size(), 1U);
  // All counters are 0 if the site does not fill them.
  set_accounts("91|COMPLETED|100|00:00:00|4|2|614400K||\n91.0|COMPLETED|100|00:00:00|4|2|||2\n");
  const std::string empty = ended("91", 200);
  EXPECT_TRUE(ask(empty).usage_asked);
  EXPECT_FALSE(ask(empty).usage);
}

TEST_F(SlurmUsageTest, IsAskedForLaterAtTheProcessLimit) {
  put(fake.root() / "proc/self/cgroup", "0::/job\n");
  put(fake.root() / "sys/fs/cgroup/job/pids.max", "20\n");
  put(fake.root() / "sys/fs/cgroup/job/pids.current", "19\n");
  const std::string id = ended("90", 500);
  EXPECT_FALSE(ask(id).usage_asked);
  EXPECT_EQ(read_job(id, "slurm.used"), "(none)");
  EXPECT_TRUE(calls().empty());
}

TEST(SlurmUsageText, IsChecked) {
  EXPECT_EQ(parse_usage("8 12 3174 65536"), (JobUsage{8, 12, 3174, 65536}));
  for (const char* wrong :
       {"", "-", "0 1 1 1", "8 1 1", "8 1 1 1 1", "8 -1 1 1", "8 1 1 99999999999", "a 1 1 1"}) {
    EXPECT_EQ(parse_usage(wrong), std::nullopt) << wrong;
  }
}

TEST(SlurmUsageText, RowsAreChecked) {
  const auto parse = [](const std::string& row) {
    const auto all = parse_usage_rows(row);
    return all.empty() ? std::nullopt : std::optional(all.begin()->second);
  };
  EXPECT_EQ(parse("7|COMPLETED|10|00:10|1|1|1024K||"), (JobUsage{1, 100, 0, 1}));
  EXPECT_EQ(parse("7|COMPLETED|10|1-00:00:10.5|1|1|||"), (JobUsage{1, 864105, 0, 0}));
  for (const char* wrong :
       {"7|RUNNING|10|00:10|1|1|||", "7|COMPLETED|0|00:10|1|1|||", "7|COMPLETED|10|00:10|0|1|||",
        "7|COMPLETED|10|INVALID|1|1|||", "7|COMPLETED|10||1|1|||", "7|COMPLETED|10|-00:10|1|1|||",
        "7_|COMPLETED|10|00:10|1|1|||", "7_1_2|COMPLETED|10|00:10|1|1|||", "x|COMPLETED|10|00:10|1|1|||",
        "7.|COMPLETED|10|00:10|1|1|||", "7+0|COMPLETED|10|00:10|1|1|||", "7|COMPLETED|10|00:10|1|1||"}) {
    EXPECT_EQ(parse(wrong), std::nullopt) << wrong;
  }
  // Absurdly large numbers do not overflow.
  const std::string nines(300, '9');
  EXPECT_LE(parse("7|COMPLETED|1|999999999-00:00:00|1|1|" + nines + "K||").value().cpu_percent,
            2'000'000'000);
  EXPECT_EQ(parse("7|COMPLETED|" + nines + "|00:10|1|1|||"), std::nullopt);
}

}  // namespace
}  // namespace remote::agent
