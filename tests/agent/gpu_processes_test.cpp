#include "agent/gpus/gpu_processes.hpp"

#include <array>
#include <csignal>

#include <fcntl.h>
#include <sys/wait.h>

#include "agent/gpu_host.hpp"
#include "agent/gpus/gpus.hpp"
#include "agent/host/files.hpp"
#include "agent/host/processes.hpp"
#include "agent/host/users.hpp"
#include "agent/source_folder.hpp"
#include "agent/waiting.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

const std::string job(32, 'a');

class GpuProcesses : public test::GpuHost {
 protected:
  // From now on the host's /proc and /etc come from this test.
  void pretend_proc() {
    host.root = folder / "root";
    put(host.root / "etc/passwd",
        "root:x:0:0::/root:/bin/sh\nme:x:" + std::to_string(::geteuid()) + "::::\n");
  }
  void put_process(int pid, int parent, const std::string& environment, const std::string& comm = "python3\n",
                   std::chrono::seconds age = std::chrono::seconds(60)) {
    const fs::path process = host.root / "proc" / std::to_string(pid);
    put(process / "environ", environment);
    put(process / "comm", comm);
    put(process / "status", "Name:\tx\nPPid:\t" + std::to_string(parent) + "\n");
    const auto start = (read_boot_clock() - age).count() * ::sysconf(_SC_CLK_TCK) / 1000;
    put(process / "stat", std::to_string(pid) + " (a) b\n) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 " +
                              std::to_string(start) + " 20 21 22 23 24 25 26 27 28 29 30 31 32\n");
  }
  GpuProcess identify(int pid, const std::string& name = "") {
    std::vector<Gpu> gpus(1);
    gpus[0].processes.push_back({.pid = pid, .name = name, .memory = 5});
    identify_processes(host, gpus);
    return gpus[0].processes.at(0);
  }
};

TEST_F(GpuProcesses, HaveAnOwnerAndAnAgeAndAName) {
  pretend_proc();
  put_process(41, 1, "");
  const GpuProcess process = identify(41);
  EXPECT_EQ(process.pid, 41);
  EXPECT_EQ(process.memory, 5U);
  EXPECT_EQ(process.user, ::geteuid() == 0 ? "root" : "me");
  EXPECT_TRUE(process.own);
  ASSERT_TRUE(process.age);
  EXPECT_GE(*process.age, std::chrono::seconds(59));
  EXPECT_LT(*process.age, std::chrono::seconds(120));
  EXPECT_EQ(process.name, "python3");
  EXPECT_EQ(process.job, "");
  EXPECT_EQ(identify(41, "/opt/my, python").name, "/opt/my, python");
  put_process(42, 1, "", "a\x1b[2J\n");
  EXPECT_EQ(identify(42).name, "");
  put_process(43, 1, "", " train me\n");
  EXPECT_EQ(identify(43).name, "train me");
}

TEST_F(GpuProcesses, HaveNoNegativeAge) {
  pretend_proc();
  put_process(41, 1, "", "python3\n", std::chrono::hours(-1));
  EXPECT_EQ(identify(41).age, std::chrono::seconds(0));
  fs::remove(host.root / "proc/41/stat");
  EXPECT_EQ(identify(41).age, std::nullopt);
}

// As in LXC, where start times are relative to the boot of the machine.
TEST_F(GpuProcesses, HaveAnAgeInAContainerWithAnUptimeOfItsOwn) {
  pretend_proc();
  put(host.root / "proc/uptime", "3.00 3.00\n");
  put_process(41, 1, "");
  EXPECT_GE(identify(41).age, std::chrono::seconds(59));
}

TEST_F(GpuProcesses, AreKeptIfThereIsNoSuchProcess) {
  pretend_proc();
  const GpuProcess process = identify(999, "x");
  EXPECT_EQ(process.user, "");
  EXPECT_FALSE(process.own);
  EXPECT_EQ(process.name, "x");
  EXPECT_FALSE(process.age);
}

TEST_F(GpuProcesses, BelongToTheJobOfAParent) {
  using namespace std::string_literals;
  pretend_proc();
  put_process(41, 40, "A=1\0REMOTE_JOB_ID=xyz\0"s);
  put_process(40, 39,
              "A=1\nREMOTE_JOB_ID=" + std::string(32, 'b') + "\0XREMOTE_JOB_ID="s + std::string(32, 'c'));
  put_process(39, 38, "A=1\0REMOTE_JOB_ID="s + job + "\0"s);
  EXPECT_EQ(identify(41).job, job);
  EXPECT_EQ(identify(39).job, job);
  put_process(39, 39, "");
  EXPECT_EQ(identify(41).job, "") << "a circle ends";
}

