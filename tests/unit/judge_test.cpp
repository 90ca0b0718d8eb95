#include "project/check/judge.hpp"

#include <algorithm>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remote::project {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t mib = 1024UL * 1024;
constexpr std::uint64_t gib = 1024 * mib;

config::Config parsed(const std::string& yaml = "") {
  return config::parse("name: proj\nservers:\n  gpu1: {hostname: h1" + yaml + "}\n", "/home/me/proj");
}

DiskFacts disk(const std::string& what, std::uint64_t device, std::uint64_t total, std::uint64_t free) {
  DiskFacts facts;
  facts.what = what;
  facts.path = what == "tmp" ? "/tmp" : "/home/ada/" + what;
  facts.there = facts.writable = true;
  facts.device = device;
  facts.total_bytes = total;
  facts.free_bytes = free;
  facts.inodes = 1'000'000;
  facts.free_inodes = 900'000;
  return facts;
}

ServerFacts healthy() {
  ServerFacts facts;
  facts.os = "Debian GNU/Linux 12 (bookworm)";
  facts.kernel = "6.1.0";
  facts.user = "ada";
  facts.uid = 1000;
  facts.cpu = "AMD EPYC 7763";
  facts.sockets = 2;
  facts.cores = 128;
  facts.threads = facts.usable_threads = 256;
  facts.memory = 512 * gib;
  facts.memory_available = 500 * gib;
  facts.load = {0.1, 0.2, 0.3};
  facts.disks = {disk("project", 1, 900 * gib, 400 * gib), disk("environment", 1, 900 * gib, 400 * gib),
                 disk("tmp", 2, 50 * gib, 40 * gib), disk("shm", 3, 256 * gib, 256 * gib)};
  facts.limits = {{"nofile", 1024}, {"nproc", 2'000'000}, {"memlock", 8 * mib}, {"core", 0}};
  facts.python = "3.11.2";
  facts.python_program = "/home/ada/environment/bin/python3";
  facts.torch = "2.1.0+cu121";
  facts.cuda = "12.1";
  facts.nccl = "2.18.1";
  facts.packages = {{"numpy", {"1.26.4", false}}, {"six", {"1.16.0", true}}};
  facts.driver = "535.104.05";
  facts.programs = {"rsync"};
  facts.gpus.gpus.resize(1);
  return facts;
}

DiskFacts& disk_of(ServerFacts& facts, const std::string& what) {
  return *std::ranges::find(facts.disks, what, &DiskFacts::what);
}

const Finding* found(const std::vector<Finding>& findings, const std::string& name) {
  const auto at = std::ranges::find(findings, name, &Finding::name);
  return at == findings.end() ? nullptr : &*at;
}

std::vector<Finding> judged(const ServerFacts& facts, const std::string& yaml = "") {
  const config::Config config = parsed(yaml);
  return judge_server(config, config.servers.front(), facts);
}

// A launch has the version of the driver, but not the CUDA version it supports.
TEST(Judge, TheVersionOfADriverTellsWhichCudaItKnows) {
  const auto torch = [](const char* cuda, const char* hip, GpuVendor vendor, const char* driver) {
    ServerFacts facts;
    facts.torch = "2.6.0";
    facts.cuda = cuda;
    facts.hip = hip;
    facts.gpus.gpus.emplace_back().vendor = vendor;
    facts.gpus.tools.push_back({.vendor = vendor, .program = "nvidia-smi", .driver_version = driver});
    const Finding finding = torch_finding(facts);
    EXPECT_EQ(finding.status == CheckStatus::ok, finding.detail.find(": ") == std::string::npos);
    return finding.detail.substr(finding.detail.find(": ") + 1);
  };
  const GpuVendor nvidia = GpuVendor::nvidia;
  EXPECT_EQ(torch("12.4", "", nvidia, "470.82.01"), " the driver supports CUDA up to 11.x");
  EXPECT_EQ(torch("12.4", "", nvidia, "525.60.13"), "2.6.0, CUDA 12.4");
  EXPECT_EQ(torch("13.0", "", nvidia, "575.57.08"), " the driver supports CUDA up to 12.x");
  EXPECT_EQ(torch("13.0", "", nvidia, "580.65.06"), "2.6.0, CUDA 13.0");
  EXPECT_EQ(torch("14.0", "", nvidia, "580.65.06"), " the driver supports CUDA up to 13.x");
  EXPECT_EQ(torch("11.8", "", nvidia, "440.33"), "2.6.0, CUDA 11.8") << "unknown";
  EXPECT_EQ(torch("12.4", "", nvidia, ""), "2.6.0, CUDA 12.4") << "unknown";
  EXPECT_EQ(torch("", "6.2", nvidia, "580.65.06"), " it is built for ROCm, but the server has NVIDIA GPUs");
  EXPECT_EQ(torch("12.4", "", GpuVendor::amd, ""), " it is built for CUDA, but the server has AMD GPUs");
  EXPECT_EQ(torch("", "6.2", GpuVendor::amd, ""), "2.6.0, ROCm 6.2");
  EXPECT_EQ(torch("", "", GpuVendor::amd, ""), " it is built for CPUs only, but the server has 1 GPU");
  EXPECT_EQ(torch("", "", GpuVendor::intel, ""), "2.6.0") << "torch has other files for them";
}

