// Servers that try to write elsewhere through `job-pull` and `job-rsync`.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/files.hpp"
#include "base/shell_quote.hpp"
#include "support/command_world.hpp"

namespace remote::test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class HostilePull : public ::testing::Test {
 protected:
  HostilePull() {
    std::vector<Job> job = {old_record("wrote files")};
    world.store().add(job);
    write("results/good", "good\n");
  }
  void write(const std::string& name, const std::string& text) {
    make_folders((world.there("a") / name).parent_path());
    write_file_atomic(world.there("a") / name, text);
  }
  void link(const std::string& target, const std::string& name) {
    fs::create_symlink(target, world.there("a") / name);
  }
  CommandResult pull(const std::string& path, const fs::path& folder) {
    return world.run({"job-pull", "--job", "1", "--to", folder.string(), path});
  }
  // From now on the server's rsync sends `forged` in place of `pattern`, which has the same length, and
  // ignores the filters.
  void forge(const std::string& pattern, const std::string& forged) {
    world.servers().add_program("rsync", "exec python3 -c " + shell_quote(R"(import os, subprocess, sys
p = subprocess.Popen(['/usr/bin/rsync'] + sys.argv[3:], stdout=subprocess.PIPE)
a, b = sys.argv[1].encode(), sys.argv[2].encode()
while True:
  d = os.read(p.stdout.fileno(), 65536)
  if not d: break
  os.write(1, d.replace(a, b))
sys.exit(p.wait()))") + " " + pattern + " " + forged +
                                             " \"$@\"\n");
  }
  std::string config() const { return read_file(world.project() / ".remote/configs.yaml"); }

  CommandWorld world;
  const std::string config_before = config();
  const fs::path to = world.home() / "pulled here";
};

TEST_F(HostilePull, NothingEntersWhatRulesThisMachine) {
  write("results/.remote/configs.yaml", "evil: yes\n");
  write("results/deep/.Remote/configs.yaml", "evil: yes\n");
  write("results/.git/hooks/post-checkout", "evil\n");
  EXPECT_EQ(pull("results/", world.project()).code, 0);
  EXPECT_EQ(read_file(world.project() / "good"), "good\n");
  EXPECT_EQ(config(), config_before);
  EXPECT_FALSE(fs::exists(world.project() / "deep/.Remote"));
  EXPECT_FALSE(fs::exists(world.project() / ".git"));
  for (const char* path : {".git", "results/.remote"}) {
    EXPECT_THAT(pull(path, to), Refused("control what runs on this machine"));
  }
}

TEST_F(HostilePull, ThatFolderIsNoDestination) {
  fs::create_symlink(".remote", world.project() / "alias");
  for (const char* folder : {".remote", ".remote/jobs", "alias", "alias/new", ".git/hooks"}) {
    EXPECT_THAT(pull("results/", world.project() / folder), Refused("choose another folder"));
    EXPECT_FALSE(fs::exists(world.project() / folder / "good")) << folder;
  }
}

TEST_F(HostilePull, AServerThatIgnoresTheFiltersIsRefused) {
  write("results/Aremote/configs.yaml", "evil: yes\n");
  forge("Aremote", ".remote");
  EXPECT_EQ(pull("results/", world.project()).code, 1);
  EXPECT_EQ(config(), config_before);
  // Without the forgery, the fake rsync does copy files.
  forge("Aremote", "Bremote");
  EXPECT_EQ(pull("results/", world.project()).code, 0);
  EXPECT_TRUE(fs::exists(world.project() / "Bremote/configs.yaml"));
}

TEST_F(HostilePull, OfALaunchOnlyItsOutputsComeToItsFolder) {
  write_file_atomic(world.project() / ".remote/configs.yaml", config_before + "outputs: [metrics.csv]\n");
  ASSERT_EQ(
      world.run({"launch", "--server", "a", "--follow", "--", "sh", "-c", "sleep 0.1; echo 1 >metrics.csv"})
          .code,
      0);
  for (const char* forged : {"../../a.csv", "metrics.sh1", "out/etc/abc", "../evil.csv"}) {
    forge("metrics.csv", forged);
    EXPECT_EQ(world.run({"pull"}).code, 1) << forged;
    EXPECT_FALSE(fs::exists(world.project() / "results/2" / forged)) << forged;
  }
  EXPECT_FALSE(fs::exists(world.project() / "results/2/metrics.csv"));
  forge("AAAAA", "BBBBB");
  EXPECT_EQ(world.run({"pull"}).code, 0);
  EXPECT_EQ(read_file(world.project() / "results/2/metrics.csv"), "1\n");
}

