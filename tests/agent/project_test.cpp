#include "agent/facts/project.hpp"

#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/host_folder.hpp"

namespace remote::agent {
namespace {

class ProjectFolder : public ::testing::Test {
 protected:
  ProjectFolder() { fs::create_directories(project); }

  ServerFacts check() const {
    ServerFacts facts;
    check_jobs_folder(project, ".jobs", facts);
    return facts;
  }
  std::string find_open() const { return find_open_path(folder.host, project, ".jobs"); }
  static void set_mode(const fs::path& path, mode_t mode) { ASSERT_EQ(::chmod(path.c_str(), mode), 0); }
  void put_accounts(const std::string& user, const std::string& group) const {
    folder.put_system("etc/passwd",
                      "x:x:99999:1::/:\n" + user + ":x:" + std::to_string(::geteuid()) + ":1::/:\n");
    folder.put_system("etc/group", group + ":x:" + std::to_string(::getegid()) + ":\n");
  }

  test::HostFolder folder;
  const fs::path project = folder.host.home / "my proj";
  const fs::path jobs = project / ".jobs";
};

TEST_F(ProjectFolder, ReportsThatNoJobCanBeKept) {
  EXPECT_FALSE(check().jobs_closed);
  folder.put(jobs, "a file");
  EXPECT_TRUE(check().jobs_closed);
  fs::remove(jobs);
  fs::create_symlink("nowhere", jobs);
  EXPECT_TRUE(check().jobs_closed);
  fs::remove(jobs);
  fs::create_directory(jobs);
  EXPECT_FALSE(check().jobs_closed);
  if (::geteuid() != 0) {
    set_mode(jobs, 0500);
    EXPECT_TRUE(check().jobs_closed);
    set_mode(jobs, 0600);
    EXPECT_TRUE(check().jobs_closed);
    set_mode(jobs, 0700);
  }
  fs::remove(jobs);
  fs::create_directory(project / "elsewhere");
  fs::create_symlink("elsewhere", jobs);
  EXPECT_FALSE(check().jobs_closed);
  fs::remove_all(project);
  EXPECT_FALSE(check().jobs_closed);
}

TEST_F(ProjectFolder, IsTriedAsARunUsesIt) {
  const auto tried = [](const fs::path& path) {
    ServerFacts facts;
    try_folder(path.string(), facts);
    return facts;
  };
  EXPECT_EQ(tried(project).flaw, FolderFlaw::none) << tried(project).flaw_text;
  EXPECT_TRUE(fs::is_empty(project));
  EXPECT_EQ(tried(project / "not/there").flaw, FolderFlaw::none) << "the nearest one above it";
  EXPECT_TRUE(fs::is_empty(project));
  if (::geteuid() == 0) {  // only root may try this
    EXPECT_NE(tried("/proc/self/task").flaw, FolderFlaw::none);
    EXPECT_FALSE(tried("/proc/self/task").flaw_text.empty());
  }
}

// Runs `work` on a thread on which these system calls fail, as on a file system without support for them.
// Returns false if the kernel cannot filter system calls, as in qemu.
bool run_without(const std::vector<int>& calls, const std::function<void()>& work) {
  std::vector<sock_filter> program{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const int call : calls) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  bool filtered = false;
  std::thread([&] {
    filtered = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
               ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
    if (filtered) {
      work();
    }
  }).join();
  return filtered;
}

TEST_F(ProjectFolder, NeedsNoLocksAndPipesForPackages) {
  struct Lack {
    const char* what;
    std::vector<int> calls;
    bool for_packages;
  };
  const Lack lacks[] = {{"locks", {SYS_fcntl}, false},
                        {"pipes",
                         {SYS_mknodat,
#ifdef SYS_mknod
                          SYS_mknod
#endif
                         },
                         false},
                        {"modes", {SYS_fchmod}, true},
                        {"links",
                         {SYS_symlinkat,
#ifdef SYS_symlink
                          SYS_symlink
#endif
                         },
                         true}};
  for (const Lack& lack : lacks) {
    std::string for_runs;
    std::string for_packages;
    if (!run_without(lack.calls, [&] {
          for_runs = find_flaw(project.string());
          for_packages = find_flaw_for_packages(project.string());
        })) {
      GTEST_SKIP() << "system calls cannot be filtered here";
    }
    EXPECT_EQ(for_runs, "Operation not permitted") << lack.what;
    EXPECT_EQ(for_packages, lack.for_packages ? for_runs : "") << lack.what;
  }
  EXPECT_EQ(find_flaw(project.string()), "");
  EXPECT_TRUE(fs::is_empty(project));
}

TEST_F(ProjectFolder, ReadsTheMarkOfASickServer) {
  EXPECT_EQ(check().sick, "");
  for (const char* mark : {"gpu", "ecc", "xid", "disk"}) {
    folder.put(jobs / ".sick", std::string(mark) + " 1700000000 since then\n");
    EXPECT_EQ(check().sick, mark);
  }
  for (const char* text : {"", "gpu", "\n", "gpus 1\n", "\x1b[2J\n", "x\ngpu\n"}) {
    folder.put(jobs / ".sick", text);
    EXPECT_EQ(check().sick, "") << text;
  }
  fs::remove(jobs / ".sick");
  ASSERT_EQ(::mkfifo((jobs / ".sick").c_str(), 0600), 0);
  EXPECT_EQ(check().sick, "") << "a pipe would block";
}

TEST_F(ProjectFolder, FindsAPathThatOthersCanWrite) {
  fs::create_directories(project / "a lib/deep");
  fs::create_directories(jobs / "1");
  folder.put(project / "a lib/x.py", "1");
  fs::create_symlink("x.py", project / "a lib/link");
  for (const fs::path& path : {project, project / "a lib", project / "a lib/deep", jobs}) {
    set_mode(path, 0755);
  }
  set_mode(project / "a lib/x.py", 0644);
  set_mode(jobs / "1", 0777);
  EXPECT_EQ(find_open(), "");
  for (const fs::path& open : {project / "a lib/x.py", project / "a lib/deep", project}) {
    struct stat info {};
    ASSERT_EQ(::stat(open.c_str(), &info), 0);
    set_mode(open, info.st_mode | S_IWOTH);
    EXPECT_EQ(find_open(), open);
    set_mode(open, info.st_mode);
  }
  set_mode(jobs, 0777);
  EXPECT_EQ(find_open(), "");
  EXPECT_EQ(find_open_path(folder.host, project / "none", ".jobs"), "");
}

TEST_F(ProjectFolder, SearchesAllLevelsThoseNearTheTopFirst) {
  set_mode(project, 0755);
  fs::path path = project;
  for (int level = 0; level < 60; ++level) {
    path /= "level";
    fs::create_directory(path);
    set_mode(path, 0755);
  }
  EXPECT_EQ(find_open(), "");
  folder.put(path / "x.py", "1");
  set_mode(path / "x.py", 0666);
  EXPECT_EQ(find_open(), path / "x.py");
  fs::create_directories(project / "a/b");
  set_mode(project / "a", 0755);
  set_mode(project / "a/b", 0777);
  EXPECT_EQ(find_open(), project / "a/b");
}

TEST_F(ProjectFolder, FollowsOnlyALinkToTheProject) {
  const fs::path outside = folder.path() / "outside";
  fs::create_directories(outside / "open");
  set_mode(outside, 0755);
  set_mode(project, 0755);
  set_mode(outside / "open", 0777);
  fs::create_directory_symlink(outside, project / "link");
  EXPECT_EQ(find_open(), "");
  EXPECT_EQ(find_open_path(folder.host, project / "link", ".jobs"), project / "link/open");
}

TEST_F(ProjectFolder, TheUsersOwnGroupMayWrite) {
  set_mode(project, 0755);
  folder.put(project / "x.py", "1");
  set_mode(project / "x.py", 0664);
  put_accounts("ada", "ada");
  EXPECT_EQ(find_open(), "");
  put_accounts("ada", "staff");
  EXPECT_EQ(find_open(), project / "x.py");
  // Names from a directory service.
  fs::remove_all(folder.host.root / "etc");
  folder.host.environment["PATH"] = folder.path() / "bin";
  folder.put_program(folder.path() / "bin/getent", "echo \"eve:x:$2:1\"\n");
  EXPECT_EQ(find_open(), "");
  folder.put_program(folder.path() / "bin/getent", "echo \"$1:x:$2:1\"\n");
  EXPECT_EQ(find_open(), project / "x.py");
}

TEST_F(ProjectFolder, AnotherGroupMayNotWrite) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can give a file to another group";
  }
  set_mode(project, 0755);
  folder.put(project / "x.py", "1");
  set_mode(project / "x.py", 0664);
  ASSERT_EQ(::chown((project / "x.py").c_str(), 0, 12345), 0);
  put_accounts("ada", "ada");
  EXPECT_EQ(find_open(), project / "x.py");
}

TEST_F(ProjectFolder, StopsInTime) {
  set_mode(project, 0755);
  folder.put(project / "x.py", "1");
  set_mode(project / "x.py", 0666);
  EXPECT_EQ(find_open_path(folder.host, project, ".jobs", std::chrono::milliseconds(0)), "");
}

}  // namespace
}  // namespace remote::agent
