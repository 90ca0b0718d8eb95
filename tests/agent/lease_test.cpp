#include "agent/lease/lease.hpp"

#include <chrono>
#include <ctime>

#include <fcntl.h>

#include "agent/facts/cgroups.hpp"
#include "agent/host/run.hpp"
#include "agent/lease/list_leases.hpp"
#include "agent/lease_host.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

using rules::LeaseState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LeaseTest : public test::LeaseHost {
 protected:
  void expect_refused(const std::string& reason) {
    try {
      take({.gpus = 1});
      ADD_FAILURE() << "it was taken";
    } catch (const LeaseRefused& error) {
      EXPECT_THAT(error.what(), HasSubstr(reason));
    }
  }
};

TEST_F(LeaseTest, GpusAreGivenToOneEachAndComeBack) {
  auto first = take({.gpus = 5});
  EXPECT_EQ(indices_of(first), "0,1,2,3,4");
  EXPECT_EQ(devices,
            "leased gpus=0,1,2,3,4 cpus=0 memory=0\n"
            "CUDA_DEVICE_ORDER=PCI_BUS_ID\nCUDA_VISIBLE_DEVICES=0,1,2,3,4\n");
  EXPECT_FALSE(take({.gpus = 4}));
  EXPECT_EQ(shortage, "4 GPUs needed, and 3 of 8 free by now");
  EXPECT_EQ(holders, std::vector<unsigned>{::geteuid()});
  EXPECT_EQ(entries().size(), 1U) << "a lease that was not taken leaves nothing";
  const auto second = take({.gpus = 3});
  EXPECT_EQ(indices_of(second), "5,6,7");
  first->remove();
  EXPECT_EQ(indices_of(take({.gpus = 1})), "0");
}

TEST_F(LeaseTest, HoldersAreThoseOfTheLackingResource) {
  const auto cores_only = take({.cpus = 1});
  set_gpus(1, "GPU-0, 4121, 300, python3, x\n");
  EXPECT_FALSE(take({.gpus = 1}));
  EXPECT_TRUE(holders.empty()) << "a process without a lease uses it";
}

TEST_F(LeaseTest, UsedAndOtherThanTheAllowedGpusAreLeftAlone) {
  set_gpus(4, "GPU-0, 4121, 300, python3, x\nGPU-2, 17, 1, [Not Found]\n");
  const auto third = take({.gpus = 1, .among = {0, 3}});
  EXPECT_EQ(indices_of(third), "3");
  const auto second = take({.gpus = 1});
  EXPECT_EQ(indices_of(second), "1");
  EXPECT_FALSE(take({.gpus = 1}));
  EXPECT_FALSE(take({.gpus = 5}));
  EXPECT_EQ(shortage, "this server does not have the requested resources");
}

TEST_F(LeaseTest, GpusWithUnknownProcessesAreNotFree) {
  put_program(programs() / "nvidia-smi", "case $1 in --query-gpu=*) echo 0, GPU-0 ;; *) exit 9 ;; esac");
  expect_refused("nvidia-smi does not report which processes use its GPUs");
  EXPECT_TRUE(fs::is_empty(leases));
  // The other GPUs still answer.
  put_program(programs() / "nvidia-smi",
              "case $1 in\n"
              "  --query-gpu=*)\n"
              "    echo 'Unable to determine the device handle for GPU0: 0000:3B:00.0: GPU is lost.'\n"
              "    echo 1, GPU-1 ;;\n"
              "esac\n"
              "exit 15");
  EXPECT_EQ(indices_of(take({.gpus = 1})), "1");
}

TEST_F(LeaseTest, CoresAndMemory) {
  auto first = take({.cpus = cores()});
  EXPECT_EQ(devices, "leased gpus=- cpus=" + std::to_string(cores()) + " memory=0\n");
  EXPECT_FALSE(take({.cpus = 1}));
  EXPECT_EQ(shortage, "1 core needed, and 0 of " + std::to_string(cores()) + " free by now");
  EXPECT_EQ(holders, std::vector<unsigned>{::geteuid()});
  first->remove();
  EXPECT_TRUE(take({.cpus = cores()}));
  const auto machine = read_lease_machine(host, {.memory = 1, .among = {}}).resources;
  EXPECT_GT(machine.memory, machine.available);
  EXPECT_FALSE(take({.memory = machine.memory + 1}));
  const auto some = take({.memory = machine.available / 4});
  EXPECT_TRUE(some);
  EXPECT_FALSE(take({.memory = machine.memory - machine.available / 4 + 1}));
  EXPECT_THAT(shortage, HasSubstr(" GiB of memory needed, and "));
}

