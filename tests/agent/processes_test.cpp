#include "agent/host/processes.hpp"

#include <chrono>
#include <csignal>
#include <functional>
#include <thread>

#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host_folder.hpp"
#include "agent/started.hpp"

namespace remote::agent {
namespace {

const std::string job_id = "0123456789abcdef0123456789abcdef";

// "1234 (NAME) S 1 …", as in /proc/PID/stat.
std::string stat_text(const std::string& name, const std::string& rest = "S 1 1234 1233") {
  std::string text = "1234 (" + name + ") " + rest;
  for (int i = 5; i <= 52; ++i) {
    text += i == 20 ? " 777" : " " + std::to_string(i);
  }
  return text + "\n";
}

TEST(Processes, ReadsTheStatFileWhateverTheName) {
  for (const std::string name :
       {"sleep", "a b", ") S 1 1 1 1 (", "x) R 2 3 4", "line\nline", "", "(", ")", "((sd-pam))"}) {
    SCOPED_TRACE(name);
    std::string text = stat_text(name);
    const auto process = parse_process(text);
    ASSERT_TRUE(process);
    EXPECT_EQ(process->id.pid, 1234);
    EXPECT_EQ(process->name, name);
    EXPECT_EQ(process->state, 'S');
    EXPECT_EQ(process->parent, 1);
    EXPECT_EQ(process->group, 1234);
    EXPECT_EQ(process->session, 1233);
    EXPECT_EQ(process->ticks, 12U + 13U);
    EXPECT_FALSE(process->is_dead());
  }
  EXPECT_TRUE(parse_process(stat_text("x", "Z 1 2 3"))->is_dead());
  for (const std::string& text :
       {std::string(), std::string("1234"), std::string("1234 (a"), std::string("1234 (a) S 1 2"),
        stat_text("a", "S x 1 1"), "x" + stat_text("a"), std::string("1234) (S 1 2 3")}) {
    EXPECT_FALSE(parse_process(text)) << text;
  }
}

// The kernel shows no environment of a process while it becomes another program.
TEST(Processes, TheEnvironmentOfANewProcessIsWaitedFor) {
  test::HostFolder folder;
  const auto ticks = read_boot_clock().count() * ::sysconf(_SC_CLK_TCK) / 1000;
  const auto begun = [&](std::int64_t start) {
    std::string text = stat_text("sleep");
    text.replace(text.find(" 777"), 4, " " + std::to_string(start));
    return text;
  };
  folder.put_system("proc/1234/stat", begun(ticks));
  folder.put_system("proc/1234/environ", "");
  folder.put_system("proc/1234/status", "Name:\tsleep\nUid:\t" + std::to_string(::geteuid()) + "\t0\t0\t0\n");
  fs::create_symlink("/bin/sleep", folder.host.system("/proc/1234/exe").string());
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // the delay is under test
    folder.put_system("proc/1234/environ", "REMOTE_JOB_ID=" + job_id + std::string(1, '\0'));
  });
  EXPECT_EQ(read_job_variable(folder.host, 1234, ::geteuid()).job, job_id);
  later.join();
  folder.put_system("proc/1234/environ", "");
  folder.put_system("proc/1234/stat", begun(1));
  EXPECT_FALSE(read_job_variable(folder.host, 1234, ::geteuid()).is_readable) << "an old one has none";
}