TEST(Judge, TorchMustKnowTheGpusOfTheServer) {
  struct Case {
    const char* torch;
    const char* cuda;
    const char* driver;  // the CUDA version it supports
    const char* detail;  // "": no problem
  };
  constexpr Case cases[] = {
      {"2.6.0+cu124", "12.4", "11.4", "CUDA 12.4: the driver supports CUDA up to 11.4"},
      {"2.6.0+cu124", "12.4", "12.0", ""},  // same major version
      {"2.6.0+cu118", "11.8", "12.4", ""},
      {"2.6.0+cpu", "", "12.4", "2.6.0+cpu: it is built for CPUs only, but the server has 1 GPU"},
      {"2.6.0+cu124", "12.4", "", ""}};
  for (const Case& one : cases) {
    ServerFacts facts = healthy();
    facts.torch = one.torch;
    facts.cuda = one.cuda;
    facts.nccl.clear();
    GpuTool tool;
    tool.program = "nvidia-smi";
    tool.state = GpuToolState::answered;
    tool.library_version = one.driver;
    facts.gpus.tools = {tool};
    const std::vector<Finding> findings = judged(facts);
    const Finding* torch = found(findings, "torch");
    ASSERT_NE(torch, nullptr);
    EXPECT_EQ(torch->status, *one.detail == 0 ? CheckStatus::ok : CheckStatus::warn) << one.torch;
    EXPECT_THAT(torch->detail, testing::HasSubstr(one.detail));
    facts.gpus.gpus.clear();
    EXPECT_EQ(found(judged(facts), "torch")->status, CheckStatus::ok) << "no GPU is there";
  }
}

TEST(Judge, AHealthyServerGetsNoWarning) {
  for (const Finding& finding : judged(healthy())) {
    EXPECT_EQ(finding.status, CheckStatus::ok) << finding.name << ": " << finding.detail;
    EXPECT_FALSE(finding.fix) << finding.name;
  }
}

// Normal values that look unusual.
TEST(Judge, AUsualServerGetsNoWarning) {
  ServerFacts facts = healthy();
  facts.torch.clear();
  facts.sockets = facts.cores = 0;       // ARM
  facts.load = {500, 300, 10};           // as many of the user's own ranks as there are threads
  disk_of(facts, "project").inodes = 0;  // btrfs
  disk_of(facts, "project").free_inodes = 0;
  facts.in_session = facts.kill_user_processes = true;
  facts.kill_excluded = {"root", "ada"};
  facts.clock_ahead = std::chrono::duration<double>(-2);
  facts.memory_limit = 64 * gib;
  for (const Finding& finding : judged(facts)) {
    EXPECT_TRUE(finding.status == CheckStatus::ok || finding.status == CheckStatus::skip)
        << finding.name << ": " << finding.detail;
  }
}

struct Case {
  const char* what;
  std::function<void(ServerFacts&)> spoil;
  const char* name;
  CheckStatus status;
  const char* detail;
  const char* fix;
  std::string yaml = {};
};

