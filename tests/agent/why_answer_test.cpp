#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "agent/job/job_files.hpp"
#include "agent/kept_replies.hpp"
#include "agent/local_jobs.hpp"
#include "agent/stacks/connections.hpp"
#include "agent/stacks/launch_sample.hpp"
#include "agent/stacks/looker.hpp"
#include "agent/stacks/why.hpp"
#include "agent/started.hpp"
#include "base/strings.hpp"
#include "wire/json_text.hpp"

namespace remote::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string job = std::string(31, 'a') + "1";

// A line of /proc/net/tcp that belongs to this user or another one.
std::string connection(const std::string& from, const std::string& to, const std::string& state,
                       const std::string& timer = "00:00000000 00000000", const std::string& probes = "0",
                       uid_t user = ::geteuid()) {
  return "   0: " + from + " " + to + " " + state + " 00000000:00000000 " + timer + " " +
         std::to_string(user) + "        " + probes + " 1234 1 0000000000000000 20 4 30 10 -1\n";
}

TEST(Connections, ThatDoNotAcknowledge) {
  const test::HostFolder folder;
  const std::string head =
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n";
  folder.put_system("proc/net/tcp",
                    head + connection("014D4D0A:A1", "024D4D0A:01", "01") +
                        connection("014D4D0A:A2", "034D4D0A:01", "01", "01:00000014 00000002") +
                        connection("014D4D0A:A3", "044D4D0A:01", "01", "01:00000014 00000001") +
                        connection("014D4D0A:A4", "054D4D0A:01", "02", "01:00000014 00000001") +
                        connection("014D4D0A:A5", "064D4D0A:01", "01", "04:00000014 00000000", "2") +
                        connection("014D4D0A:A6", "074D4D0A:01", "01", "04:00000014 00000000", "1") +
                        connection("0B4D4D0A:A7", "084D4D0A:01", "06", "01:00000014 00000009") +
                        connection("0C4D4D0A:A8", "094D4D0A:01", "01", "01:00000014 00000009", "0", 77777) +
                        connection("0100007F:A9", "0A4D4D0A:01", "01", "01:00000014 00000009") + "half a li");
  folder.put_system(
      "proc/net/tcp6",
      head +
          connection("0000000000000000FFFF0000114D4D0A:A1", "0000000000000000FFFF0000124D4D0A:01", "01",
                     "01:00000014 00000003") +
          connection("00000000000000000000000001000000:A1", "000080FE000000000000000001000000:01", "01"));
  wire::WhyReply reply;
  read_connections(folder.host, reply);
  EXPECT_THAT(reply.addresses, ElementsAre("014D4D0A", "114D4D0A"));
  EXPECT_THAT(reply.silent, ElementsAre("034D4D0A", "054D4D0A", "064D4D0A", "124D4D0A"));
}

// Processes that exist only in files.
class LaunchSampleTest : public testing::Test {
 protected:
  void add(int pid, const std::string& exe, const std::string& variables = "", int parent = 1) {
    const std::string folder = "proc/" + std::to_string(pid);
    std::string stat = std::to_string(pid) + " (x) S " + std::to_string(parent) + " 3 4";
    for (int i = 7; i <= 52; ++i) {
      stat += " " + std::to_string(i);
    }
    put(pid, "stat", stat + "\n");
    std::string environment = "REMOTE_JOB_ID=" + job + "\n" + variables;
    std::ranges::replace(environment, '\n', '\0');
    put(pid, "environ", environment);
    put(pid, "status", "Name:\tx\nUid:\t" + std::to_string(::geteuid()) + "\t0\n");
    fs::create_symlink(exe, root() / folder / "exe");
  }
  void put(int pid, const std::string& name, const std::string& text) {
    folder.put_system("proc/" + std::to_string(pid) + "/" + name, text);
  }
  void open(int pid, int fd, const std::string& to, const std::string& flags) {
    const std::string name = std::to_string(fd);
    put(pid, "fdinfo/" + name, "pos:\t0\nflags:\t" + flags + "\nmnt_id:\t15\n");
    fs::create_directories(root() / ("proc/" + std::to_string(pid) + "/fd"));
    fs::create_symlink(to, root() / ("proc/" + std::to_string(pid) + "/fd/" + name));
  }
  fs::path root() const { return fs::path(folder.host.root.string()); }
  wire::LaunchSample take(bool with_pipes = true) {
    return take_launch_sample(folder.host, {job}, with_pipes);
  }

