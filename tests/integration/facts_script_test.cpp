// facts.sh on the shells there are: on this machine as it is, and with files of the test's own in the places
// of the system's.

#include <chrono>
#include <ctime>
#include <regex>

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "servers/facts.hpp"
#include "support/golden.hpp"
#include "support/script_test.hpp"

namespace remote::servers {
namespace {

namespace fs = std::filesystem;
using test::ServerShell;

class FactsScript : public test::ScriptTest {
 protected:
  void put(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    write_file_atomic(path, text);
  }
  fs::path root() { return servers.home("a") / "the root"; }
  FactsRequest request() {
    FactsRequest request = check_request(config, config.servers.front());
    request.root = root();
    return request;
  }
  ServerFacts ask() { return run(facts_action(check_request(config, config.servers.front()))).facts; }
  ServerFacts ask_root() { return run(facts_action(request())).facts; }
  fs::path home() { return servers.home("a"); }

  config::Config config = config::parse(
      "name: my proj\npython: {manager: venv}\nservers:\n  a: {hostname: a}\n", "/home/me/proj");
};

TEST_P(FactsScript, TellsAboutThisMachine) {
  const ServerFacts facts = ask();
  EXPECT_FALSE(facts.os.empty());
  EXPECT_FALSE(facts.kernel.empty());
  EXPECT_GE(facts.threads, facts.usable_threads);
  EXPECT_GE(facts.usable_threads, 1);
  EXPECT_GT(facts.memory, facts.memory_available);
  EXPECT_EQ(facts.uid, ::getuid());
  EXPECT_EQ(facts.load.size(), 3U);
  EXPECT_EQ(facts.limits.count("nofile"), 1U);
  EXPECT_TRUE(facts.programs.contains("rsync"));
  EXPECT_FALSE(facts.kill_user_processes);
}

TEST_P(FactsScript, ComparesItsClock) {
  const FactsAnswer answer = run(facts_action({.parts = {{"tell_clock"}}}));
  EXPECT_LE(std::chrono::abs(now_seconds() - answer.clock), std::chrono::minutes(1));
}

TEST_P(FactsScript, LooksAtTheDisks) {
  fs::create_directories(home() / "my proj");
  const ServerFacts facts = ask();
  const DiskFacts* project = facts.disk("project");
  ASSERT_NE(project, nullptr);
  EXPECT_TRUE(project->there && project->writable);
  EXPECT_EQ(project->path, home() / "my proj");
  struct statvfs info {};
  ASSERT_EQ(::statvfs(project->path.c_str(), &info), 0);
  EXPECT_EQ(project->total_bytes, static_cast<std::uint64_t>(info.f_blocks) * info.f_frsize);
  EXPECT_EQ(project->inodes, info.f_files);
  struct stat status {};
  ASSERT_EQ(::stat(project->path.c_str(), &status), 0);
  EXPECT_EQ(project->device, status.st_dev);
  const DiskFacts* environment = facts.disk("environment");
  ASSERT_NE(environment, nullptr);
  EXPECT_FALSE(environment->there);
  EXPECT_EQ(environment->path, home() / "my proj") << "the nearest folder above it";
  ASSERT_NE(facts.disk("tmp"), nullptr);
}

TEST_P(FactsScript, TellsWhereNoJobCanBeKept) {
  fs::create_directories(home() / "my proj");
  EXPECT_FALSE(ask().jobs_closed);
  const fs::path jobs = home() / "my proj" / config.remote_jobs_folder_name;
  put(jobs, "a file");
  EXPECT_TRUE(ask().jobs_closed);
  fs::remove(jobs);
  fs::create_symlink("nowhere", jobs);
  EXPECT_TRUE(ask().jobs_closed);
  fs::remove(jobs);
  fs::create_directory(jobs);
  EXPECT_FALSE(ask().jobs_closed);
}

TEST_P(FactsScript, ReadsWhetherADiskTurns) {
  fs::create_directories(home());
  struct stat status {};
  ASSERT_EQ(::stat(home().c_str(), &status), 0);
  const std::string name = std::to_string(major(status.st_dev)) + ":" + std::to_string(minor(status.st_dev));
  put(root() / "sys/dev/block" / name / "queue/rotational", "0\n");
  EXPECT_EQ(ask_root().disk("project")->rotational, false);
  put(root() / "sys/dev/block" / name / "queue/rotational", "1\n");
  EXPECT_EQ(ask_root().disk("project")->rotational, true);
}

TEST_P(FactsScript, TellsWithoutSharedMemory) {
  FactsRequest request = check_request(config, config.servers.front());
  request.shm = home() / "none";
  EXPECT_EQ(run(facts_action(request)).facts.disk("shm"), nullptr);
}

TEST_P(FactsScript, ReadsTheMachinesFiles) {
  const fs::path proc = root() / "proc";
  std::string cpus;
  for (int i = 0; i < 8; ++i) {
    cpus += "processor\t: " + std::to_string(i) +
            "\nmodel name\t: Big: CPU @ 3 GHz\nphysical id\t: " + std::to_string(i % 2) +
            "\ncore id\t\t: " + std::to_string(i / 4) + "\n\n";
  }
  put(proc / "cpuinfo", cpus);
  put(proc / "meminfo", "MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable:  900 kB\n");
  put(proc / "self/status", "Name:\tx\nUid:\t1000\t1000\t1000\t1000\nCpus_allowed_list:\t0-2,7\n");
  put(proc / "self/cgroup", "0::/user.slice/user-1000.slice/session-3.scope\n");
  put(proc / "self/limits",
      "Limit                     Soft Limit           Hard Limit           Units     \n"
      "Max processes             100                  200                  processes \n"
      "Max open files            256                  512                  files     \n"
      "Max locked memory         unlimited            unlimited            bytes     \n");
  put(root() / "sys/fs/cgroup/user.slice/memory.max", "500000\n");
  put(root() / "sys/fs/cgroup/user.slice/user-1000.slice/memory.max", "max\n");
  put(root() / "sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n");
  put(root() / "sys/devices/system/node/online", "0-3\n");
  put(root() / "etc/os-release", "NAME=x\nPRETTY_NAME=\"An OS 1\"\n");
  put(root() / "sys/module/nvidia/version", "535.104.05\n");
  put(root() / "sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  put(root() / "sys/class/infiniband/mlx5_0/ports/1/rate", "200 Gb/sec (4X HDR)\n");
  put(root() / "sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n");
  const ServerFacts facts = ask_root();
  EXPECT_EQ(facts.cpu, "Big: CPU @ 3 GHz");
  EXPECT_EQ(facts.sockets, 2);
  EXPECT_EQ(facts.cores, 4);
  EXPECT_EQ(facts.threads, 8);
  EXPECT_EQ(facts.usable_threads, 4);
  EXPECT_EQ(facts.uid, 1000U);
  EXPECT_EQ(facts.memory, 1024000U);
  EXPECT_EQ(facts.memory_limit, 500000U);
  EXPECT_EQ(facts.cpu_limit, 1.5);
  EXPECT_EQ(facts.numa_nodes, 4);
  EXPECT_EQ(facts.os, "An OS 1");
  EXPECT_EQ(facts.driver, "535.104.05");
  EXPECT_EQ(facts.limits, (LimitFacts{{"nproc", 100}, {"nofile", 256}, {"memlock", std::nullopt}}));
  EXPECT_TRUE(facts.in_session);
  ASSERT_EQ(facts.infiniband.size(), 1U);
  EXPECT_EQ(facts.infiniband.front().layer, "InfiniBand");
  EXPECT_TRUE(facts.infiniband.front().active());
  EXPECT_EQ(facts.infiniband.front().rate, "200 Gb/sec (4X HDR)");
}

TEST_P(FactsScript, ReadsOldControlGroups) {
  put(root() / "proc/self/cgroup", "9:memory:/job/a\n4:cpu,cpuacct:/job\n1:name=systemd:/x\n");
  put(root() / "sys/fs/cgroup/memory/job/memory.limit_in_bytes", "300000\n");
  put(root() / "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put(root() / "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "50000\n");
  put(root() / "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  const ServerFacts facts = ask_root();
  EXPECT_EQ(facts.memory_limit, 300000U);
  EXPECT_EQ(facts.cpu_limit, 0.5);
}

TEST_P(FactsScript, ReadsWhatLogindDoesAtLogout) {
  fs::create_directories(root() / "run/systemd/system");
  put(root() / "etc/systemd/logind.conf", "[Login]\n#KillUserProcesses=yes\nKillUserProcesses=no\n");
  EXPECT_FALSE(ask_root().kill_user_processes);
  put(root() / "etc/systemd/logind.conf.d/a.conf",
      "[Login]\nKillUserProcesses=yes\nKillExcludeUsers=root bob\n");
  const ServerFacts facts = ask_root();
  EXPECT_TRUE(facts.kill_user_processes);
  EXPECT_EQ(facts.kill_excluded, (std::vector<std::string>{"root", "bob"}));
  EXPECT_FALSE(facts.in_session) << "no session of logind is told";
  fs::remove_all(root() / "run/systemd");
  EXPECT_FALSE(ask_root().kill_user_processes) << "there is no systemd";
}

TEST_P(FactsScript, ReadsPackagesWithoutStartingTheEnvironmentsPython) {
  const fs::path env = home() / "my proj/.venv";
  put(env / "bin/python", "#!/bin/sh\n");
  put(env / "bin/python3", "#!/bin/sh\n[ \"$*\" = -V ] || exit 9\necho Python 3.9.7\n");
  fs::permissions(env / "bin/python", fs::perms::owner_all);
  fs::permissions(env / "bin/python3", fs::perms::owner_all);
  put(env / "pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\n");
  const fs::path site = env / "lib/python3.9/site-packages";
  put(site / "torch/version.py",
      "from typing import Optional\n__all__ = ['__version__']\n__version__ = '2.1.0+cu121'\ndebug = False\n"
      "cuda: Optional[str] = '12.1'\ngit_version = 'x'\nhip: Optional[str] = None\n");
  for (const char* name :
       {"numpy-1.26.4.dist-info", "nvidia_nccl_cu12-2.18.1.dist-info", "a b-1.dist-info"}) {
    fs::create_directories(site / name);
  }
  const ServerFacts facts = ask();
  EXPECT_EQ(facts.python, "3.9.7");
  EXPECT_EQ(facts.python_program, env / "bin/python3");
  EXPECT_EQ(facts.torch, "2.1.0+cu121");
  EXPECT_EQ(facts.cuda, "12.1");
  EXPECT_EQ(facts.hip, "");
  EXPECT_EQ(facts.nccl, "2.18.1");
  EXPECT_EQ(facts.packages.size(), 2U);
  EXPECT_EQ(facts.packages.at("numpy").version, "1.26.4");
}

TEST_P(FactsScript, AnswersWithoutPython) {
  servers.add_program("python3", "exit 127\n");
  servers.add_program("python", "exit 127\n");
  EXPECT_EQ(ask().python, "");
}

// All that the parts answer, as docs/protocol.md tells it.
TEST_P(FactsScript, AnswersTheseLines) {
  put(root() / "proc/sys/kernel/hostname", "node-1\n");
  put(root() / "proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
  put(root() / "proc/cpuinfo", "processor\t: 0\nmodel name\t: Big CPU\nphysical id\t: 0\ncore id\t\t: 0\n");
  put(root() / "proc/meminfo", "MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable:  900 kB\n");
  put(root() / "proc/loadavg", "0.10 0.20 0.30 1/100 1000\n");
  put(root() / "proc/stat", "cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\nintr 1\n");
  put(root() / "proc/self/status", "Uid:\t1000\t1000\t1000\t1000\nCpus_allowed_list:\t0-2,7\n");
  put(root() / "proc/self/cgroup", "0::/user.slice/user-1000.slice/session-3.scope\n");
  put(root() / "proc/self/limits",
      "Max open files            256                  512                  files\n");
  put(root() / "sys/fs/cgroup/user.slice/memory.max", "500000\n");
  put(root() / "sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n");
  put(root() / "sys/devices/system/node/online", "0-3\n");
  put(root() / "sys/module/nvidia/version", "535.104.05\n");
  put(root() / "sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  put(root() / "sys/class/infiniband/mlx5_0/ports/1/rate", "200 Gb/sec (4X HDR)\n");
  put(root() / "sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n");
  put(root() / "etc/os-release", "PRETTY_NAME=\"An OS 1\"\n");
  put(root() / "etc/systemd/logind.conf",
      "KillUserProcesses=yes\nKillExcludeUsers=root bob\nKillOnlyUsers=ada\n");
  fs::create_directories(root() / "run/systemd/system");
  const fs::path env = home() / "env";
  fs::create_directories(env / "bin");
  write_file_atomic(env / "bin/python3", "#!/bin/sh\necho Python 3.9.7\n", 0755);
  put(env / "pyvenv.cfg", "home = /usr/bin\n");
  put(env / "lib/python3.9/site-packages/torch/version.py",
      "__version__ = '2.1.0+cu121'\ncuda = '12.1'\nhip = None\n");
  fs::create_directories(env / "lib/python3.9/site-packages/numpy-1.26.4.dist-info");
  servers.add_program("mpirun", "echo 'mpirun (Open MPI) 4.1.4'\n");
  servers.add_program("orted", "");
  servers.add_nvidia_smi(fs::path(test::source_folder) / "tests/data/gpus/535");
  FactsRequest request{.parts = check_request(config, config.servers.front()).parts,
                       .project = (home() / "my proj").string(),
                       .environment = env.string(),
                       .activate = "PATH='" + (env / "bin").string() + "':$PATH",
                       .root = root(),
                       .shm = home()};
  request.parts.back() = {"tell_gpus", "brief"};
  request.parts.insert(request.parts.end(), {{"tell_program", "no-such"},
                                             {"tell_mpi"},
                                             {"tell_route", "127.0.0.1", "no-such-ip"},
                                             {"tell_port", "0"}});
  std::string lines = exec(facts_action(request).script.input());
  EXPECT_NO_THROW(read_answer(lines, FactsAnswer(request.parts)));
  // what this machine is
  const std::pair<const char*, const char*> own[] = {
      {"facts (clock|suggest|second|user) .*", "facts $1 …"},
      {"facts (disk [a-z]+) .*", "facts $1 …"},
      {"facts (path [a-z]+|python [0-9.]+) .*", "facts $1 …"},
      {"@remote1 facts has .*\n", ""},
      {"whole (root|user)", "whole …"},
      {"client (root|user)", "client …"},
      {"([^\n])\n\n+", "$1\n"}};  // keep.sh, where it takes long
  for (const auto& [pattern, text] : own) {
    lines = std::regex_replace(lines, std::regex(pattern), text);
  }
  test::expect_golden("facts.txt", lines);
}

INSTANTIATE_TEST_SUITE_P(Shells, FactsScript, test::every_shell, test::shell_name);

}  // namespace
}  // namespace remote::servers