TEST(Judge, FindsWhatIsWrongAndNamesWhatMendsIt) {
  constexpr CheckStatus warn = CheckStatus::warn;
  constexpr CheckStatus fail = CheckStatus::fail;
  const std::vector<Case> cases = {
      {"full disk",
       [](ServerFacts& f) {
         disk_of(f, "project").free_bytes = 0;
         disk_of(f, "environment").free_bytes = 0;
       },
       "disk", fail, "0 B of 900 GiB are free where the project and the environment are", "du -xhd 2 "},
      {"nearly full disk", [](ServerFacts& f) { disk_of(f, "project").free_bytes = 500 * mib; }, "disk", warn,
       "500 MiB of", "# old jobs: remote job-clean"},
      {"full /tmp", [](ServerFacts& f) { disk_of(f, "tmp").free_bytes = mib; }, "disk", fail,
       "free where /tmp is", "set TMPDIR in `env`"},
      {"missing TMPDIR", [](ServerFacts& f) { disk_of(f, "tmp").unusable_tmpdir = "/scratch/none"; }, "disk",
       warn, "TMPDIR is /scratch/none, which is not a folder", "mkdir -p /scratch/none"},
      {"no inodes", [](ServerFacts& f) { disk_of(f, "project").free_inodes = 3; }, "inodes", fail,
       "3 of 1000000 inodes are free", "du --inodes"},
      {"few inodes", [](ServerFacts& f) { disk_of(f, "tmp").free_inodes = 500; }, "inodes", warn, "500 of",
       "du --inodes -xd 2 /tmp"},
      {"small shm",
       [](ServerFacts& f) { disk_of(f, "shm").total_bytes = disk_of(f, "shm").free_bytes = 64 * mib; }, "shm",
       warn, "64 MiB of 64 MiB are free in /dev/shm", "mount -o remount,size=50% /dev/shm"},
      {"full shm", [](ServerFacts& f) { disk_of(f, "shm").free_bytes = mib; }, "shm", fail,
       "1.0 MiB of 256 GiB", "ls -lS /dev/shm"},
      {"no shm", [](ServerFacts& f) { f.disks.pop_back(); }, "shm", fail, "there is no /dev/shm", "mount "},
      {"clock ahead", [](ServerFacts& f) { f.clock_ahead = std::chrono::duration<double>(60); }, "clock",
       warn, "60 s ahead of this machine's", "timedatectl set-ntp true"},
      {"clock behind", [](ServerFacts& f) { f.clock_ahead = std::chrono::duration<double>(-61.2); }, "clock",
       warn, "61 s behind this machine's", "timedatectl"},
      {"no rsync", [](ServerFacts& f) { f.programs.clear(); }, "rsync", fail, "is not installed",
       "apt-get install -y rsync"},
      {"a PATH without rsync",
       [](ServerFacts& f) {
         f.programs.clear();
         f.hidden_rsync = "/usr/bin/rsync";
       },
       "rsync", warn, "/usr/bin/rsync is not on the login's PATH: the project can be sent",
       "instead of replacing it"},
      {"no python", [](ServerFacts& f) { f.python.clear(); }, "python", fail, "no python3",
       "apt-get install -y python3"},
      {"shared memory ends at logout", [](ServerFacts& f) { f.in_session = f.removes_ipc = true; }, "logout",
       warn, "RemoveIPC=yes", "loginctl enable-linger"},
      {"a project on AFS", [](ServerFacts& f) { disk_of(f, "project").access_needs = "AFS tokens"; },
       "logout", warn, "they need AFS tokens, which may end with the last login", "another disk"},
      {"PYTHONPATH of the login", [](ServerFacts& f) { f.python_path = "/opt/site"; }, "python-path", warn,
       "the login sets PYTHONPATH=/opt/site", "unset PYTHONPATH"},
      {"PYTHONHOME of the login", [](ServerFacts& f) { f.python_home = "/opt/python"; }, "python-path", warn,
       "the login sets PYTHONHOME=/opt/python", "unset PYTHONHOME"},
      {"processes end at logout", [](ServerFacts& f) { f.in_session = f.kill_user_processes = true; },
       "logout", fail, "KillUserProcesses=yes", "KillExcludeUsers=root ada"},
      {"they end for some",
       [](ServerFacts& f) {
         f.in_session = f.kill_user_processes = true;
         f.kill_excluded = {"bob"};
         f.kill_only = {"ada"};
       },
       "logout", fail, "jobs would die", "KillExcludeUsers=bob ada"},
      {"few files", [](ServerFacts& f) { f.limits["nofile"] = 256; }, "limits", warn, "may open 256 files",
       "ada - nofile 65536"},
      {"a prologue that fails", [](ServerFacts& f) { f.prologue_failure = 3; }, "prologue", fail,
       "fails there (exit code 3)", "remote run --server "},
      {"a limit of time", [](ServerFacts& f) { f.limits["cpu"] = 3600; }, "limits", warn,
       "stopped after 3600 s of processor time", "ada - cpu unlimited"},
      {"a limit of address space", [](ServerFacts& f) { f.limits["as"] = 8192 * mib; }, "limits", warn,
       "8.0 GiB of address space", "ada - as unlimited"},
      {"small files", [](ServerFacts& f) { f.limits["fsize"] = 512 * mib; }, "limits", warn,
       "at most 512 MiB (ulimit -f)", "ada - fsize unlimited"},
      {"a link to a disk that is not mounted",
       [](ServerFacts& f) {
         disk_of(f, "project").there = false;
         disk_of(f, "project").dangling = "/data/proj";
       },
       "project", fail, "is a link to /data/proj, which does not exist", "mount the disk"},
      {"few processes", [](ServerFacts& f) { f.limits["nproc"] = 100; }, "limits", warn, "100 processes",
       "nproc 65536"},
      {"RDMA without locked memory",
       [](ServerFacts& f) {
         f.infiniband = {{"mlx5_0", 1, "InfiniBand", "ACTIVE", ""}};
       },
       "limits", warn, "lock 8.0 MiB of memory", "memlock unlimited"},
      {"no port works",
       [](ServerFacts& f) {
         f.infiniband = {{"mlx5_0", 1, "InfiniBand", "DOWN", ""}};
       },
       "infiniband", warn, "mlx5_0:1 DOWN", "ibstat"},
      {"little memory", [](ServerFacts& f) { f.memory_available = 100 * mib; }, "memory", warn,
       "100 MiB of 512 GiB", "ps "},
      {"others compute",
       [](ServerFacts& f) {
         f.load = {900, 900, 900};
       },
       "load", warn, "900.0 over five minutes", "ps "},
      {"no project", [](ServerFacts& f) { disk_of(f, "project").there = false; }, "project", warn,
       "~/proj is not there yet", "remote prepare --server gpu1"},
      {"a quota",
       [](ServerFacts& f) {
         f.flaw = FolderFlaw::quota;
         f.flaw_text = "Disk quota exceeded";
       },
       "project", fail, "the quota of this login is used up: ", "quota -s"},
      {"a disk of Windows",
       [](ServerFacts& f) {
         f.flaw = FolderFlaw::no_modes;
         f.flaw_text = "Operation not permitted";
       },
       "project", fail, "does not keep modes, which a run needs", "choose another remote_path"},
      {"jobs of another", [](ServerFacts& f) { f.jobs_closed = true; }, "project", fail, "no job starts",
       "move it away"},
      {"project that others can write to", [](ServerFacts& f) { f.open_path = "/home/ada/proj/lib"; },
       "project", warn, "/home/ada/proj/lib is writable by other users", "chmod -R go-w"},
      {"project of another", [](ServerFacts& f) { disk_of(f, "project").writable = false; }, "project", fail,
       "cannot be written", "chmod u+rwx /home"},
      {"no place for the project",
       [](ServerFacts& f) { disk_of(f, "project").there = disk_of(f, "project").writable = false; },
       "project", fail, "cannot be written by this login", "remote_path"},
      {"no environment", [](ServerFacts& f) { disk_of(f, "environment").there = false; }, "environment", warn,
       "is not there yet", "remote prepare --server gpu1"},
      {"an environment whose Python is gone", [](ServerFacts& f) { f.python_program = "/usr/bin/python3"; },
       "environment", fail, "has no working Python", "remote prepare --server gpu1"},
      {"no Python on the PATH of jobs",
       [](ServerFacts& f) {
         f.python = f.python_program = "";
         f.hidden_python = "/opt/my conda/bin/python3";
       },
       "python", fail, "/opt/my conda/bin/python3 is not on their PATH",
       "prologue: export PATH='/opt/my conda/bin':$PATH"},
      {"a Python that fails",
       [](ServerFacts& f) {
         f.python = f.python_program = "";
         f.python_refusal = "/x/python3: pyenv: python3: command not found";
       },
       "python", fail, "no working python3 was found; /x/python3: pyenv: python3",
       "apt-get install -y python3"},
      {"no Slurm", [](ServerFacts&) {}, "slurm", fail, "no sbatch", "login node", ", scheduler: slurm"},
      {"no engine", [](ServerFacts&) {}, "container", fail, "podman was found", "apt-get install -y podman",
       ", container: {engine: podman, image: img}"},
      {"podman that does not linger",
       [](ServerFacts& f) {
         f.programs.insert("podman");
         f.in_session = true;
       },
       "container", warn, "lingering is off", "loginctl enable-linger",
       ", container: {engine: podman, image: img}"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.what);
    ServerFacts facts = healthy();
    one.spoil(facts);
    const std::vector<Finding> findings = judged(facts, one.yaml);
    const Finding* finding = found(findings, one.name);
    ASSERT_NE(finding, nullptr);
    EXPECT_EQ(finding->status, one.status) << finding->detail;
    EXPECT_THAT(finding->detail, HasSubstr(one.detail));
    ASSERT_TRUE(finding->fix);
    EXPECT_THAT(finding->fix->text, HasSubstr(one.fix));
    EXPECT_EQ(
        std::ranges::count_if(findings, [](const Finding& each) { return each.status != CheckStatus::ok; }),
        1)
        << "something else is told, too";
  }
}