  test::HostFolder folder;
};

TEST_F(LaunchSampleTest, HasTheStateOfAllProcesses) {
  add(100, "/usr/bin/python3.11", "RANK=2\n");
  put(100, "io", "rchar: 5\nwchar: 700\n");
  put(100, "wchan", "futex_wait_queue");
  put(100, "task/100/comm", "python\n");
  put(100, "task/100/io", "wchar: 300\n");
  put(100, "task/100/schedstat", "1 20 3\n");
  put(100, "task/101/comm", "pt_tcpstore_uv\n");
  put(100, "task/101/io", "rchar: 1\nwchar: 100\n");
  put(100, "task/101/schedstat", "1 4000000000 3\n");
  add(102, "/usr/bin/python3.11", "RANK=2\n", 100);  // a data loader
  put(102, "wchan", "0");
  const wire::LaunchSample sample = take();
  EXPECT_GT(sample.at.count(), 0);
  ASSERT_EQ(sample.ranks.size(), 1U);
  EXPECT_EQ(sample.ranks[0].id, job);
  EXPECT_EQ(sample.ranks[0].pid, 100);
  EXPECT_EQ(sample.ranks[0].rank, 2);
  EXPECT_EQ(sample.ranks[0].delay_ns, 4'000'000'020U);
  EXPECT_EQ(sample.ranks[0].throttled_us, std::nullopt);
  ASSERT_EQ(sample.processes.size(), 2U);
  EXPECT_EQ(sample.processes[0].pid, 100);
  EXPECT_EQ(sample.processes[0].parent, 1);
  EXPECT_EQ(sample.processes[0].state, "S");
  EXPECT_EQ(sample.processes[0].ticks, 14U + 15U);
  EXPECT_EQ(sample.processes[0].written, 600U) << "without the threads that answer other ranks";
  EXPECT_EQ(sample.processes[0].kernel, "futex_wait_queue");
  EXPECT_EQ(sample.processes[1].parent, 100);
  EXPECT_EQ(sample.processes[1].written, std::nullopt);
  EXPECT_EQ(sample.processes[1].kernel, "");
  put(100, "wchan", "a/b");
  EXPECT_EQ(take().processes[0].kernel, "");
}

TEST_F(LaunchSampleTest, FindsPythonByItsLibraryToo) {
  add(100, "/usr/bin/embeds");
  put(100, "maps", "7f00 r-xp 1 /usr/lib/libpython3.11.so.1.0\n");
  add(102, "/usr/bin/other");
  put(102, "maps", "7f00 r-xp 1 /usr/lib/libpython_helper.so /a/libpython3.txt\n");
  EXPECT_EQ(take().ranks.size(), 1U);
  EXPECT_EQ(take().ranks[0].pid, 100);
  EXPECT_EQ(take().processes.size(), 2U);
}

TEST_F(LaunchSampleTest, InAStepOfSlurmHasTheProcessesOfThisNode) {
  add(100, "/usr/bin/python3", "RANK=0\nSLURMD_NODENAME=n1\n");
  add(102, "/usr/bin/python3", "RANK=1\nSLURMD_NODENAME=n2\n");
  folder.host.environment["SLURMD_NODENAME"] = "n2";
  ASSERT_EQ(take().ranks.size(), 1U);
  EXPECT_EQ(take().ranks[0].rank, 1);
}

TEST_F(LaunchSampleTest, HasTheThrottlingOfTheNearestGroupWithALimit) {
  add(100, "/usr/bin/python3");
  const auto throttled = [&] { return take().ranks.at(0).throttled_us; };
  put(100, "cgroup", "0::/a/b\n");
  folder.put_system("sys/fs/cgroup/cgroup.controllers", "cpu\n");
  folder.put_system("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  folder.put_system("sys/fs/cgroup/a/cpu.max", "50000 100000\n");
  folder.put_system("sys/fs/cgroup/a/cpu.stat", "usage_usec 5\nthrottled_usec 42\n");
  EXPECT_EQ(throttled(), 42U);
  put(100, "cgroup", "0::/\n");
  EXPECT_EQ(throttled(), std::nullopt);
  put(100, "cgroup", "4:cpu,cpuacct:/c\n3:cpuset:/a\n");
  folder.put_system("sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(throttled(), std::nullopt);
  folder.put_system("sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us", "50000\n");
  folder.put_system("sys/fs/cgroup/cpu,cpuacct/c/cpu.stat", "throttled_time 42000\n");
  EXPECT_EQ(throttled(), 42U);
}

TEST_F(LaunchSampleTest, FindsTheReaderOfAPipe) {
  add(100, "/usr/bin/python3");
  put(100, "wchan", "anon_pipe_write");
  put(100, "syscall", "1 0x5 0x7f00 0x1000\n");
  open(100, 5, "pipe:[77]", "0100001");
  EXPECT_EQ(take(false).processes.at(0).pipe_fd, std::nullopt);
  EXPECT_EQ(take().processes.at(0).pipe_fd, 5);
  EXPECT_EQ(take().processes.at(0).pipe_reader, std::nullopt);
  add(102, "/bin/cat");
  open(102, 0, "pipe:[78]", "0100000");
  open(102, 1, "pipe:[77]", "0100001");
  EXPECT_EQ(take().processes.at(0).pipe_reader, std::nullopt);
  open(102, 7, "pipe:[77]", "0100000");
  EXPECT_EQ(take().processes.at(0).pipe_reader, 102);
  for (const char* odd : {"running", "1 0x7f001 0x1", "1 5 0", "1 0xg", "1 0x", ""}) {
    put(100, "syscall", odd);
    EXPECT_EQ(take().processes.at(0).pipe_fd, std::nullopt) << odd;
  }
}

class WhyAnswerTest : public testing::Test, protected test::LocalJobs {
 protected:
  WhyAnswerTest() { fs::create_directory_symlink("/sys", fs::path(host().root.string()) / "sys"); }
  std::vector<wire::WhyReply> ask(const std::string& id, const std::string& flight = "") {
    test::KeptReplies<wire::WhyReply> stream;
    wire::WhyRequest request{.place = place(), .ids = {id}, .between = std::chrono::seconds(1)};
    request.flight = flight;
    answer_why(host(), request, stream);
    return stream.parts();
  }
  std::vector<wire::KeptWhyReply> ask_kept(const std::vector<std::string>& ids) {
    test::KeptReplies<wire::KeptWhyReply> stream;
    answer_kept_why(host(), {.place = place(), .ids = ids}, stream);
    return stream.parts();
  }
};

TEST_F(WhyAnswerTest, HasTwoSamplesBetweenTheStacks) {
  const std::string id = make({{"spec.json", ""}});
  const auto process = test::run_sleep({"REMOTE_JOB_ID=" + id});
  const ProcessId main = process.id(host());
  put(id, "pid", std::to_string(main.pid) + " " + std::to_string(main.start) + "\n");
  const auto parts = ask(id);
  ASSERT_EQ(parts.size(), 5U);
  ASSERT_TRUE(parts[0].facts);
  EXPECT_FALSE(parts[0].facts->facts.disks.empty());
  EXPECT_EQ(parts[1].stacks.at(0).pid, main.pid);
  ASSERT_TRUE(parts[2].sample && parts[3].sample);
  EXPECT_EQ(parts[2].number, 0);
  EXPECT_EQ(parts[3].number, 1);
  EXPECT_GE(parts[3].sample->at - parts[2].sample->at, std::chrono::seconds(1));
  EXPECT_EQ(parts[3].sample->processes.at(0).pid, main.pid);
  EXPECT_EQ(parts[4].number, 1);
  EXPECT_EQ(parts[4].stacks.at(0).why, "it is not a Python process");
  EXPECT_FALSE(fs::exists(folder(id) / "looker"));
}

// Such as the evidence of a hang.
TEST_F(WhyAnswerTest, AnotherLookBetweenTheSamplesComesFirst) {
  const std::string id = make({{"spec.json", ""}});
  const auto process = test::run_sleep({"REMOTE_JOB_ID=" + id});
  const ProcessId main = process.id(host());
  put(id, "pid", std::to_string(main.pid) + " " + std::to_string(main.start) + "\n");
  test::Started other([&] {
    test::eventually([&] { return fs::exists(folder(id) / "looker"); });
    const Looker next(host(), jobs(), {id});
    put(id, "looked", std::to_string(read_boot_clock().count()) + "\n");
  });
  test::KeptReplies<wire::WhyReply> stream;
  answer_why(host(), {.place = place(), .ids = {id}, .between = std::chrono::seconds(2)}, stream,
             std::chrono::seconds(0));
  EXPECT_EQ(other.wait(), 0);
  const auto parts = stream.parts();
  ASSERT_EQ(parts.size(), 5U) << "the first sample is sent once";
  EXPECT_EQ(parts[1].stacks.at(0).pid, main.pid);
  ASSERT_TRUE(parts[2].sample && parts[3].sample);
  const auto looked =
      parse_number<std::int64_t>(read_job_line((folder(id) / "looked").string()).value_or(""));
  ASSERT_TRUE(looked);
  EXPECT_GE(parts[2].sample->at.count(), *looked);
  EXPECT_GE(parts[3].sample->at - parts[2].sample->at, std::chrono::seconds(2));
  EXPECT_EQ(parts[4].number, 1);
}

TEST_F(WhyAnswerTest, HasTheCollectivesOfTheFlightRecorder) {
  const std::string id = make({{"spec.json", ""}});
  const std::string program =
      "import json, sys\nprint('x')\nfor number in range(1500): print(json.dumps({'rank': 0, 'group': "
      "sys.argv[2], 'number': number, 'state': 'old', 'function': 'f', 'types': '-', 'shapes': '3x4'}))";
  const auto count = [&](const std::string& text) {
    std::size_t entries = 0;
    for (const wire::WhyReply& part : ask(id, text)) {
      entries += part.flight.size();
      EXPECT_TRUE(part.flight.empty() || part.flight[0].group == id);
    }
    return entries;
  };
  EXPECT_EQ(count(program), 0U) << "no rank has a pipe";
  put(id, "flight/pipe.0.pipe", "");
  EXPECT_EQ(count(program), 0U) << "it is not a pipe";
  ASSERT_EQ(::mkfifo((folder(id) / "flight/pipe.1.pipe").c_str(), 0600), 0);
  EXPECT_EQ(count(program), 1500U);
  EXPECT_EQ(count("print('{}')"), 0U) << "malformed";
}

TEST_F(WhyAnswerTest, TheEvidenceOfAHangIsKept) {
  const std::string none = make({{"spec.json", ""}});
  const std::string odd = make({{"why", "{}\n"}, {"hung", "x\n"}});
  const std::string kept = make({{"hung", "1700000000123 60\n"}});
  EXPECT_THAT(ask_kept({none, odd, kept}), ElementsAre(testing::Field(&wire::KeptWhyReply::part, "")));
  put(kept, "why", "noise\n" + wire::to_json_text(wire::WhyReply{}) + "\n{\"a\n");
  const auto parts = ask_kept({none, odd, kept});
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].hang->stood, std::chrono::seconds(60));
  EXPECT_EQ(parts[0].part, wire::to_json_text(wire::WhyReply{}));
  EXPECT_FALSE(parts[1].hang);
  fs::rename(folder(kept) / "why", folder(kept) / "other");
  fs::create_symlink("other", folder(kept) / "why");
  EXPECT_EQ(ask_kept({kept}).at(0).part, "") << "a link of the job";
}

}  // namespace
}  // namespace remote::agent
