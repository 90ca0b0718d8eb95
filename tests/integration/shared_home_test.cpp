// Several servers that share a home folder, as over NFS, or a project folder: shared work is done once, and
// their jobs do not interfere.

#include "base/files.hpp"
#include "base/strings.hpp"
#include "support/command_world.hpp"
#include "support/waiting.hpp"

namespace remote::test {
namespace {

class CommandSharedHome : public ::testing::Test {
 protected:
  CommandSharedHome() {
    configure("python: {manager: system}\n");
    fs::remove_all(world.servers().home("b"));
    fs::remove_all(world.servers().home("c"));
    share_home("b");
    share_home("c");
    write_file_atomic(world.project() / "train.py", "print(1)\n");
    write_file_atomic(world.project() / "old.py", "print(0)\n");
  }
  void configure(const std::string& more) {
    world.configure("name: proj\nservers:\n  a: {hostname: a}\n  b: {hostname: b}\n  c: {hostname: c}\n" +
                    more);
  }
  void share_home(const std::string& server) {
    fs::create_directory_symlink(world.servers().home("a"), world.servers().home("a").parent_path() / server);
  }
  // The servers that performed this step, from the logs they kept.
  std::vector<std::string> done_by(const std::string& step) {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(world.project() / ".remote/logs")) {
      const std::string name = entry.path().filename().string();
      if (entry.is_directory() && name.find(step) != std::string::npos) {
        names.push_back(name);
      }
    }
    return names;
  }
  // A fake python that makes environments and logs its calls.
  void add_python() {
    world.servers().add_program("python3", R"(echo "$*" >>~/calls
if [ "$2" = venv ]; then
  for folder; do :; done
  mkdir -p "$folder/bin" && : >"$folder/pyvenv.cfg" && sleep 0.3 && ln -s "$0" "$folder/bin/python"
fi
)");
  }
  void job_writes(const std::string& name) { write_file_atomic(world.there("a") / name, "of a job\n"); }
  CommandWorld world;
};

TEST_F(CommandSharedHome, WhatIsDoneThereIsDoneOnceAndSaid) {
  const CommandResult result = world.run({"prepare"});
  EXPECT_EQ(result.code, 0) << result;
  EXPECT_THAT(result.err, AllOf(HasSubstr("a, b and c share one home: prepared once\n"),
                                HasSubstr("they share one home"), HasSubstr("3 servers prepared\n")));
  EXPECT_EQ(done_by("rsync").size(), 1U);
  EXPECT_EQ(done_by("setup").size(), 1U);
  EXPECT_EQ(read_file(world.there("c") / "train.py"), "print(1)\n");
  const auto again = world.run({"prepare", "--json"}).json();
  std::size_t followers = 0;
  for (const auto& server : again) {
    EXPECT_TRUE(server["ok"]);
    EXPECT_EQ(server["setup"], "already");
    followers += server["shared_with"].is_null() ? 0 : 1;
  }
  EXPECT_EQ(followers, 2U);
  EXPECT_THAT(world.run({"rsync", "--server", "b"}).err, Not(HasSubstr("share")));
  for (const auto& entry : fs::directory_iterator(world.servers().home("a"))) {
    const std::string name = entry.path().filename();
    EXPECT_TRUE(name == "proj" || name == ".cache") << name << ": no lock and no token in the home";
  }
}

TEST_F(CommandSharedHome, RanksMeetByAFileWithoutBeingToldWhere) {
  ASSERT_EQ(world.run({"rsync"}).code, 0);
  const CommandResult result =
      world.run({"launch", "--init-method", "file", "--env", "MASTER_ADDR", "127.0.0.1", "--follow", "--cmd",
                 "echo >>\"${INIT_METHOD#file://}\" && echo \"$INIT_METHOD\""});
  EXPECT_EQ(result.code, 0) << result;
  EXPECT_THAT(result.out, HasSubstr("file://" + (world.there("a") / ".jobs/.remote-init-").string()));
  for (const auto& entry : fs::directory_iterator(world.there("a") / ".jobs")) {
    EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr("init")));
  }
}