// As in a container, whose sshd registers no session with logind.
TEST(Judge, OutsideASessionNothingEndsAtLogout) {
  ServerFacts facts = healthy();
  facts.kill_user_processes = true;
  EXPECT_EQ(found(judged(facts), "logout")->status, CheckStatus::ok);
}

TEST(Judge, RootIsNotEndedAtLogout) {
  ServerFacts facts = healthy();
  facts.in_session = facts.kill_user_processes = true;
  facts.user = "root";
  facts.uid = 0;
  EXPECT_EQ(found(judged(facts), "logout")->status, CheckStatus::ok);
}

TEST(Judge, SharedMemoryOfSomeUsersStaysAfterTheLogout) {
  const std::vector<std::function<void(ServerFacts&)>> reasons = {
      [](ServerFacts& f) { f.in_session = false; },  // as in a container
      [](ServerFacts& f) { f.linger = true; },
      [](ServerFacts& f) { f.uid = 999; },
      [](ServerFacts& f) { f.removes_ipc = false; },
  };
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    ServerFacts facts = healthy();
    facts.in_session = facts.removes_ipc = true;
    EXPECT_EQ(found(judged(facts), "logout")->status, CheckStatus::warn);
    reasons[i](facts);
    EXPECT_EQ(found(judged(facts), "logout")->status, CheckStatus::ok) << "reason " << i;
  }
}