TEST_F(LeaseTest, OfAControlGroupWithLimits) {
  const fs::path groups = root() / "sys/fs/cgroup";
  put(root() / "sys/fs/cgroup/cpu.max", "50000 100000\n");
  put(root() / "sys/fs/cgroup/memory.max", "2147483648\n");
  for (const CgroupPlace& place : read_cgroups("/proc/self/cgroup")) {
    const std::string name = join(place.controllers, ",");
    if (place.has("cpu")) {
      put(groups / name / "cpu.cfs_quota_us", "50000\n");
      put(groups / name / "cpu.cfs_period_us", "100000\n");
    }
    if (place.has("memory")) {
      put(groups / "memory/memory.limit_in_bytes", "2147483648\n");
    }
  }
  const wire::FreeResources free = *list_leases(host, {wire::LeaseTerms{.cpus = 1, .memory = 1}}).free;
  EXPECT_EQ(free.all_cpus, 1) << "half a processor, rounded up";
  EXPECT_GE(free.server_cpus, 1);
  EXPECT_EQ(free.all_memory, 2147483648U);
  EXPECT_GT(free.server_memory, free.all_memory);
  EXPECT_FALSE(take({.cpus = 2}));
  EXPECT_EQ(shortage, never_enough);
  EXPECT_FALSE(take({.memory = std::uint64_t{8} << 30U}));
  EXPECT_EQ(shortage, never_enough);
  const auto first = take({.cpus = 1});
  ASSERT_TRUE(first);
  EXPECT_FALSE(take({.cpus = 1}));
  EXPECT_EQ(shortage, "1 core needed, and 0 of 1 free by now");
  EXPECT_EQ(holders, std::vector<unsigned>{::geteuid()});
}

TEST_F(LeaseTest, GpusOfADriverThatDoesNotAnswerAreNotNone) {
  put_program(programs() / "nvidia-smi", "echo 'Failed to initialize NVML: Unknown Error'; exit 255");
  expect_refused("the driver does not answer: Failed to initialize NVML: Unknown Error");
  put_program(programs() / "nvidia-smi", "echo 'No devices were found'; exit 6");
  EXPECT_FALSE(take({.gpus = 1}));
  EXPECT_EQ(shortage, never_enough);
}

// Waiting launches and the slots of a sweep try again every few seconds.
TEST_F(LeaseTest, ThePrologueIsEnteredOnceForAllTries) {
  fs::create_directories(folder() / "site");
  fs::rename(programs() / "nvidia-smi", folder() / "site/nvidia-smi");
  const fs::path entered = folder() / "entered";
  const wire::LeaseTerms terms{.gpus = 5,
                               .prologue = "echo x >>'" + entered.string() + "'; export PATH='" +
                                           (folder() / "site").string() + "':$PATH"};
  const auto first = take(terms);
  EXPECT_EQ(indices_of(first), "0,1,2,3,4");
  EXPECT_FALSE(take(terms));
  EXPECT_FALSE(take(terms));
  EXPECT_EQ(fs::file_size(entered), 2U);
}

TEST_F(LeaseTest, OnlyGpusThatTheLoginSeesAreTaken) {
  host.environment["CUDA_VISIBLE_DEVICES"] = "5,2";
  const wire::FreeResources free = *list_leases(host, {wire::LeaseTerms{.gpus = 1}}).free;
  EXPECT_EQ(free.all_gpus, 2);
  EXPECT_EQ(free.server_gpus, 8);
  EXPECT_EQ(free.hiding_variable, "CUDA_VISIBLE_DEVICES");
  EXPECT_FALSE(take({.gpus = 3}));
  EXPECT_EQ(shortage, never_enough);
  EXPECT_EQ(indices_of(take({.gpus = 1, .among = {0, 5}})), "5");
  const auto lease = take({.gpus = 1});
  EXPECT_EQ(indices_of(lease), "2");
  EXPECT_EQ(devices, "leased gpus=2 cpus=0 memory=0\nCUDA_DEVICE_ORDER=PCI_BUS_ID\nCUDA_VISIBLE_DEVICES=2\n");
  host.environment["CUDA_VISIBLE_DEVICES"] = "GPU-7";
  EXPECT_EQ(indices_of(take({.gpus = 1})), "7");
  host.environment["CUDA_VISIBLE_DEVICES"] = "";
  EXPECT_FALSE(take({.gpus = 1}));
}

