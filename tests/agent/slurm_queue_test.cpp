#include "agent/slurm/queue.hpp"
#include "agent/slurm_host.hpp"

namespace remote::agent {
namespace {

using std::chrono::milliseconds;

class SlurmQueueTest : public test::SlurmHost {
 protected:
  // The job with this number or name, or "none".
  std::string find(const std::string& number, const std::string& id = "x") {
    queue.ask(milliseconds(0));
    const SlurmRow* row = queue.find(id, number);
    return row == nullptr ? "none"
                          : row->number + "," + row->state + "," + row->nodes + "," + row->until + "," +
                                row->begin + "," + row->reason;
  }

  SlurmTools tools{fake.host};
  SlurmQueue queue{fake.host, tools};
};

TEST_F(SlurmQueueTest, FindsJobsByNumberAndName) {
  set_rows(
      "12|N/A|RUNNING|n[1-2]|2024-05-01T12:00:00|2024-05-01T11:00:00|None|remote-x\n"
      "13|4|PENDING||N/A|2024-05-02T11:00:00|Resources|remote-y\n"
      "13|5|PENDING||N/A|N/A|JobArrayTaskLimit|remote-y\n"
      "14|N/A|COMPLETED|n1|N/A|N/A|(null)|remote-z\n");
  EXPECT_EQ(find("12"), "12,RUNNING,n[1-2],2024-05-01T12:00:00,2024-05-01T11:00:00,");
  EXPECT_EQ(find("13_4"), "13_4,PENDING,,N/A,2024-05-02T11:00:00,Resources");
  EXPECT_EQ(find("13_5"), "13_5,PENDING,,N/A,N/A,JobArrayTaskLimit");
  EXPECT_EQ(find("14"), "14,COMPLETED,n1,N/A,N/A,");
  EXPECT_EQ(find("13"), "none");
  EXPECT_EQ(find("1"), "none");
  EXPECT_EQ(find("", "x").substr(0, 3), "12,");
  EXPECT_EQ(find("", "y").substr(0, 5), "13_4,");
  EXPECT_EQ(find("99", "x"), "none") << "the number counts if there is one";
  EXPECT_EQ(find("", "other"), "none");
}

TEST_F(SlurmQueueTest, TakesTheLastRowOfAJob) {
  set_rows(row("12", "PENDING", "None", "remote-x") + row("12", "RUNNING", "None", "remote-x"));
  EXPECT_EQ(find("12").substr(0, 11), "12,RUNNING,");
  EXPECT_EQ(find("").substr(0, 11), "12,RUNNING,");
}

TEST_F(SlurmQueueTest, PassesByWhatIsNoRow) {
  set_rows(
      "squeue: warning: 12|N/A|RUNNING\n"
      "welcome to the cluster\n"
      "\n"
      "|N/A|RUNNING|n1|N/A|N/A|None|remote-x\n"
      "12a|N/A|RUNNING|n1|N/A|N/A|None|remote-x\n"
      "12|N/A|running|n1|N/A|N/A|None|remote-x\n"
      "12|N/A||n1|N/A|N/A|None|remote-x\n"
      "12|N/A|RUNNING|n1|remote-x\n"
      "12|N/A|CANCELLED by 0|n1|N/A|N/A|None|remote-x\n");
  EXPECT_EQ(find("12"), "none");
  EXPECT_EQ(find(""), "none");
  set_rows("12|N/A|RUNNING|$(id) n1|N/A|N/A|None|a|remote-x");
  EXPECT_EQ(find("12"), "12,RUNNING,,N/A,N/A,");
  EXPECT_EQ(find(""), "12,RUNNING,,N/A,N/A,") << "a name may have a bar";
}

TEST_F(SlurmQueueTest, AsksOncePerAge) {
  queue.ask(milliseconds(0));
  queue.ask(std::chrono::hours(1));
  EXPECT_EQ(count_calls("squeue"), 1U);
  queue.ask(milliseconds(0));
  EXPECT_EQ(count_calls("squeue"), 2U);
  EXPECT_TRUE(read_lines(fake.home() / "calls")[0].find(" -u " + std::to_string(::geteuid()) + " ") !=
              std::string::npos);
}

TEST_F(SlurmQueueTest, SaysWhatIsWrong) {
  set_rows("squeue: error: a\nsqueue: down\n", 1);
  EXPECT_EQ(find("12"), "none");
  EXPECT_EQ(queue.trouble(), "Slurm does not answer: squeue: down");
  queue.ask(std::chrono::hours(1));
  EXPECT_EQ(count_calls("squeue"), 1U) << "no answer counts for as long as an answer";
  set_rows("");
  EXPECT_EQ(find("12"), "none");
  EXPECT_EQ(queue.trouble(), "");
  add_program("squeue", "echo 12; sleep 10");
  EXPECT_EQ(find("12"), "none");
  EXPECT_EQ(queue.trouble(), "Slurm does not answer");
}

TEST_F(SlurmQueueTest, CannotAskAtTheProcessLimit) {
  put(fake.root() / "proc/self/cgroup", "0::/job\n");
  put(fake.root() / "sys/fs/cgroup/job/pids.max", "20\n");
  put(fake.root() / "sys/fs/cgroup/job/pids.current", "19\n");
  EXPECT_EQ(find("12"), "none");
  EXPECT_EQ(queue.trouble(), "the limit of 20 processes of its control group is reached");
  EXPECT_TRUE(calls().empty());
}

TEST(SlurmState, IsOfAKind) {
  for (const char* state : {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT"}) {
    EXPECT_EQ(classify_slurm_state(state), SlurmKind::queued) << state;
  }
  for (const char* state : {"CANCELLED", "COMPLETED", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "TIMEOUT"}) {
    EXPECT_EQ(classify_slurm_state(state), SlurmKind::ended) << state;
  }
  for (const char* state : {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "A_NEW_ONE"}) {
    EXPECT_EQ(classify_slurm_state(state), SlurmKind::running) << state;
  }
}

TEST_F(SlurmQueueTest, ReadsNumbersOfJobs) {
  const auto number = [&](const std::string& text) {
    const std::string id = add_job("");
    put_job(id, "slurm", text);
    return read_slurm_number(job_file(id, "").string());
  };
  EXPECT_EQ(number("12\n"), "12");
  EXPECT_EQ(number("12_3 more\n"), "12_3");
  for (const char* wrong :
       {"", "\n", "12a\n", "_3\n", "12_\n", "1_2_3\n", "-v\n", "12;13\n", "123456789012345678901\n"}) {
    EXPECT_EQ(number(wrong), "") << wrong;
  }
  const std::string id = add_job("");
  ::mkfifo(job_file(id, "slurm").c_str(), 0600);
  EXPECT_EQ(read_slurm_number(job_file(id, "").string()), "");
}

}  // namespace
}  // namespace remote::agent