// ---- before a launch

TEST(JudgeLaunch, StopsWhatWouldFailAndWarnsOfTheRest) {
  const auto judge = [](const ServerFacts& facts) { return judge_launch(facts, "~/proj/.jobs", "ada"); };
  const auto disk = [](const char* what, std::uint64_t free) {
    DiskFacts one;
    one.what = what;
    one.path = "/data/my " + one.what;
    one.free_bytes = free;
    one.inodes = 1000;
    one.free_inodes = 900;
    return one;
  };
  ServerFacts well;
  well.disks = {disk("project", gib), disk("shm", gib)};
  EXPECT_TRUE(judge(well).empty());
  EXPECT_TRUE(judge({}).empty());
  const auto only = [&](const std::function<void(ServerFacts&)>& spoil) {
    ServerFacts facts = well;
    spoil(facts);
    const auto findings = judge(facts);
    EXPECT_EQ(findings.size(), 1U);
    return findings.empty() ? Finding{} : findings.front();
  };
  const Finding full = only([](ServerFacts& f) { f.disks[0].free_bytes = 0; });
  EXPECT_EQ(full.status, CheckStatus::fail);
  EXPECT_EQ(full.detail, "~/proj/.jobs cannot be written: its disk is full");
  EXPECT_THAT(full.fix->text, HasSubstr("du -xhd 2 '/data/my project'"));
  EXPECT_EQ(only([](ServerFacts& f) { f.disks[0].free_bytes = 2 * mib; }).status, CheckStatus::warn);
  const Finding inodes = only([](ServerFacts& f) { f.disks[0].free_inodes = 2; });
  EXPECT_EQ(inodes.name, "inodes");
  EXPECT_THAT(inodes.fix->text, HasSubstr("du --inodes -xd 2 '/data/my project'"));
  const Finding logout = only([](ServerFacts& f) { f.in_session = f.kill_user_processes = true; });
  EXPECT_EQ(logout.status, CheckStatus::fail);
  EXPECT_THAT(logout.fix->text, HasSubstr("KillExcludeUsers=root ada"));
  const Finding others = only([](ServerFacts& f) {
    f.in_session = f.kill_user_processes = true;
    f.kill_excluded = {"bob"};
  });
  EXPECT_THAT(others.fix->text, HasSubstr("KillExcludeUsers=bob ada")) << "who is excluded stays so";
  EXPECT_EQ(only([](ServerFacts& f) { f.disks[1].free_bytes = mib; }).status, CheckStatus::warn);
  const Finding shm = only([](ServerFacts& f) {  // as in a container
    f.disks[1].free_bytes = f.disks[1].total_bytes = 64 * mib;
  });
  EXPECT_EQ(shm.status, CheckStatus::warn);
  EXPECT_EQ(shm.detail,
            "64 MiB of 64 MiB are free in /dev/shm; NCCL and the workers of a DataLoader need more");
  ServerFacts outside = well;
  outside.kill_user_processes = true;
  EXPECT_TRUE(judge(outside).empty()) << "the login is in no session";
  EXPECT_EQ(only([](ServerFacts& f) { f.clock_ahead = std::chrono::duration<double>(60); }).name, "clock");
  ServerFacts btrfs = well;
  btrfs.disks[0].inodes = btrfs.disks[0].free_inodes = 0;
  EXPECT_TRUE(judge(btrfs).empty());
}