TEST_F(LeaseTest, OfAmdAndIntel) {
  fs::remove(programs() / "nvidia-smi");
  host.environment["PATH"] = programs().string() + ":/usr/bin:/bin";
  const fs::path kfd = root() / "sys/class/kfd/kfd";
  for (const auto& [node, id] : std::map<std::string, std::string>{{"0", "0"}, {"10", "77"}, {"9", "66"}}) {
    put(kfd / "topology/nodes" / node / "gpu_id", id + "\n");
  }
  put(kfd / "proc/4121/vram_66", "1000\n");
  put(kfd / "proc/4121/vram_77", "0\n");
  const auto lease = take({.gpus = 1});
  EXPECT_EQ(devices, "leased gpus=1 cpus=0 memory=0\nROCR_VISIBLE_DEVICES=1\n");
  EXPECT_THAT(entries().at(0).file.gpus, ElementsAre("amd:77"));
  put(kfd / "topology/nodes/x/gpu_id", "1\n");
  EXPECT_FALSE(take({.gpus = 1})) << "nothing is known of these nodes";
  put_program(programs() / "xpu-smi", "echo '{\"device_list\": [{\"device_id\": 0}, {\"device_id\": 1}]}'");
  const auto other = take({.gpus = 2});
  EXPECT_EQ(devices, "leased gpus=0,1 cpus=0 memory=0\nZE_AFFINITY_MASK=0,1\n");
  EXPECT_THAT(entries().at(1).file.gpus, ElementsAre("intel:0", "intel:1"));
}

TEST_F(LeaseTest, VariablesOfTheLoginCountWithinTheLeasedGpusOfAmd) {
  fs::remove(programs() / "nvidia-smi");
  host.environment["PATH"] = programs().string() + ":/usr/bin:/bin";
  const fs::path nodes = root() / "sys/class/kfd/kfd/topology/nodes";
  for (const char* node : {"1", "2", "3"}) {
    put(nodes / node / "gpu_id", std::string(node) + "\n");
  }
  host.environment["HIP_VISIBLE_DEVICES"] = "1,2";
  EXPECT_FALSE(take({.gpus = 3}));
  const auto lease = take({.gpus = 2});
  EXPECT_EQ(devices, "leased gpus=1,2 cpus=0 memory=0\nHIP_VISIBLE_DEVICES=0,1\nROCR_VISIBLE_DEVICES=1,2\n");
}

TEST_F(LeaseTest, IsNeverTheDescriptorOfItsJobs) {
  const int saved = ::fcntl(lease_fd, F_DUPFD_CLOEXEC, 100);
  std::vector<Descriptor> opened;
  while (true) {
    opened.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (opened.back().get() >= lease_fd) {
      break;
    }
  }
  opened.pop_back();
  ::close(lease_fd);  // now the lowest free descriptor
  const Lease lease = Lease::make(host);
  EXPECT_GT(lease.fd(), lease_fd);
  EXPECT_TRUE((::fcntl(lease.fd(), F_GETFD) & FD_CLOEXEC) != 0);
  if (saved >= 0) {
    ::dup2(saved, lease_fd);
    ::close(saved);
  }
}

TEST_F(LeaseTest, TheLastProcessThatHasItOpenEndsIt) {
  std::optional<test::Started> child;
  {
    auto first = take({.gpus = 8});
    child.emplace([] { test::sleep_long(); });
  }
  EXPECT_FALSE(take({.gpus = 1}));
  child.reset();
  EXPECT_TRUE(take({.gpus = 8}));
}

TEST_F(LeaseTest, WhoCameEarlierIsFirst) {
  auto first = take({.gpus = 6});
  Lease waits = Lease::make(host);
  waits.get_in_line(true);
  EXPECT_EQ(claim(waits, 4), "2");
  EXPECT_EQ(waits.find_position(waits.survey({}, {})), 1U);
  EXPECT_FALSE(take({.gpus = 1})) << "two are free, but another one waits for four";
  EXPECT_EQ(shortage, "another launch waits before this one");
  EXPECT_TRUE(holders.empty());
  Lease later = Lease::make(host);
  later.get_in_line(true);
  EXPECT_EQ(later.find_position(later.survey({}, {})), 2U);
  EXPECT_TRUE(later.is_behind(later.survey({}, {})));
  EXPECT_FALSE(take({.gpus = 1}));
  EXPECT_EQ(shortage, "2 launches wait before this one");
  later.remove();
  waits.get_in_line(false);  // it waits for another server
  {
    const auto passes = take({.gpus = 1});
    EXPECT_TRUE(passes);
  }
  waits.get_in_line(true);
  first->remove();
  EXPECT_EQ(claim(waits, 4), "");
  EXPECT_THAT(states(), ElementsAre(LeaseState::held));
  waits.give_back();
  EXPECT_THAT(states(), ElementsAre(LeaseState::announced));
  EXPECT_EQ(take({.gpus = 7})->gpus().size(), 7U);
}

TEST_F(LeaseTest, OldFilesOfEndedLeasesAreRemoved) {
  { const auto first = take({.gpus = 1}); }
  const fs::path file = only_file();
  EXPECT_THAT(entries(), IsEmpty());
  EXPECT_TRUE(fs::exists(file));
  const timespec old{std::time(nullptr) - 70, 0};
  const timespec times[] = {old, old};
  ::utimensat(AT_FDCWD, file.c_str(), times, 0);
  list_leases(host, {});
  EXPECT_FALSE(fs::exists(file));
}

