#include "agent/facts/logind.hpp"

#include <gtest/gtest.h>

#include "agent/host_folder.hpp"

namespace remote::agent {
namespace {

using Users = std::vector<std::string>;

class Logind : public ::testing::Test {
 protected:
  ServerFacts read() const {
    ServerFacts facts;
    read_logind(folder.host, facts);
    return facts;
  }
  void put(const std::string& path, const std::string& text) const { folder.put_system(path, text); }
  bool is_in_session(const std::string& cgroup) const {
    put("proc/self/cgroup", cgroup);
    return read().in_session;
  }

  test::HostFolder folder;
};

TEST_F(Logind, ReadsTheConfiguration) {
  fs::create_directories(folder.host.root / "run/systemd/system");
  put("etc/systemd/logind.conf", "[Login]\n#KillUserProcesses=yes\nKillUserProcesses=no\n");
  EXPECT_FALSE(read().kill_user_processes);
  EXPECT_TRUE(read().removes_ipc) << "the default";
  put("etc/systemd/logind.conf.d/0.conf", "[Login]\nRemoveIPC=no\n");
  EXPECT_FALSE(read().removes_ipc);
  put("etc/systemd/logind.conf.d/a.conf", "[Login]\nKillUserProcesses=yes\nKillExcludeUsers=root bob\n");
  EXPECT_TRUE(read().kill_user_processes);
  EXPECT_EQ(read().kill_excluded, (Users{"root", "bob"}));
  EXPECT_FALSE(read().in_session);
  // Whitespace around everything, and no final newline.
  put("etc/systemd/logind.conf.d/a.conf", "[Login]\n KillUserProcesses\t= Yes \nKillExcludeUsers=nobody x");
  EXPECT_TRUE(read().kill_user_processes);
  EXPECT_EQ(read().kill_excluded, (Users{"nobody", "x"}));
  put("etc/systemd/logind.conf.d/b.conf", "[Login]\nKillOnlyUsers=nobody\n");
  EXPECT_EQ(read().kill_only, (Users{"nobody"}));
  put("etc/systemd/logind.conf.d/c.conf.bak", "[Login]\nKillUserProcesses=no\n");
  EXPECT_TRUE(read().kill_user_processes) << "not a drop-in";
  fs::remove_all(folder.host.root / "run/systemd");
  EXPECT_FALSE(read().kill_user_processes) << "systemd does not run";
}

TEST_F(Logind, KnowsWhatYesIs) {
  fs::create_directories(folder.host.root / "run/systemd/system");
  for (const char* yes : {"yes", "YES", "True", "on", "1", "y", "T"}) {
    put("etc/systemd/logind.conf", std::string("KillUserProcesses=") + yes + "\n");
    EXPECT_TRUE(read().kill_user_processes) << yes;
  }
  for (const char* no : {"", "no", "0", "yess", "yes no"}) {
    put("etc/systemd/logind.conf", std::string("KillUserProcesses=") + no + "\n");
    EXPECT_FALSE(read().kill_user_processes) << no;
  }
}

// systemd sorts drop-ins by name, no matter which folder they are in.
TEST_F(Logind, ReadsDropInsAsSystemdDoes) {
  fs::create_directories(folder.host.root / "run/systemd/system");
  put("usr/lib/systemd/logind.conf", "KillUserProcesses=yes\n");
  EXPECT_TRUE(read().kill_user_processes);
  put("etc/systemd/logind.conf", "#KillUserProcesses=no\n");
  EXPECT_FALSE(read().kill_user_processes) << "only the main file of the highest priority is read";
  put("etc/systemd/logind.conf.d/10-a.conf", "KillUserProcesses=yes\n");
  put("usr/lib/systemd/logind.conf.d/20-b.conf", "KillUserProcesses=no\n");
  EXPECT_FALSE(read().kill_user_processes) << "20-b.conf is after 10-a.conf";
  put("run/systemd/logind.conf.d/20-b.conf", "");
  EXPECT_TRUE(read().kill_user_processes) << "it hides the file of the same name";
}

TEST_F(Logind, CollectsUsersOfAllFiles) {
  fs::create_directories(folder.host.root / "run/systemd/system");
  put("etc/systemd/logind.conf", "KillOnlyUsers=ada\nKillExcludeUsers=root bob\n");
  put("etc/systemd/logind.conf.d/a.conf",
      "KillOnlyUsers=eve\x1b[2J\nKillExcludeUsers=\nKillExcludeUsers=carl\n");
  EXPECT_EQ(read().kill_only, (Users{"ada", "eve\\x1b[2J"}));
  EXPECT_EQ(read().kill_excluded, (Users{"carl"})) << "an empty value clears the list";
}

TEST_F(Logind, KnowsASession) {
  EXPECT_FALSE(read().in_session);
  EXPECT_TRUE(is_in_session("0::/user.slice/user-1000.slice/session-3.scope\n"));
  EXPECT_TRUE(is_in_session("1:name=systemd:/user.slice/user-1000.slice/session-3.scope\n0::/\n"));
  EXPECT_TRUE(is_in_session("0::/user.slice/user-1000.slice/session-c1.scope/part\n"));
  EXPECT_FALSE(is_in_session("0::/system.slice/docker-1.scope\n"));
  EXPECT_FALSE(is_in_session("0::/user.slice/user-1000.slice/session-3.scope.d\n"));
  EXPECT_FALSE(is_in_session("0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-1.scope\n"));
}

}  // namespace
}  // namespace remote::agent