TEST(JudgeLaunch, OnlyHoldersOfTheGpusThatItUsesCount) {
  ServerFacts facts;
  facts.gpus.gpus.resize(4);
  const auto hold = [&](int gpu, int pid, const char* user) -> GpuProcess& {
    facts.gpus.gpus[gpu].index = gpu;
    GpuProcess& process = facts.gpus.gpus[gpu].processes.emplace_back();
    process.pid = pid;
    process.user = user;
    process.memory = gib;
    return process;
  };
  hold(0, 12, "bob");
  hold(3, 13, "eve");
  hold(3, 14, "");
  hold(0, 15, "joe").memory = 8 * mib;            // a desktop
  hold(0, 16, "ada").job = std::string(32, 'a');  // one of our jobs
  const auto told = [&](const Env& env) {
    const auto findings = judge_launch(facts, "~/proj/.jobs", "ada", visible_gpus(env));
    return findings.empty() ? "" : findings.front().detail;
  };
  EXPECT_EQ(told({}),
            "others hold memory of its GPUs: pid 12 of bob (GPU 0), pid 13 of eve (GPU 3), pid 14 of unknown "
            "(GPU 3)");
  EXPECT_EQ(told({{"CUDA_VISIBLE_DEVICES", "GPU-0123"}}), told({}));
  EXPECT_EQ(told({{"CUDA_VISIBLE_DEVICES", "1, 0"}}),
            "others hold memory of its GPUs: pid 12 of bob (GPU 0)");
  EXPECT_EQ(told({{"CUDA_VISIBLE_DEVICES", "0"}, {"CUDA_VISIBLE_DEVICES", "1"}}), "")
      << "the last value counts";
  EXPECT_EQ(told({{"CUDA_VISIBLE_DEVICES", "1,2"}}), "");
  for (int i = 0; i < 3; ++i) {
    hold(0, 20 + i, "bob");
  }
  EXPECT_THAT(told({}), ::testing::EndsWith("(GPU 0) and 3 more"));
}

// ---- the same on all

std::vector<Compared> cluster(std::size_t count) {
  std::vector<Compared> all;
  for (std::size_t i = 1; i <= count; ++i) {
    all.push_back({"gpu" + std::to_string(i), healthy(), std::nullopt, "state 12345678"});
  }
  return all;
}

TEST(JudgeSame, AHealthyClusterGetsNoWarning) {
  for (const auto& findings : judge_same(cluster(8))) {
    EXPECT_FALSE(findings.empty());
    for (const Finding& finding : findings) {
      EXPECT_EQ(finding.status, CheckStatus::ok) << finding.name << ": " << finding.detail;
    }
  }
  EXPECT_TRUE(judge_same(cluster(1)).front().empty());
}

TEST(JudgeSame, WarnsOfMachinesWithOneMachineId) {
  auto all = cluster(4);
  const auto set = [&](std::size_t i, const char* machine, const char* image) {
    all[i].facts.machine = machine;
    all[i].facts.image = image;
  };
  set(0, "1", "a");
  set(1, "2", "b");
  set(2, "2", "b");  // another name for the same machine
  set(3, "3", "");   // a container
  for (const auto& findings : judge_same(all)) {
    EXPECT_EQ(found(findings, "machine-id"), nullptr);
  }
  set(3, "3", "a");
  const auto findings = judge_same(all);
  EXPECT_EQ(found(findings[0], "machine-id")->status, CheckStatus::warn);
  EXPECT_THAT(found(findings[0], "machine-id")->detail, HasSubstr("gpu4 has the same /etc/machine-id"));
  EXPECT_THAT(found(findings[3], "machine-id")->detail, HasSubstr("gpu1 has the same /etc/machine-id"));
  EXPECT_EQ(found(findings[1], "machine-id"), nullptr);
}

TEST(JudgeSame, WarnsOfTwoNamesOfOneMachineWithGpus) {
  auto all = cluster(3);
  for (Compared& one : all) {
    one.facts.machine = one.server == "gpu3" ? "2" : "1";
    one.facts.gpus.gpus.resize(1);
    one.facts.gpus.gpus[0].uuid = one.server == "gpu3" ? "GPU-2" : "GPU-1";
  }
  const auto findings = judge_same(all);
  EXPECT_EQ(found(findings[0], "same-machine")->detail,
            "gpu2 is the same machine: their ranks would share its GPUs");
  EXPECT_EQ(found(findings[1], "same-machine")->status, CheckStatus::warn);
  EXPECT_EQ(found(findings[2], "same-machine"), nullptr);
  all[0].gpu_indices = {0};
  all[1].gpu_indices = {1};
  EXPECT_EQ(found(judge_same(all)[0], "same-machine"), nullptr) << "the GPUs are split";
}