TEST(Processes, AZombieIsDead) {
  const Host host = Host::of_this_process();
  const auto self = read_process(host, ::getpid());
  ASSERT_TRUE(self);
  EXPECT_EQ(self->parent, ::getppid());
  EXPECT_EQ(self->group, ::getpgrp());
  EXPECT_EQ(self->session, ::getsid(0));
  EXPECT_TRUE(is_alive(host, self->id));
  EXPECT_FALSE(is_alive(host, {self->id.pid, self->id.start + 1})) << "another process had its pid";
  EXPECT_THAT(list_processes(host), ::testing::Contains(::getpid()));
  EXPECT_EQ(find_owner(host, ::getpid()), ::geteuid());

  test::Started child([] { test::sleep_long(); });
  const ProcessId id = child.id(host);
  EXPECT_TRUE(is_alive(host, id));
  EXPECT_THAT(list_children(host, ::getpid()).value(), ::testing::Contains(id.pid));
  EXPECT_TRUE(send_signal(host, id, SIGKILL));
  ASSERT_TRUE(test::eventually([&] { return !is_alive(host, id); }));
  EXPECT_FALSE(send_signal(host, id, SIGKILL)) << "a zombie gets no signal";
  child.wait();
  EXPECT_FALSE(read_process(host, id.pid));
  EXPECT_FALSE(is_alive(host, {}));
}

TEST(Processes, ASignalReachesThisVeryProcessOnly) {
  const Host host = Host::of_this_process();
  const test::Started child([] { test::sleep_long(); });
  const ProcessId id = child.id(host);
  EXPECT_FALSE(send_signal(host, {id.pid, id.start + 1}, SIGKILL));
  EXPECT_FALSE(send_signal(host, {0, 0}, 0));
  EXPECT_FALSE(send_signal(host, {1, read_process(host, 1).value().id.start}, 0));
  EXPECT_TRUE(send_signal(host, id, 0));
  EXPECT_TRUE(is_alive(host, id));
}

