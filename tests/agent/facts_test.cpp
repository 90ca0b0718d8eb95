#include "agent/facts/facts.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "agent/host_folder.hpp"

namespace remote::agent {
namespace {

using test::HostFolder;

TEST(CollectFacts, AnswersWhatWasAskedFor) {
  HostFolder folder;
  folder.put_system("proc/loadavg", "0.10 0.20 0.30 1/100 1000\n");
  folder.put_system("proc/stat", "cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n");
  const wire::FactsReply nothing = collect_facts(folder.host, {}, "");
  EXPECT_FALSE(nothing.clock || nothing.route || nothing.port || nothing.mpi || nothing.code);
  EXPECT_TRUE(nothing.facts.load.empty());
  wire::FactsRequest request = wire::moment_request("~");
  request.clock = true;
  const wire::FactsReply reply = collect_facts(folder.host, request, "");
  EXPECT_TRUE(reply.clock);
  EXPECT_EQ(reply.facts.load.size(), 3U);
  EXPECT_NE(reply.facts.disk("project"), nullptr);
  EXPECT_FALSE(reply.disks_hang || reply.has_leases);
}

TEST(CollectFacts, TemporaryFilesAreWhereThoseOfJobsAre) {
  HostFolder folder;
  wire::FactsRequest request{.variables = {{"TMPDIR", folder.host.home}}};
  request.disks = {wire::DiskPlace::tmp};
  const auto find_path = [&] {
    const wire::FactsReply reply = collect_facts(folder.host, request, "");
    const DiskFacts* disk = reply.facts.disk("tmp");
    return disk == nullptr ? "" : disk->path;
  };
  EXPECT_EQ(find_path(), folder.host.home);
  request.python = false;
  EXPECT_EQ(find_path(), folder.host.home);
  request.activate = "export TMPDIR=\"$TMPDIR/..\"";
  EXPECT_EQ(find_path(), (folder.host.home / "..").string());
  request.activate = "unset TMPDIR";
  EXPECT_EQ(find_path(), "/tmp");
  request.activate = "export TMPDIR=/none/there";
  EXPECT_EQ(find_path(), "/tmp") << "which programs take then";
}

TEST(CollectFacts, PackagesAreOldIfTheirStampHasAnotherDigest) {
  HostFolder folder;
  wire::FactsRequest request{.environment = "env"};
  request.packages = wire::PackagesStamp{.scripts = "scripts", .project_key = "12ab", .digest = "cd"};
  const auto are_old = [&] { return collect_facts(folder.host, request, "").has_old_packages; };
  EXPECT_FALSE(are_old()) << "remote has installed none";
  HostFolder::put(folder.host.home / "env/.remote-packages.12ab", "00\n");
  EXPECT_TRUE(are_old());
  HostFolder::put(folder.host.home / "env/.remote-packages.12ab", "cd\n");
  EXPECT_FALSE(are_old());
  HostFolder::put(folder.host.home / "env/.remote-packages.12ab", "cdef\n");
  EXPECT_TRUE(are_old());
  request.packages->project_key = "34";
  EXPECT_FALSE(are_old()) << "of another project in this environment";
  HostFolder::put(folder.host.home / "env/.remote-setup", "ef\n");
  EXPECT_TRUE(are_old()) << "remote made the environment, and none of this project's packages were installed";
}

TEST(CollectFacts, PackagesOfAnEnvironmentThatIsNotWritableAreInOurOwnFolder) {
  if (::geteuid() == 0) {
    GTEST_SKIP() << "root can write everywhere";
  }
  HostFolder folder;
  wire::FactsRequest request{.environment = "env"};
  request.packages = wire::PackagesStamp{.scripts = "scripts", .project_key = "12ab", .digest = "cd"};
  HostFolder::put(folder.host.home / "scripts/.remote-packages.12ab", "00\n");
  fs::create_directories((folder.host.home / "env").string());
  fs::permissions((folder.host.home / "env").string(), fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_TRUE(collect_facts(folder.host, request, "").has_old_packages);
}

// Conda creates environments in ~/.conda/envs if its installation is not writable.
TEST(CollectFacts, PackagesMayBeInCondasOtherFolder) {
  HostFolder folder;
  wire::FactsRequest request{.environment = "conda/envs/mine"};
  request.packages = wire::PackagesStamp{.scripts = "scripts",
                                         .project_key = "12ab",
                                         .digest = "cd",
                                         .other_folder = "~/.conda/envs/mine",
                                         .conda = "~/conda"};
  const auto are_old = [&] { return collect_facts(folder.host, request, "").has_old_packages; };
  EXPECT_FALSE(are_old());
  HostFolder::put(folder.host.home / ".conda/envs/mine/.remote-packages.12ab", "00\n");
  EXPECT_TRUE(are_old());
  HostFolder::put(folder.host.home / ".conda/envs/mine/.remote-packages.12ab", "cd\n");
  EXPECT_FALSE(are_old());
  fs::create_directories((folder.host.home / "conda/envs").string());
  EXPECT_FALSE(are_old()) << "conda makes it in the installation";
  HostFolder::put(folder.host.home / "conda/envs/mine/.remote-packages.12ab", "00\n");
  EXPECT_TRUE(are_old());
}

TEST(CollectFacts, SeesLeases) {
  HostFolder folder;
  wire::FactsRequest request;
  request.load = true;
  HostFolder::put(folder.path() / "leases/.remote-lease.1", "");
  EXPECT_FALSE(collect_facts(folder.host, request, "").has_leases);
  folder.host.environment["REMOTE_LEASES"] = (folder.path() / "leases").string();
  EXPECT_TRUE(collect_facts(folder.host, request, "").has_leases);
  folder.put_system("run/lock/.remote-lease.2", "");
  folder.host.environment.erase("REMOTE_LEASES");
  EXPECT_TRUE(collect_facts(folder.host, request, "").has_leases);
}

TEST(CollectFacts, GpusAreFoundByThePathOfThePrologueAlone) {
  HostFolder folder;
  folder.put_program(folder.path() / "site/nvidia-smi", "echo 'No devices were found'; exit 6\n");
  folder.host.environment["PATH"] = "/usr/bin:/bin";
  wire::FactsRequest request{.activate = "PATH='" + (folder.path() / "site").string() + "':$PATH"};
  EXPECT_TRUE(collect_facts(folder.host, request, "").facts.gpus.tools.empty()) << "it was not asked";
  request.gpus = wire::GpuDetail::brief;
  EXPECT_EQ(collect_facts(folder.host, request, "").facts.gpus.tools.size(), 1U);
}

TEST(CollectFacts, CountsNvidiasProgramAmongThePrograms) {
  HostFolder folder;
  folder.put_program(folder.path() / "bin/nvidia-smi", "echo 'No devices were found'; exit 6\n");
  folder.host.environment["PATH"] = (folder.path() / "bin").string() + ":/usr/bin:/bin";
  wire::FactsRequest request;
  request.gpus = wire::GpuDetail::brief;
  const wire::FactsReply reply = collect_facts(folder.host, request, "");
  EXPECT_TRUE(reply.facts.programs.contains("nvidia-smi"));
  ASSERT_EQ(reply.facts.gpus.tools.size(), 1U);
  EXPECT_EQ(reply.facts.gpus.tools[0].state, GpuToolState::no_devices);
}

}  // namespace
}  // namespace remote::agent