TEST(JudgeSame, APackageThatDiffersOnOneOfEightIsNamed) {
  auto all = cluster(8);
  for (Compared& one : all) {
    one.facts.packages["numpy"].version = one.server == "gpu3" ? "1.26.4" : "2.0.1";
  }
  const auto findings = judge_same(all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Finding& finding = *found(findings[i], "same-packages");
    if (i != 2) {
      EXPECT_EQ(finding.status, CheckStatus::ok);
      continue;
    }
    EXPECT_EQ(finding.status, CheckStatus::warn);
    EXPECT_EQ(finding.detail, "numpy 1.26.4 on gpu3, 2.0.1 on the 7 others");
    EXPECT_EQ(finding.fix->where, Fix::Where::here);
    EXPECT_EQ(finding.fix->text,
              "remote run --server gpu3 --cmd 'python3 -m pip install '\\''numpy==2.0.1'\\'''");
  }
}

TEST(JudgeSame, TheFixHasTheOptionsOfPip) {
  config::Python python;
  EXPECT_EQ(pip_options(python), "");
  python.find_links = {"my wheels"};
  python.no_index = true;
  python.constraints = {"limits.txt"};
  auto all = cluster(2);
  all[1].facts.packages["numpy"].version = "2.0.1";
  all[1].facts.torch = "1.13.1";
  all[1].pip_options = pip_options(python);
  const auto fix = [&](const char* name) { return found(judge_same(all)[1], name)->fix->text; };
  EXPECT_EQ(all[1].pip_options, "--no-index --find-links 'my wheels' --constraint limits.txt ");
  EXPECT_THAT(fix("same-packages"),
              HasSubstr("python3 -m pip install --no-index --find-links '\\''my wheels'\\'' --constraint"));
  EXPECT_THAT(fix("same-torch"), HasSubstr("pip install --no-index "));
  python.index_url = "https://mirror/simple";
  EXPECT_THAT(pip_options(python).value_or(""), HasSubstr("--index-url https://mirror/simple "));
  python.extra_index_urls = {"https://bob:s3cret@mirror/simple"};
  all[1].pip_options = pip_options(python);
  EXPECT_EQ(fix("same-packages"), "remote update-packages --force --server gpu2");
}

TEST(JudgeSame, PipIsNotNamedWhereItCannotInstallIntoTheEnvironment) {
  auto all = cluster(2);
  all[1].facts.packages["numpy"].version = "2.0.1";
  all[1].facts.torch = "1.13.1";
  const auto fix = [&](const char* name) { return found(judge_same(all)[1], name)->fix->text; };
  all[1].facts.python_managed = true;
  for (const char* name : {"same-packages", "same-torch"}) {
    EXPECT_EQ(fix(name),
              "the distribution manages the packages of its Python (PEP 668): set python: {manager: venv, "
              "system_site_packages: true} in configs.yaml, then: remote prepare --server gpu2");
  }
  all[1].lacks_environment = true;  // so the distribution's Python has answered
  for (const bool is_secret : {false, true}) {
    all[1].pip_options = is_secret ? std::nullopt : std::optional(std::string());
    EXPECT_EQ(fix("same-packages"), "remote prepare --server gpu2");
    EXPECT_EQ(fix("same-torch"), "remote prepare --server gpu2");
  }
}

TEST(JudgeSame, APackageThatIsMissingIsNamed) {
  auto all = cluster(3);
  all[1].facts.packages.erase("numpy");
  auto findings = judge_same(all);
  EXPECT_EQ(found(findings[0], "same-packages")->status, CheckStatus::ok);
  EXPECT_EQ(found(findings[1], "same-packages")->detail, "numpy missing on gpu2, 1.26.4 on the 2 others");
  // The hint never suggests removing a package that only one server has.
  all[0].facts.packages.erase("numpy");
  all[0].facts.torch = all[1].facts.torch = "";
  findings = judge_same(all);
  EXPECT_EQ(found(findings[2], "same-packages")->status, CheckStatus::ok);
  EXPECT_EQ(found(findings[2], "same-torch")->status, CheckStatus::ok);
  EXPECT_EQ(found(findings[0], "same-torch")->status, CheckStatus::fail);
  EXPECT_THAT(found(findings[0], "same-torch")->fix->text,
              HasSubstr("--server gpu1 --cmd 'python3 -m pip install"));
  EXPECT_EQ(found(findings[0], "same-packages")->detail, "numpy missing on gpu1 and gpu2, 1.26.4 on gpu3");
}