TEST_F(CommandSharedHome, WhatOneWasSentIsKnownOfTheOthers) {
  const auto job = [&] { return world.run({"job-run", "--server", "b", "--cmd", "true"}).err; };
  ASSERT_EQ(world.run({"rsync"}).code, 0);
  write_file_atomic(world.project() / "train.py", "print(22)\n");
  ASSERT_EQ(world.run({"rsync", "--server", "a"}).code, 0);
  EXPECT_THAT(job(), Not(HasSubstr("changed here")));
  write_file_atomic(world.project() / "train.py", "print(1)\n");
  EXPECT_THAT(job(), HasSubstr("changed here since the last rsync to b: train.py"));
}

TEST_F(CommandSharedHome, ServersWithHomesOfTheirOwnAreNotTakenForOne) {
  fs::remove(world.servers().home("b").parent_path() / "b");
  ASSERT_EQ(world.run({"rsync", "--server", "a"}).code, 0);
  fs::copy(world.servers().home("a"), world.servers().home("b"),
           fs::copy_options::recursive | fs::copy_options::copy_symlinks);  // a cloned machine
  write_file_atomic(world.project() / "new.py", "print(2)\n");
  const CommandResult result = world.run({"rsync"});
  EXPECT_EQ(result.code, 0) << result;
  EXPECT_THAT(result.err, HasSubstr("a and c share one home: synced once\n"));
  EXPECT_EQ(read_file(world.there("b") / "new.py"), "print(2)\n");
}

TEST_F(CommandSharedHome, AnEnvironmentElsewhereIsMadeOnEachServer) {
  const fs::path common = world.servers().home("a") / "common";
  fs::remove(world.servers().home("b").parent_path() / "b");
  configure("remote_path: " + common.string() + "\npython: {manager: venv, environment: ~/env}\n");
  add_python();
  const CommandResult result = world.run({"prepare"});
  EXPECT_EQ(result.code, 0) << result;
  EXPECT_THAT(result.err, AllOf(HasSubstr("a, b and c share one folder: prepared once\n")));
  EXPECT_EQ(done_by("rsync").size(), 1U);
  for (const char* server : {"a", "b"}) {
    EXPECT_TRUE(fs::exists(world.servers().home(server) / "env/bin/python")) << result;
    const std::string calls = read_file(world.servers().home(server) / "calls");
    EXPECT_EQ(calls.find("-m venv"), calls.rfind("-m venv")) << calls;
  }
}

// The folders differ, but they share an environment: the lock next to it is effective.
TEST_F(CommandSharedHome, OneEnvironmentOfSeveralFoldersIsMadeOnce) {
  add_python();
  world.configure(
      "name: proj\npython: {manager: venv, environment: ~/env}\nservers:\n  a: {hostname: a}\n"
      "  b: {hostname: b, remote_path: ~/two}\n  c: {hostname: c, remote_path: ~/three}\n");
  const CommandResult result = world.run({"setup"});
  EXPECT_EQ(result.code, 0) << result;
  EXPECT_THAT(result.err, Not(HasSubstr("share")));
  const std::string calls = read_file(world.servers().home("a") / "calls");
  EXPECT_EQ(calls.find("-m venv"), calls.rfind("-m venv")) << calls;
}

TEST_F(CommandSharedHome, AFailureIsNotTriedAgainForTheOthers) {
  world.servers().add_program("rsync", "echo x >>~/calls\necho 'no luck' >&2\nexit 1\n");
  const CommandResult result = world.run({"rsync"});
  EXPECT_EQ(result.code, 1) << result;
  EXPECT_EQ(read_file(world.servers().home("a") / "calls"), "x\n");
  EXPECT_THAT(result.err, AllOf(HasSubstr("no luck"), HasSubstr("one folder with "),
                                HasSubstr("which failed"), HasSubstr(" 3 failed\n")));
}

