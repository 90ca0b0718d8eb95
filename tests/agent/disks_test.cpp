#include "agent/facts/disks.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "agent/facts/file_systems.hpp"
#include "agent/host/run.hpp"
#include "agent/host_folder.hpp"
#include "wire/json.hpp"

namespace remote::agent {
namespace {

using wire::DiskPlace;

class Disks : public ::testing::Test {
 protected:
  DiskFacts read(DiskPlace place, const fs::path& path) const {
    return read_disk(folder.host, place, path).value_or(DiskFacts{});
  }

  test::HostFolder folder;
};

TEST_F(Disks, ReadsSizes) {
  const DiskFacts disk = read(DiskPlace::project, folder.host.home);
  EXPECT_EQ(disk.what, "project");
  EXPECT_TRUE(disk.there && disk.writable);
  EXPECT_EQ(disk.path, folder.host.home);
  struct statvfs info {};
  ASSERT_EQ(::statvfs(disk.path.c_str(), &info), 0);
  EXPECT_EQ(disk.total_bytes, static_cast<std::uint64_t>(info.f_blocks) * info.f_frsize);
  EXPECT_GT(disk.free_bytes, 0U);
  EXPECT_LE(disk.free_bytes, disk.total_bytes);
  EXPECT_EQ(disk.inodes, info.f_files);
  EXPECT_LE(disk.free_inodes, disk.inodes);
  struct stat status {};
  ASSERT_EQ(::stat(disk.path.c_str(), &status), 0);
  EXPECT_EQ(disk.device, status.st_dev);
}

TEST_F(Disks, TakesTheNearestFolderThatExists) {
  const DiskFacts disk = read(DiskPlace::environment, folder.host.home / "not/there");
  EXPECT_EQ(disk.what, "environment");
  EXPECT_FALSE(disk.there);
  EXPECT_TRUE(disk.writable);
  EXPECT_EQ(disk.path, folder.host.home);
  folder.put(folder.host.home / "file", "");
  EXPECT_EQ(read(DiskPlace::project, folder.host.home / "file/x").path, folder.host.home);
  EXPECT_EQ(read(DiskPlace::project, "/no-such-folder/x").path, "/");
  EXPECT_EQ(read(DiskPlace::project, "/").path, "/");
  EXPECT_TRUE(read(DiskPlace::project, folder.host.home / "").there);
  fs::create_symlink(folder.host.home, folder.path() / "link");
  EXPECT_TRUE(read(DiskPlace::project, folder.path() / "link").there);
}

TEST_F(Disks, KnowsALinkWithoutATarget) {
  const fs::path link = folder.path() / "link";
  fs::create_symlink(folder.path() / "gone", link);
  const DiskFacts disk = read(DiskPlace::project, link);
  EXPECT_FALSE(disk.there);
  EXPECT_EQ(disk.dangling, folder.path() / "gone");
  EXPECT_EQ(read(DiskPlace::project, folder.path() / "nothing").dangling, "");
  fs::create_directory(folder.path() / "gone");
  EXPECT_EQ(read(DiskPlace::project, link).dangling, "");
}

TEST_F(Disks, KnowsWhetherItCanWrite) {
  if (::geteuid() == 0) {
    GTEST_SKIP() << "root can write everywhere";
  }
  fs::permissions(folder.host.home, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_FALSE(read(DiskPlace::project, folder.host.home).writable);
  fs::permissions(folder.host.home, fs::perms::owner_all);
}

TEST_F(Disks, ReadsWhetherADiskRotates) {
  struct stat status {};
  ASSERT_EQ(::stat(folder.host.home.c_str(), &status), 0);
  const std::string name = std::to_string(major(status.st_dev)) + ":" + std::to_string(minor(status.st_dev));
  EXPECT_EQ(read(DiskPlace::project, folder.host.home).rotational, std::nullopt);
  folder.put_system("sys/dev/block/" + name + "/queue/rotational", "0\n");
  EXPECT_EQ(read(DiskPlace::project, folder.host.home).rotational, false);
  folder.put_system("sys/dev/block/" + name + "/queue/rotational", "1\n");
  EXPECT_EQ(read(DiskPlace::project, folder.host.home).rotational, true);
  // A partition is a subfolder of its disk's folder, and there is a link to it.
  fs::remove_all(folder.host.root / "sys/dev/block");
  folder.put_system("sys/devices/sda/queue/rotational", "0\n");
  fs::create_directories(folder.host.root / "sys/devices/sda/sda1");
  fs::create_directories(folder.host.root / "sys/dev/block");
  fs::create_directory_symlink("../../devices/sda/sda1", folder.host.root / "sys/dev/block" / name);
  EXPECT_EQ(read(DiskPlace::project, folder.host.home).rotational, false);
}

TEST_F(Disks, ReadsThePlacesOfARequest) {
  wire::FactsRequest request;
  request.project = "my proj";
  request.environment = "~/my proj/.venv";
  request.disks = {DiskPlace::project, DiskPlace::environment, DiskPlace::tmp, DiskPlace::shm};
  fs::create_directories(folder.host.home / "my proj");
  folder.host.environment["TMPDIR"] = folder.path();
  std::vector<DiskFacts> disks = read_disks(folder.host, request);
  ASSERT_EQ(disks.size(), 3U) << "there is no shared memory";
  EXPECT_EQ(disks[0].path, folder.host.home / "my proj");
  EXPECT_TRUE(disks[0].there);
  EXPECT_EQ(disks[1].path, folder.host.home / "my proj");
  EXPECT_FALSE(disks[1].there);
  EXPECT_EQ(disks[2].path, folder.path());
  fs::create_directories(folder.host.shared_memory);
  folder.host.environment.erase("TMPDIR");
  disks = read_disks(folder.host, request);
  ASSERT_EQ(disks.size(), 4U);
  EXPECT_EQ(disks[2].path, "/tmp");
  EXPECT_EQ(disks[3].what, "shm");
  EXPECT_EQ(disks[3].path, folder.host.shared_memory);
  for (const DiskFacts& disk : disks) {
    EXPECT_NO_THROW(wire::from_json<DiskFacts>(wire::to_json(disk)));
  }
}

TEST_F(Disks, NamesATmpdirThatCannotBeUsed) {
  wire::FactsRequest request;
  request.disks = {DiskPlace::project, DiskPlace::tmp};
  const auto read_tmpdir = [&](const std::string& value) {
    folder.host.environment["TMPDIR"] = value;
    const std::vector<DiskFacts> disks = read_disks(folder.host, request);
    EXPECT_EQ(disks.at(0).unusable_tmpdir, std::nullopt);
    return disks.at(1).unusable_tmpdir;
  };
  EXPECT_EQ(read_tmpdir(""), std::nullopt);
  EXPECT_EQ(read_tmpdir(folder.path()), std::nullopt);
  EXPECT_EQ(read_tmpdir("/no-such-folder"), "/no-such-folder");
  const std::string file = folder.path() / "file";
  folder.put(file, "");
  EXPECT_EQ(read_tmpdir(file), file);
}

TEST_F(Disks, KnowsWhatAFolderNeedsToBeRead) {
  struct stat status {};
  ASSERT_EQ(::stat(folder.host.home.c_str(), &status), 0);
  const std::string device =
      std::to_string(major(status.st_dev)) + ":" + std::to_string(minor(status.st_dev));
  const auto needs = [&](const std::string& type, const std::string& source, const std::string& options) {
    folder.put_system("proc/self/mountinfo", "22 1 0:20 / /proc rw,nosuid shared:5 - proc proc rw\n30 22 " +
                                                 device + " / /home rw,noatime shared:7 master:1 - " + type +
                                                 " " + source + " " + options +
                                                 "\n31 22 0:77 / /afs rw - afs none rw\n");
    EXPECT_EQ(read(DiskPlace::tmp, folder.host.home).access_needs, "");
    return read(DiskPlace::project, folder.host.home).access_needs;
  };
  EXPECT_EQ(read(DiskPlace::project, folder.host.home).access_needs, "") << "no file mountinfo";
  EXPECT_EQ(needs("ext4", "/dev/sda1", "rw,errors=remount-ro"), "");
  EXPECT_EQ(needs("nfs4", "nas:/home", "rw,vers=4.2,sec=sys"), "");
  EXPECT_EQ(needs("nfs4", "nas:/home", "rw,vers=4.2,sec=krb5p,clientaddr=10.0.0.7"), "a Kerberos ticket");
  EXPECT_EQ(needs("cifs", "//nas/home", "rw,sec=krb5,cruid=1000"), "a Kerberos ticket");
  EXPECT_EQ(needs("afs", "AFS", "rw"), "AFS tokens");
  EXPECT_EQ(needs("ecryptfs", "/home/.ecryptfs/ada/.Private", "rw"), "the mount by ecryptfs");
  EXPECT_EQ(needs("fuse.gocryptfs", "/home/ada/.cipher", "rw"), "the mount by gocryptfs");
  EXPECT_EQ(needs("ext4", "/dev/mapper/home-ada", "rw"), "the mount by systemd-homed");
  folder.put_system("proc/self/mountinfo", "not a mount\n - \n1 2 - 3\n");
  EXPECT_EQ(read(DiskPlace::project, folder.host.home).access_needs, "");
}

TEST_F(Disks, NamesFileSystemsAsStatDoes) {
  EXPECT_EQ(name_file_system(0xEF53), "ext2/ext3");
  EXPECT_EQ(name_file_system(0x00C36400), "ceph");
  EXPECT_EQ(name_file_system(0x19830326), "fhgfs");
  EXPECT_EQ(name_file_system(0xabcdef), "UNKNOWN (0xabcdef)");
  for (const char* path : {"/", "/tmp", "/dev/shm", "/proc", "/sys"}) {
    const RunResult stat = run(folder.host, {.argv = {"stat", "-f", "-c", "%T", path}});
    if (fs::is_directory(path) && stat.succeeded()) {
      EXPECT_EQ(read(DiskPlace::project, path).type + "\n", stat.out) << path;
    }
  }
}

}  // namespace
}  // namespace remote::agent