TEST_F(GpuProcesses, OfAnotherUserHaveNoJob) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root, to give files to another user";
  }
  using namespace std::string_literals;
  pretend_proc();
  const auto give_away = [&](int pid) {
    const fs::path process = host.root / "proc" / std::to_string(pid);
    ASSERT_EQ(::chown(process.c_str(), 65534, 65534), 0);
    ASSERT_EQ(::chown((process / "environ").c_str(), 65534, 65534), 0);
  };
  put_process(41, 1, "REMOTE_JOB_ID=" + job);
  give_away(41);
  add_program("getent", "exit 2\n");
  GpuProcess process = identify(41);
  EXPECT_FALSE(process.own);
  EXPECT_EQ(process.user, "65534");
  EXPECT_EQ(process.job, "");
  put_process(42, 41, "");
  EXPECT_EQ(identify(42).job, "") << "of a parent that belongs to another user";
}

TEST_F(GpuProcesses, AreNamedByGetentIfTheyAreNotInPasswd) {
  pretend_proc();
  add_program("getent",
              "[ \"$*\" = 'passwd 4711' ] && echo 'ada:*:4711:1::/home/ada:/bin/sh'\n"
              "[ \"$*\" = 'passwd 4712' ] && echo 'DOM\\ada:*:4712:1::/home/ada:/bin/sh'\n"
              "[ \"$*\" = 'passwd 4713' ] && echo 'eve:*:1:1::/home/eve:/bin/sh'\n");
  UserNames users(host);
  EXPECT_EQ(users.find(4711), "ada");
  EXPECT_EQ(users.find(4712), "4712") << "the name has other characters";
  EXPECT_EQ(users.find(4713), "4713") << "it is about another user";
  EXPECT_EQ(users.find(4714), "4714");
  EXPECT_EQ(users.find(0), "root");
}

// A shell that runs these commands in its own process group, until the end of the test.
class Started {
 public:
  Started(const std::string& commands, const fs::path& directory, const std::string& job_id) {
    const std::string variable = "REMOTE_JOB_ID=" + job_id;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::setsid();
      const int null = ::open("/dev/null", O_RDWR);
      ::dup2(null, 0);
      ::dup2(null, 1);
      if (::chdir(directory.c_str()) == 0) {
        ::execle("/bin/sh", "sh", "-c", commands.c_str(), nullptr,
                 std::array<const char*, 2>{variable.c_str(), nullptr}.data());
      }
      ::_exit(127);
    }
  }
  ~Started() {
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;

 private:
  pid_t pid_ = -1;
};

// One of our jobs is recognized by its REMOTE_JOB_ID, even if one of its processes has another environment.
// Other users' processes show only their owner, no matter what their environment contains.
TEST_F(GpuProcesses, AreFoundOnTheRealSystem) {
  const std::string foreign_user = ::getuid() == 0 ? "/usr/bin/setpriv --reuid=65534 --clear-groups " : "";
  const Started started("env -i /bin/sleep 1000 & echo $! >child.pid; " + foreign_user +
                            "/usr/bin/env REMOTE_JOB_ID=" + std::string(32, 'f') +
                            " /bin/sleep 1000 & echo $! >foreign.pid; wait",
                        folder, job);
  const auto wait_for_pid = [&](const char* name) {
    std::string pid;
    EXPECT_TRUE(test::eventually([&] {
      pid = read_first_line(folder / name);
      return !pid.empty() && read_first_line("/proc/" + pid + "/comm") == "sleep";
    })) << name;
    return pid;
  };
  const std::string child = wait_for_pid("child.pid");
  const std::string foreign = wait_for_pid("foreign.pid");
  fs::copy(fs::path(test::source_folder) / "tests/data/gpus/535", folder / "gpus");
  const std::string uuid = "GPU-00005350-1111-2222-3333-000000005350, ";
  put(folder / "gpus/apps.csv", uuid + child + ", 1024, [Not Found]\n" + uuid + foreign +
                                    ", 2048, [Not Found]\n" + uuid + "999999999, 1, [Not Found]\n");
  add_program("nvidia-smi", pretend_nvidia(folder / "gpus"));
  const auto processes = read_gpus(host, wire::GpuDetail::brief).gpus.at(0).processes;
  ASSERT_EQ(processes.size(), 3U);
  EXPECT_EQ(processes[0].job, job);
  EXPECT_TRUE(processes[0].own);
  EXPECT_EQ(processes[0].name, "sleep");
  EXPECT_EQ(processes[0].memory, 1024ULL << 20U);
  EXPECT_TRUE(processes[0].age && *processes[0].age < std::chrono::minutes(10));
  if (::getuid() == 0) {
    EXPECT_EQ(processes[1].user, "nobody");
    EXPECT_FALSE(processes[1].own);
    EXPECT_EQ(processes[1].job, "");
  }
  EXPECT_EQ(processes[2].user, "") << "there is no such process";
}

}  // namespace
}  // namespace remote::agent