TEST_F(CommandSharedHome, WhatWasRemovedByWayOfOneServerIsGoneForAll) {
  ASSERT_EQ(world.run({"rsync"}).code, 0);
  fs::remove(world.project() / "old.py");
  const CommandResult result = world.run({"rsync", "--delete"});
  EXPECT_EQ(result.code, 0) << result;
  EXPECT_FALSE(fs::exists(world.there("a") / "old.py"));
  // A job writes a file with this name, so no server may remove it any more.
  job_writes("old.py");
  for (const char* server : {"a", "b", "c"}) {
    EXPECT_EQ(world.run({"rsync", "--delete", "--server", server}).code, 0);
    EXPECT_TRUE(fs::exists(world.there("a") / "old.py")) << server;
  }
  // The same if a call names only one server.
  fs::remove(world.project() / "train.py");
  EXPECT_EQ(world.run({"rsync", "--delete", "--server", "c"}).code, 0);
  EXPECT_FALSE(fs::exists(world.there("a") / "train.py"));
  job_writes("train.py");
  EXPECT_EQ(world.run({"rsync", "--delete"}).code, 0);
  EXPECT_EQ(world.run({"rsync", "--delete", "--server", "b"}).code, 0);
  EXPECT_TRUE(fs::exists(world.there("a") / "train.py"));
}

TEST_F(CommandSharedHome, WhatOneServersRecordNamesGoesWhoeverIsFirst) {
  ASSERT_EQ(world.run({"rsync", "--server", "b"}).code, 0);
  fs::remove(world.project() / "old.py");
  EXPECT_EQ(world.run({"rsync", "--delete"}).code, 0);
  EXPECT_FALSE(fs::exists(world.there("a") / "old.py"));
}

TEST_F(CommandSharedHome, JobsStayApart) {
  ASSERT_EQ(world.run({"rsync"}).code, 0);
  const Job lives = world.job("a", "exec sleep 1000");
  const Job ends = world.job("b", "exec sleep 1000");
  const Job wrote = world.ended_job("c", "echo text; echo 1 >result.txt");
  EXPECT_EQ(world.run({"job-kill", "--job", std::to_string(ends.key), "--yes"}).code, 0);
  const auto listed = world.run({"job-list", "--json", "--stopped"}).json();
  ASSERT_EQ(listed.size(), 3U);
  for (const auto& job : listed) {
    EXPECT_EQ(job["state"], job["key"] == lives.key  ? "running"
                            : job["key"] == ends.key ? "killed"
                                                     : "succeeded");
  }
  EXPECT_EQ(world.run({"job-rsync"}).code, 0);
  EXPECT_EQ(read_file(world.brought(wrote, "job.out")), "text\n");
  const TempFolder to;
  EXPECT_EQ(
      world.run({"job-pull", "--job", std::to_string(wrote.key), "result.txt", "--to", to.path().string()})
          .code,
      0);
  const CommandResult cleaned = world.run({"job-clean", "--yes"});
  EXPECT_EQ(cleaned.code, 0) << cleaned;
  EXPECT_THAT(cleaned.err, Not(HasSubstr("error")));
  EXPECT_TRUE(fs::exists(world.there("b") / ".jobs" / lives.id.text()));
  EXPECT_FALSE(fs::exists(world.there("a") / ".jobs" / ends.id.text()));
  EXPECT_EQ(world.run({"job-kill", "--job", std::to_string(lives.key), "--yes"}).code, 0);
}

// Each server removes the others' program while they run.
TEST_F(CommandSharedHome, UninstallLeavesNothing) {
  world.ended_job("a", "true");
  until([&] { return world.run({"uninstall", "--yes"}).code == 0; }, "nothing is left");
  EXPECT_FALSE(fs::exists(world.servers().home("a") / ".cache/remote"));
  EXPECT_FALSE(fs::exists(world.there("a") / ".jobs/.bin"));
}

}  // namespace
}  // namespace remote::test