TEST_F(HostilePull, OfAJobsFilesOnlyItsOutputComes) {
  const Job job = world.ended_job("a", "echo one");
  const std::string record = read_file(world.brought(job, "job.json"));
  write(".jobs/" + job.id.text() + "/job.jsom", "evil\n");
  forge("job.err", "job.XXX");
  EXPECT_EQ(world.run({"job-rsync"}).code, 1);
  EXPECT_FALSE(fs::exists(world.brought(job, "job.XXX")));
  EXPECT_EQ(read_file(world.brought(job, "job.json")), record);
}

TEST_F(HostilePull, WhatIsOutsideOfTheProjectIsNamedInFull) {
  make_folders(world.servers().home("a") / ".ssh");
  write_file_atomic(world.servers().home("a") / ".ssh/id", "key\n");
  for (const char* path : {"..", "../", "./..", "results/../..", "results/../../.ssh"}) {
    EXPECT_THAT(pull(path, to), Refused("leads out of the project's folder"));
  }
  EXPECT_FALSE(fs::exists(to));
  EXPECT_EQ(pull("~/.ssh/id", to).code, 0);
  EXPECT_EQ(read_file(to / "id"), "key\n");
}

TEST_F(HostilePull, LinksThatLeadOutAreNotBrought) {
  link("good", "results/inside");
  link("/etc/passwd", "results/absolute");
  link("../../precious", "results/above");
  link(".remote/configs.yaml", "results/config");
  link(".", "results/itself");
  make_folders(world.there("a") / "results/deep");
  link("..", "results/deep/up");
  const CommandResult result = pull("results/", world.project());
  EXPECT_EQ(result.code, 0);
  EXPECT_TRUE(fs::is_symlink(world.project() / "inside"));
  for (const char* name : {"absolute", "above", "config", "itself", "deep/up"}) {
    EXPECT_FALSE(fs::is_symlink(world.project() / name)) << name;
    EXPECT_THAT(result.err, HasSubstr(name));
  }
  EXPECT_THAT(result.err, Not(HasSubstr("inside")));
}

TEST_F(HostilePull, WhatCameIsNotSentBackUntilItIsChanged) {
  ASSERT_EQ(pull("results/", world.project() / "got").code, 0);
  const CommandResult sync = world.run({"rsync"});
  EXPECT_EQ(sync.code, 0) << sync;
  EXPECT_THAT(sync.err, HasSubstr("not sent back: 1 file that job-pull brought"));
  EXPECT_FALSE(fs::exists(world.there("a") / "got/good"));
  write_file_atomic(world.project() / "got/good", "better\n");
  EXPECT_EQ(world.run({"rsync"}).code, 0);
  EXPECT_EQ(read_file(world.there("a") / "got/good"), "better\n");
}

TEST_F(HostilePull, OnlyTheLinkThatIsNamedIsFollowed) {
  write("key", "secret\n");
  make_folders(world.servers().home("a") / "big/run");
  write_file_atomic(world.servers().home("a") / "big/run/weights", "w\n");
  fs::create_symlink(world.there("a") / "key", world.servers().home("a") / "big/run/planted");
  link((world.servers().home("a") / "big/run").string(), "latest");
  const fs::path outside = world.home() / "outside";
  make_folders(outside);
  make_folders(to);
  fs::create_symlink(outside, to / "latest");
  const CommandResult result = world.run({"--json", "job-pull", "--job", "1", "--to", to.string(), "latest"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.json()["files"], nlohmann::json({"latest/weights"}));
  EXPECT_EQ(read_file(to / "latest/weights"), "w\n");
  EXPECT_FALSE(fs::exists(fs::symlink_status(to / "latest/planted")));
  EXPECT_TRUE(fs::is_empty(outside));
}

TEST_F(HostilePull, NoRightsComeAlong) {
  ASSERT_EQ(::chmod((world.there("a") / "results/good").c_str(), 06777), 0);
  EXPECT_EQ(pull("results", to).code, 0);
  struct stat found {};
  ASSERT_EQ(::stat((to / "results/good").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0755U);
}

}  // namespace
}  // namespace remote::test