TEST_F(LeaseTest, AFolderThatOthersCouldChangeIsRefused) {
  fs::permissions(leases, fs::perms(0777));
  expect_refused("is not a folder that its users can share: it must be root's, with mode 1777");
  fs::remove_all(leases);
  expect_refused("is not a folder that its users can share");
  fs::create_symlink(folder(), leases);
  expect_refused("is not a folder that its users can share");
}

TEST_F(LeaseTest, ItsFolderIsTheFirstThatAllCanUse) {
  host.environment.erase("REMOTE_LEASES");
  expect_refused("none of /run/lock, /tmp, /var/tmp is root's");
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can make such a folder";
  }
  for (const char* name : {"var/tmp", "tmp", "run/lock"}) {
    fs::create_directories(root() / name);
    EXPECT_EQ(::chmod((root() / name).c_str(), 01777), 0);
    EXPECT_EQ(find_leases_folder(host), Path(root() / name));
  }
  fs::permissions(root() / "run/lock", fs::perms(0755));
  EXPECT_EQ(find_leases_folder(host), Path(root() / "tmp"));
  ASSERT_EQ(::chown((root() / "tmp").c_str(), 1, 1), 0);
  EXPECT_EQ(find_leases_folder(host), Path(root() / "var/tmp"));
}

TEST_F(LeaseTest, ForeignFilesAreNotFollowedAndBlockNothing) {
  const fs::path secret = folder() / "secret";
  const std::string text = "remote-lease1 1 0 0 state:held GPU-0\n";
  put(secret, text);
  fs::create_symlink(secret, own("aaaaaaaa"));
  ASSERT_EQ(::mkfifo(own("bbbbbbbb").c_str(), 0600), 0);
  fs::create_directory(own("cccccccc"));
  fs::create_hard_link(secret, own("dddddddd"));
  put(own("eeeeeeee"), text);
  const auto lease = take({.gpus = 8});
  EXPECT_EQ(indices_of(lease), "0,1,2,3,4,5,6,7");
  EXPECT_EQ(entries().size(), 1U);
  std::ifstream file(secret);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), text);
}

TEST_F(LeaseTest, OnlyFilesOfThisFormAreLeases) {
  EXPECT_TRUE(is_lease_name(make_lease_name()));
  for (const char* name :
       {".remote-lease.0.abcde", ".remote-lease..abcdef", ".remote-lease.0", ".remote-lease.x.abcdef",
        ".remote-lease.12345678901.abcdef", ".remote-lease.0.abc/def", ".remote-lease.0.abcdef.1",
        "remote-lease.0.abcdef", ".remote-lease.0.123456789012345678901234567890123", ""}) {
    EXPECT_FALSE(is_lease_name(name)) << name;
  }
}

TEST_F(LeaseTest, OneWhoseFileIsGoneTakesNothing) {
  Lease lease = Lease::make(host);
  fs::remove(only_file());
  EXPECT_THROW(claim(lease, 1), LeaseRefused);
  EXPECT_THROW(Lease::adopt(host, lease.fd()), LeaseRefused);
}

TEST_F(LeaseTest, AreListed) {
  EXPECT_THAT(list_leases(host, {}).leases, IsEmpty());
  const auto held = take({.gpus = 2, .cpus = 1, .memory = 1024});
  Lease waits = Lease::make(host);
  waits.get_in_line(false);
  const wire::LeasesReply reply =
      list_leases(host, {.terms = wire::LeaseTerms{.gpus = 1, .cpus = 1, .memory = 1, .among = {1, 2}}});
  ASSERT_EQ(reply.leases.size(), 2U);
  EXPECT_EQ(reply.no_leases, "");
  EXPECT_TRUE(reply.leases[0].own);
  EXPECT_FALSE(reply.leases[0].waits);
  EXPECT_THAT(reply.leases[0].gpus, ElementsAre("GPU-0", "GPU-1"));
  EXPECT_EQ(reply.leases[0].cpus, 1);
  EXPECT_EQ(reply.leases[0].memory, 1024U);
  EXPECT_TRUE(reply.leases[1].waits);
  EXPECT_EQ(reply.leases[0].user, reply.leases[1].user);
  ASSERT_TRUE(reply.free);
  EXPECT_EQ(reply.free->gpus, 1);
  EXPECT_EQ(reply.free->all_gpus, 2);
  EXPECT_EQ(reply.free->cpus, cores() - 1);
  EXPECT_EQ(reply.free->all_cpus, cores());
  EXPECT_GT(reply.free->all_memory, reply.free->memory);
  host.environment["REMOTE_LEASES"] = folder() / "none";
  EXPECT_THAT(list_leases(host, {}).no_leases, HasSubstr("is not a folder that its users can share"));
}

}  // namespace
}  // namespace remote::agent
