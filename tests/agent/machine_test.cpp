#include "agent/facts/machine.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include "agent/host_folder.hpp"
#include "wire/json.hpp"

namespace remote::agent {
namespace {

class Machine : public ::testing::Test {
 protected:
  ServerFacts read() const {
    ServerFacts facts;
    read_machine(folder.host, facts);
    return facts;
  }
  wire::FactsReply load() const {
    wire::FactsReply reply;
    read_load(folder.host, reply);
    return reply;
  }
  void put(const std::string& path, const std::string& text) const { folder.put_system(path, text); }

  test::HostFolder folder;
};

// A reply that the client accepts.
template <typename Reply>
void expect_valid(const Reply& reply) {
  EXPECT_NO_THROW(wire::from_json<Reply>(wire::to_json(reply)));
}

TEST_F(Machine, ReadsThisMachine) {
  wire::FactsReply reply;
  read_machine(Host::of_this_process(), reply.facts);
  read_load(Host::of_this_process(), reply);
  const ServerFacts& facts = reply.facts;
  EXPECT_FALSE(facts.host.empty());
  EXPECT_FALSE(facts.os.empty());
  EXPECT_FALSE(facts.kernel.empty());
  EXPECT_GE(facts.threads, facts.usable_threads);
  EXPECT_GE(facts.usable_threads, 1);
  EXPECT_GT(facts.memory, facts.memory_available);
  EXPECT_GT(facts.memory_available, 0U);
  EXPECT_EQ(facts.uid, ::getuid());
  EXPECT_EQ(facts.load.size(), 3U);
  EXPECT_EQ(facts.limits.count("nofile"), 1U);
  EXPECT_TRUE(facts.programs.contains("rsync"));
  EXPECT_GE(reply.cpus_online, facts.usable_threads);
  EXPECT_GT(reply.ticks.all, reply.ticks.busy);
  expect_valid(reply);
}

TEST_F(Machine, ReadsTheSystemsFiles) {
  std::string cpus;
  for (int i = 0; i < 8; ++i) {
    cpus += "processor\t: " + std::to_string(i) +
            "\nmodel name\t: Big: CPU @ 3 GHz\nphysical id\t: " + std::to_string(i % 2) +
            "\ncore id\t\t: " + std::to_string(i / 4) + "\n\n";
  }
  put("proc/cpuinfo", cpus);
  put("proc/sys/kernel/hostname", "node-1\n");
  put("proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
  put("proc/self/status", "Name:\tx\nUid:\t1000\t1001\t1000\t1000\nCpus_allowed_list:\t0-2,7\n");
  put("proc/self/cgroup", "0::/user.slice/user-1000.slice/session-3.scope\n");
  put("proc/self/limits",
      "Limit                     Soft Limit           Hard Limit           Units     \n"
      "Max cpu time              3600                 unlimited            seconds   \n"
      "Max core file size        0                    unlimited            bytes     \n"
      "Max processes             100                  200                  processes \n"
      "Max open files            256                  512                  files     \n"
      "Max locked memory         unlimited            unlimited            bytes     \n");
  put("sys/fs/cgroup/user.slice/memory.max", "500000\n");
  put("sys/fs/cgroup/user.slice/user-1000.slice/memory.max", "max\n");
  put("sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n");
  put("sys/devices/system/node/online", "0-3\n");
  put("etc/os-release", "NAME=x\nPRETTY_NAME=\"An OS 1\"\n");
  put("sys/module/nvidia/version", "535.104.05\n");
  const ServerFacts facts = read();
  EXPECT_EQ(facts.host, "node-1");
  EXPECT_EQ(facts.kernel, "6.1.0-18-amd64");
  EXPECT_EQ(facts.cpu, "Big: CPU @ 3 GHz");
  EXPECT_EQ(facts.sockets, 2);
  EXPECT_EQ(facts.cores, 4);
  EXPECT_EQ(facts.threads, 8);
  EXPECT_EQ(facts.usable_threads, 4);
  EXPECT_EQ(facts.uid, 1000U);
  EXPECT_EQ(facts.memory_limit, 500000U);
  EXPECT_EQ(facts.cpu_limit, 1.5);
  EXPECT_EQ(facts.numa_nodes, 4);
  EXPECT_EQ(facts.os, "An OS 1");
  EXPECT_EQ(facts.driver, "535.104.05");
  EXPECT_EQ(
      facts.limits,
      (LimitFacts{{"cpu", 3600}, {"core", 0}, {"nproc", 100}, {"nofile", 256}, {"memlock", std::nullopt}}));
  expect_valid(facts);
}

TEST_F(Machine, ReadsOldControlGroups) {
  put("proc/self/cgroup", "9:memory:/job/a\n4:cpu,cpuacct:/job\n1:name=systemd:/x\n");
  put("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "300000\n");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "50000\n");
  put("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(read().memory_limit, 300000U);
  EXPECT_EQ(read().cpu_limit, 0.5);
  fs::remove_all(folder.host.root / "sys/fs/cgroup/memory/job");
  put("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(read().memory_limit, std::nullopt) << "more than any machine has";
  EXPECT_EQ(read().cpu_limit, std::nullopt);
}

// Both hierarchies are mounted: the limits of the old one apply.
TEST_F(Machine, PrefersOldControlGroupsIfBothAreMounted) {
  put("proc/self/cgroup", "9:memory:/job\n0::/new\n");
  put("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "300000\n");
  put("sys/fs/cgroup/new/memory.max", "200\n");
  put("sys/fs/cgroup/new/cpu.max", "25000 100000\n");
  EXPECT_EQ(read().memory_limit, 300000U);
  EXPECT_EQ(read().cpu_limit, 0.25);
}

TEST_F(Machine, TakesTheLowestLimitUpToTheRootGroup) {
  put("proc/self/cgroup", "0::/a/b/c\n");
  put("sys/fs/cgroup/a/b/c/memory.max", "3000\n");
  put("sys/fs/cgroup/a/b/memory.max", "max\n");
  put("sys/fs/cgroup/memory.max", "2000\n");
  put("sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n");
  put("sys/fs/cgroup/a/b/cpu.max", "100000 300000\n");
  put("sys/fs/cgroup/a/cpu.max", "400000 100000\n");
  EXPECT_EQ(read().memory_limit, 2000U);
  EXPECT_EQ(read().cpu_limit, 0.33);
  put("proc/self/cgroup", "0::/\n");  // in a container
  EXPECT_EQ(read().memory_limit, 2000U);
  put("proc/self/cgroup", "0::no slash\nno colon\n1:one\n");
  EXPECT_EQ(read().memory_limit, 2000U);
}

TEST_F(Machine, ReadsInfiniband) {
  put("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  put("sys/class/infiniband/mlx5_0/ports/1/rate", "200 Gb/sec (4X HDR)\n");
  put("sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n");
  put("sys/class/infiniband/bnxt/ports/2/state", "1: DOWN\n");
  put("sys/class/infiniband/without/ports/1/rate", "1 Gb/sec\n");
  put("sys/class/infiniband/odd name/ports/1/state", "1: DOWN\n");
  const ServerFacts facts = read();
  ASSERT_EQ(facts.infiniband.size(), 2U);
  EXPECT_EQ(facts.infiniband[0].device, "bnxt");
  EXPECT_EQ(facts.infiniband[0].port, 2);
  EXPECT_EQ(facts.infiniband[0].layer, "unknown");
  EXPECT_EQ(facts.infiniband[0].state, "DOWN");
  EXPECT_EQ(facts.infiniband[0].rate, "");
  EXPECT_EQ(facts.infiniband[1].device, "mlx5_0");
  EXPECT_EQ(facts.infiniband[1].layer, "InfiniBand");
  EXPECT_TRUE(facts.infiniband[1].active());
  EXPECT_EQ(facts.infiniband[1].rate, "200 Gb/sec (4X HDR)");
  expect_valid(facts);
}

TEST_F(Machine, ReadsTheLogin) {
  folder.host.environment = {{"LOGNAME", "ada"}, {"USER", "bob"}};
  EXPECT_EQ(read().user, "ada");
  EXPECT_FALSE(read().linger);
  put("var/lib/systemd/linger/bob", "");
  EXPECT_FALSE(read().linger);
  put("var/lib/systemd/linger/ada", "");
  EXPECT_TRUE(read().linger);
  folder.host.environment = {{"LOGNAME", ""}, {"USER", "bob"}};
  EXPECT_EQ(read().user, "bob");
  folder.host.environment.clear();
  EXPECT_EQ(read().user, "unknown");
}

TEST_F(Machine, FindsPrograms) {
  const fs::path bin = folder.path() / "bin";
  folder.put_program(bin / "podman", "");
  folder.put_program(bin / "sbatch", "");
  folder.put_program(bin / "other", "");
  folder.put(bin / "docker", "not executable");
  fs::create_directories(bin / "mpirun");
  folder.host.environment = {{"PATH", "/nowhere:" + bin.string()}};
  EXPECT_EQ(read().programs, (std::set<std::string>{"podman", "sbatch"}));
}

TEST_F(Machine, FindsRsyncBesideThePath) {
  folder.host.environment["PATH"] = folder.path() / "bin";
  EXPECT_EQ(read().hidden_rsync, "");
  put("usr/bin/rsync", "");
  EXPECT_EQ(read().hidden_rsync, "") << "not executable";
  fs::permissions(folder.host.root / "usr/bin/rsync", fs::perms::owner_all);
  EXPECT_EQ(read().hidden_rsync, "/usr/bin/rsync");
  fs::create_directories(folder.path() / "bin");
  fs::copy_file(folder.host.root / "usr/bin/rsync", folder.path() / "bin/rsync");
  EXPECT_EQ(read().hidden_rsync, "");
}

// Some containers hide /proc and /sys.
TEST_F(Machine, ReadsNothingWithoutFiles) {
  folder.host.environment.clear();
  const wire::FactsReply reply = load();
  EXPECT_EQ(reply.cpus_online, 1);
  EXPECT_EQ(reply.ticks.all, 0U);
  EXPECT_TRUE(reply.facts.load.empty());
  EXPECT_EQ(reply.facts.memory, 0U);
  const ServerFacts facts = read();
  EXPECT_EQ(facts.host, "");
  EXPECT_EQ(facts.threads, 0);
  EXPECT_EQ(facts.uid, std::nullopt);
  EXPECT_EQ(facts.memory_limit, std::nullopt);
  EXPECT_TRUE(facts.limits.empty());
  expect_valid(reply);
  expect_valid(facts);
}

// cpuinfo on an ARM server has no sockets, cores or names.
TEST_F(Machine, CountsProcessorsOfArm) {
  put("proc/cpuinfo", "processor\t: 0\nBogoMIPS\t: 50\n\nprocessor\t: 1\nBogoMIPS\t: 50\n");
  const ServerFacts facts = read();
  EXPECT_EQ(facts.threads, 2);
  EXPECT_EQ(facts.sockets, 0);
  EXPECT_EQ(facts.cores, 0);
  EXPECT_EQ(facts.cpu, "");
}

TEST_F(Machine, TextsMoveNoCursor) {
  put("etc/os-release", "PRETTY_NAME='a\x1b[31m'\n");
  put("proc/cpuinfo", "processor: 0\nmodel name : " + std::string(5000, 'x') + "\n");
  put("proc/sys/kernel/hostname", "\x1b[2Jevil\xff\n");
  const ServerFacts facts = read();
  EXPECT_EQ(facts.os, "a\\x1b[31m");
  EXPECT_EQ(facts.cpu.size(), 200U);
  EXPECT_EQ(facts.host, "\\x1b[2Jevil\\xff");
  expect_valid(facts);
}

TEST_F(Machine, IgnoresWrongNumbers) {
  put("proc/self/status", "Uid:\t-1\t0\nCpus_allowed_list:\t3-1,x,,5-,99999999999,4\n");
  put("proc/self/limits",
      "Max open files            many                 512                  files     \n"
      "Max locked memory         9223372036854775808  unlimited            bytes     \n"
      "Max processes \n");
  put("sys/devices/system/node/online", "0-4294967295\n");
  put("proc/self/cgroup", "0::/a\n");
  put("sys/fs/cgroup/a/memory.max", "99999999999999999999\n");
  put("sys/fs/cgroup/a/cpu.max", "100000 0\n");
  const ServerFacts facts = read();
  EXPECT_EQ(facts.uid, std::nullopt);
  EXPECT_EQ(facts.usable_threads, 1);
  EXPECT_EQ(facts.numa_nodes, 1 << 20);
  EXPECT_EQ(facts.limits, (LimitFacts{{"memlock", std::nullopt}}));
  EXPECT_EQ(facts.memory_limit, std::nullopt);
  EXPECT_EQ(facts.cpu_limit, std::nullopt);
  expect_valid(facts);
}

TEST_F(Machine, ReadsTheLoad) {
  put("proc/loadavg", "0.10 0.20 0.30 1/100 1000\n");
  put("proc/stat",
      "cpu  1 2 3 4 5 6 7 8 100 100\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu7 1 2 3 4 5 6 7 8 0 0\nintr 1\ncpu9 1\n");
  put("proc/meminfo", "MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable:  900 kB\n");
  const wire::FactsReply reply = load();
  EXPECT_EQ(reply.facts.load, (std::vector<double>{0.1, 0.2, 0.3}));
  EXPECT_EQ(reply.cpus_online, 2);
  EXPECT_EQ(reply.ticks.busy, 27U);
  EXPECT_EQ(reply.ticks.all, 36U);
  EXPECT_EQ(reply.facts.memory, 1024000U);
  EXPECT_EQ(reply.facts.memory_available, 921600U);
  expect_valid(reply);
}

TEST_F(Machine, ReadsTheLoadOfOldKernels) {
  put("proc/stat", "cpu  1 2 3 4\ncpu0 1 2 3 4\n");
  put("proc/meminfo", "MemTotal:  1000 kB\nMemFree: 1 kB\n");
  const wire::FactsReply reply = load();
  EXPECT_EQ(reply.ticks.busy, 6U);
  EXPECT_EQ(reply.ticks.all, 10U);
  EXPECT_EQ(reply.facts.memory, 0U) << "without MemAvailable nothing is known";
}

TEST_F(Machine, IgnoresAWrongLoad) {
  put("proc/stat", "cpu  18446744073709551615 2 3 4\n");
  for (const char* averages : {"1 2", "1 2 nan", "-1 2 3", "1 2 9999999", ""}) {
    put("proc/loadavg", averages);
    put("proc/meminfo", "MemTotal:  9999999999999999 kB\nMemAvailable:  99999999999999999999 kB\n");
    const wire::FactsReply reply = load();
    EXPECT_TRUE(reply.facts.load.empty()) << averages;
    EXPECT_EQ(reply.facts.memory, 0U);
    expect_valid(reply);
  }
  put("proc/stat", "cpu  18446744073709551000 2 3 4\n");
  EXPECT_EQ(load().ticks.all, 0U);
  expect_valid(load());
}

}  // namespace
}  // namespace remote::agent