TEST(Processes, AnotherUsersProcessGetsNoSignal) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root, to be another user";
  }
  const Host host = Host::of_this_process();
  const test::Started target([] { test::sleep_long(); });
  const ProcessId id = target.id(host);
  test::Started child([&] {
    test::become(65534);
    ::_exit(send_signal(host, id, SIGTERM) ? 1 : 0);
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_TRUE(is_alive(host, id));
}

TEST(Processes, OnlyTheWholeVariableNamesAJob) {
  const Host host = Host::of_this_process();
  const std::string variable = "REMOTE_JOB_ID=" + job_id;
  const auto found = [&](std::vector<std::string> environment) {
    const test::Started child = test::run_sleep(std::move(environment));
    const auto jobs = find_job_processes(host);
    const auto job = jobs.find(child.pid());
    return job == jobs.end() ? "" : job->second;
  };
  EXPECT_EQ(found({variable}), job_id);
  EXPECT_EQ(found({"A=1", variable, "B=2"}), job_id);
  EXPECT_EQ(found({"NOTE=see " + variable, "BIG=" + std::string(100'000, 'x'), variable}), job_id);
  EXPECT_EQ(found({}), "");
  EXPECT_EQ(found({"PREVIOUS_" + variable}), "");
  EXPECT_EQ(found({"NOTE=see " + variable}), "");
  EXPECT_EQ(found({"NOTE=first\n" + variable + "\nlast"}), "");
  EXPECT_EQ(found({variable + "0"}), "");
  EXPECT_EQ(found({"REMOTE_JOB_ID=0123456789ABCDEF0123456789ABCDEF"}), "");
  EXPECT_EQ(found({"REMOTE_JOB_ID="}), "");
}

TEST(Processes, ProcessesOfOtherUsersBelongToNoJob) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root, to be another user";
  }
  const Host host = Host::of_this_process();
  const test::HostFolder folder;
  for (fs::path path = folder.path(); path != fs::temp_directory_path(); path = path.parent_path()) {
    fs::permissions(path, fs::perms(0755));
  }
  // A setuid program that another user runs belongs to root.
  const fs::path su = folder.path() / "su";
  fs::copy_file(fs::canonical("/bin/sleep"), su);
  fs::permissions(su, fs::perms(04755));
  const std::vector<std::string> environment{"REMOTE_JOB_ID=" + job_id};
  const test::Started own = test::run_sleep(environment);
  const test::Started stranger = test::run_sleep(environment, 65534);
  const test::Started raised = test::run_sleep(environment, 65534, su);
  EXPECT_EQ(find_owner(host, stranger.pid()), 65534);
  EXPECT_EQ(find_owner(host, raised.pid()), 0);
  const auto jobs = find_job_processes(host);
  EXPECT_TRUE(jobs.contains(own.pid()));
  EXPECT_FALSE(jobs.contains(stranger.pid()));
  EXPECT_FALSE(jobs.contains(raised.pid()));
}

// A machine with 30 threads; 20 of them belong to this user.
class ProcessLimit : public ::testing::Test {
 protected:
  ProcessLimit() {
    folder.put_system("proc/loadavg", "0.20 0.18 0.12 1/30 11206\n");
    for (int pid = 101; pid <= 110; ++pid) {
      for (const int thread : {pid, pid + 100}) {
        fs::create_directories(folder.host.root.string() + "/proc/" + std::to_string(pid) + "/task/" +
                               std::to_string(thread));
      }
    }
  }
  void put_limit(const std::string& limit) const {
    folder.put_system("proc/self/limits",
                      "Limit                     Soft Limit           Hard Limit           Units     \n"
                      "Max cpu time              unlimited            unlimited            seconds   \n"
                      "Max processes             " +
                          limit + "                 5000                 processes \n");
  }
  std::string find() const { return find_process_limit(folder.host); }
  test::HostFolder folder;
};

TEST_F(ProcessLimit, OfTheLogin) {
  EXPECT_EQ(find(), "");
  for (const char* limit : {"unlimited", "1000", "39", "29"}) {
    put_limit(limit);
    EXPECT_EQ(find(), "") << limit;
  }
  put_limit("28");
  EXPECT_EQ(find(), "the login's limit of 28 processes (ulimit -u) is reached");
  put_limit("4");
  EXPECT_EQ(find(), "the login's limit of 4 processes (ulimit -u) is reached");
  folder.put_system("proc/loadavg", "");
  EXPECT_EQ(find(), "the login's limit of 4 processes (ulimit -u) is reached");
}

TEST_F(ProcessLimit, OfTheControlGroupAndThoseAboveIt) {
  put_limit("unlimited");
  folder.put_system("proc/self/cgroup", "0::/user.slice/a session\n");
  const std::string top = "sys/fs/cgroup/user.slice";
  folder.put_system(top + "/a session/pids.max", "max\n");
  folder.put_system(top + "/a session/pids.current", "90\n");
  EXPECT_EQ(find(), "");
  folder.put_system(top + "/a session/pids.max", "98\n");
  EXPECT_EQ(find(), "the limit of 98 processes of its control group is reached");
  folder.put_system(top + "/a session/pids.max", "99\n");
  EXPECT_EQ(find(), "");
  folder.put_system(top + "/pids.max", "100\n");
  folder.put_system(top + "/pids.current", "100\n");
  EXPECT_EQ(find(), "the limit of 100 processes of its control group is reached");

  folder.put_system("proc/self/cgroup", "12:memory:/x\n7:pids:/job\n0::/\n");
  EXPECT_EQ(find(), "");
  folder.put_system("sys/fs/cgroup/pids/job/pids.max", "10\n");
  folder.put_system("sys/fs/cgroup/pids/job/pids.current", "9\n");
  EXPECT_EQ(find(), "the limit of 10 processes of its control group is reached");
}

TEST(Processes, ClocksAndTheBoot) {
  const Host host = Host::of_this_process();
  EXPECT_EQ(read_boot_id(host).size(), 36U);
  const test::HostFolder folder;
  EXPECT_EQ(read_boot_id(folder.host), "unknown");
  const auto begin = read_boot_clock();
  ::usleep(20'000);  // the clock is under test
  EXPECT_GE((read_boot_clock() - begin).count(), 20);
  EXPECT_GT(read_wall_clock().count(), 1'700'000'000'000);
}

}  // namespace
}  // namespace remote::agent