TEST(JudgeSame, WhereOnlySomeHaveTorchTheirSoftwareIsTheMeasure) {
  auto all = cluster(3);
  for (const int i : {0, 1}) {
    all[i].facts.torch = "";
    all[i].facts.python = "3.12.1";
    all[i].facts.packages["numpy"].version = "2.0.1";
  }
  auto findings = judge_same(all);
  EXPECT_EQ(found(findings[2], "same-python")->status, CheckStatus::ok);
  EXPECT_EQ(found(findings[2], "same-packages")->status, CheckStatus::ok);
  EXPECT_THAT(found(findings[0], "same-python")->detail, HasSubstr("Python 3.12 on gpu1 and gpu2, 3.11 on"));
  // pip has no such version
  all[2].facts.torch = "1.13.0a0";
  all[2].facts.packages["torch"] = {"1.13.0a0+gitunknown", true};
  findings = judge_same(all);
  EXPECT_EQ(found(findings[1], "same-torch")->fix->where, Fix::Where::server_as_root);
  EXPECT_EQ(found(findings[1], "same-torch")->fix->text, "apt-get install -y python3-torch");
}

TEST(JudgeSame, PackagesOfTheDistributionMayBeMissingButNotDiffer) {
  auto all = cluster(3);
  all[1].facts.packages.erase("six");
  EXPECT_EQ(found(judge_same(all)[1], "same-packages")->status, CheckStatus::ok);
  all[1].facts.packages["six"] = {"1.15.0", true};
  EXPECT_THAT(found(judge_same(all)[1], "same-packages")->detail, HasSubstr("six 1.15.0 on gpu2"));
}

struct SameCase {
  const char* what;
  std::function<void(Compared&)> spoil;
  const char* name;
  CheckStatus status;
  const char* detail;
  const char* fix;
};

TEST(JudgeSame, TheOddOneOutIsNamed) {
  constexpr CheckStatus warn = CheckStatus::warn;
  constexpr CheckStatus fail = CheckStatus::fail;
  const std::vector<SameCase> cases = {
      {"torch 1", [](Compared& c) { c.facts.torch = "1.13.1"; }, "same-torch", fail,
       "torch 1.13.1 on gpu2, 2.1.0+cu121 on the 2 others", "torch==2.1.0"},
      {"torch 2.0", [](Compared& c) { c.facts.torch = "2.0.1"; }, "same-torch", warn, "torch 2.0.1 on gpu2",
       "torch==2.1.0"},
      {"no torch", [](Compared& c) { c.facts.torch = ""; }, "same-torch", fail, "torch missing on gpu2",
       "torch==2.1.0"},
      {"Python 2", [](Compared& c) { c.facts.python = "2.7.18"; }, "same-python", fail,
       "Python 2.7 on gpu2, 3.11 on the 2 others", "version: \"3.11\""},
      {"Python 3.9", [](Compared& c) { c.facts.python = "3.9.1"; }, "same-python", warn, "Python 3.9 on gpu2",
       "remote prepare --server gpu2"},
      {"CUDA", [](Compared& c) { c.facts.cuda = "11.8"; }, "same-cuda", warn, "torch's CUDA 11.8 on gpu2",
       "torch"},
      {"NCCL", [](Compared& c) { c.facts.nccl = "2.14.3"; }, "same-nccl", fail, "NCCL 2.14.3 on gpu2",
       "remote update-packages --server gpu2"},
      {"driver", [](Compared& c) { c.facts.driver = "470.1"; }, "same-driver", warn, "driver 470.1 on gpu2",
       "535.104.05"},
      {"older code", [](Compared& c) { c.sent = "state 00000000"; }, "same-project", warn,
       "state 00000000 on gpu2", "remote rsync --server gpu2"},
  };
  for (const SameCase& one : cases) {
    SCOPED_TRACE(one.what);
    auto all = cluster(3);
    one.spoil(all[1]);
    const auto findings = judge_same(all);
    const Finding* finding = found(findings[1], one.name);
    ASSERT_NE(finding, nullptr);
    EXPECT_EQ(finding->status, one.status);
    EXPECT_THAT(finding->detail, HasSubstr(one.detail));
    ASSERT_TRUE(finding->fix);
    EXPECT_THAT(finding->fix->text, HasSubstr(one.fix));
    EXPECT_EQ(found(findings[0], one.name)->status, CheckStatus::ok);
    EXPECT_EQ(found(findings[2], one.name)->status, CheckStatus::ok);
  }
}

TEST(JudgeSame, OfTwoTheFirstIsRight) {
  auto all = cluster(2);
  all[0].facts.torch = "1.13.1";
  const auto findings = judge_same(all);
  EXPECT_EQ(found(findings[0], "same-torch")->status, CheckStatus::ok);
  EXPECT_EQ(found(findings[1], "same-torch")->detail, "torch 2.1.0+cu121 on gpu2, 1.13.1 on gpu1");
}

}  // namespace
}  // namespace remote::project
