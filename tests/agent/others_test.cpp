#include "agent/facts/others.hpp"

#include <gmock/gmock.h>

#include "agent/host_folder.hpp"

namespace remote::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Others : public ::testing::Test {
 protected:
  // A process of this user with this name and working directory.
  void add(const std::string& name, const std::string& works_in) {
    const std::string process = "proc/" + std::to_string(++pid);
    folder.put_system(process + "/comm", name + "\n");
    fs::create_symlink(works_in, folder.host.system("/" + process + "/cwd").string());
  }
  void add_guard(const std::string& project, const std::string& id) {
    add("remote-guard", project + "/.jobs/" + id);
  }
  std::vector<std::string> find(const fs::path& project) const {
    std::vector<std::string> found;
    for (const OtherProject& other : find_running_jobs(folder.host, project).others) {
      found.push_back(other.folder + " " + std::to_string(other.jobs));
    }
    return found;
  }
  std::string home() const { return folder.host.home; }

  const std::string a = "0123456789abcdef0123456789abcdef";
  const std::string b = "fedcba98765432100123456789abcdef";
  test::HostFolder folder;
  int pid = 100;
};

TEST_F(Others, CountsJobsByProject) {
  fs::create_directories(home() + "/my proj");
  add_guard(home() + "/my proj", a);
  EXPECT_THAT(find(home() + "/my proj"), IsEmpty()) << "the project itself";
  EXPECT_THAT(find(home() + "/second"), ElementsAre("~/my proj 1"));
  add_guard(home() + "/my proj", a);  // a fork of it
  add_guard(home() + "/my proj", b);
  add_guard("/data/ada/x", a);
  EXPECT_THAT(find(home() + "/second"), ElementsAre("/data/ada/x 1", "~/my proj 2"));
  EXPECT_THAT(find_running_jobs(folder.host, home() + "/my proj").here, ElementsAre(a, b));
}

TEST_F(Others, KnowsTheProjectByAnotherPath) {
  fs::create_directories(home() + "/my proj");
  fs::create_symlink("my proj", home() + "/link");
  add_guard(home() + "/link", a);
  EXPECT_THAT(find(home() + "/my proj"), IsEmpty());
  EXPECT_THAT(find_running_jobs(folder.host, home() + "/my proj").here, ElementsAre(a));
}

TEST_F(Others, IgnoresPracticeServersButInTheirOwnHome) {
  add_guard("/work/p/.remote/sandbox/n1/home/x", a);
  EXPECT_THAT(find("/nowhere"), IsEmpty());
  folder.host.home = "/work/p/.remote/sandbox/n1/home";
  add_guard("/work/p/.remote/sandbox/n2/home/x", a);
  EXPECT_THAT(find("/nowhere"), ElementsAre("~/x 1"));
}

TEST_F(Others, IgnoresOtherProcesses) {
  add("sh", "/x/.jobs/" + a);
  add("remote-guards", "/x/.jobs/" + a);
  add("remote-guard", "/x/.jobs/" + a + "0");
  add("remote-guard", "/x/.jobs/0123456789ABCDEF0123456789ABCDEF");
  add("remote-guard", "/x/.jobs/" + a + " (deleted)");
  add("remote-guard", "/.jobs/" + a);
  add("remote-guard", "x/.jobs/" + a);
  folder.put_system("proc/self/comm", "remote-guard\n");
  EXPECT_THAT(find("/nowhere"), IsEmpty());
}

TEST_F(Others, MakesFoldersVisible) {
  add_guard(home() + "/a\x1b[2J\nb", a);
  EXPECT_THAT(find("/nowhere"), ElementsAre("~/a\\x1b[2J\\x0ab 1"));
}

TEST_F(Others, ReadsThisMachine) {
  EXPECT_NO_THROW(find_running_jobs(Host::of_this_process(), "/nowhere"));
}

}  // namespace
}  // namespace remote::agent
