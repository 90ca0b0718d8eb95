// `rsync --delete` on real sshd processes with real rsync: removes files that this machine sent, keeps files
// that jobs wrote.

#include <gmock/gmock.h>

#include "support/paths.hpp"
#include "support/prepare_world.hpp"

namespace remote::servers {
namespace {
using ::testing::AllOf;
using ::testing::UnorderedElementsAreArray;

class SyncDelete : public PrepareTest {
 protected:
  SyncDelete() {
    use(config::PythonManager::system);
    steps_.setup = steps_.packages = false;
  }
  SyncReport send() {
    steps_.remove = steps_.sync_options.dry_run = false;
    return prepare_once().files;
  }
  SyncReport send_and_delete(bool dry_run = false) {
    steps_.remove = true;
    steps_.sync_options.dry_run = dry_run;
    return prepare_once().files;
  }
  fs::path record() const { return here(".remote/sent/" + server().name); }
};

TEST_F(SyncDelete, WhatJobsWroteStaysInsideAndBesideWhatWasSent) {
  for (const char* name :
       {"ckpt/config.json", "old/a.py", "old/deep/b.py", "empty later/c.py", "gone.py", "stays.py"}) {
    write(here(name), "1");
  }
  send();
  for (const char* name : {"ckpt/best.pt", "ckpt/step 1/weights", "old/deep/out.log", "runs/1/events",
                           "job.txt", ".jobs/1/job.out", ".remote-scripts/bin/python"}) {
    write(there(name), "of a job");
  }
  for (const char* name : {"old", "empty later", "gone.py"}) {
    fs::remove_all(here(name));
  }
  EXPECT_THAT(send().removed, IsEmpty());

  const auto wanted = UnorderedElementsAre("gone.py", "old/a.py", "old/deep/b.py", "empty later/c.py");
  EXPECT_THAT(send_and_delete(true).removed, wanted);
  EXPECT_TRUE(fs::exists(there("gone.py")));
  EXPECT_TRUE(fs::exists(there("empty later/c.py")));

  const SyncReport report = send_and_delete();
  EXPECT_THAT(report.removed, wanted);
  EXPECT_THAT(report.warnings, IsEmpty());
  for (const char* name : {"gone.py", "old/a.py", "old/deep/b.py", "empty later"}) {
    EXPECT_FALSE(fs::exists(there(name))) << name;
  }
  for (const char* name :
       {"ckpt/config.json", "stays.py", "ckpt/best.pt", "ckpt/step 1/weights", "old/deep/out.log",
        "runs/1/events", "job.txt", ".jobs/1/job.out", ".remote-scripts/bin/python"}) {
    EXPECT_TRUE(fs::exists(there(name))) << name;
  }
  // It was removed, so a file with this name now belongs to a job.
  write(there("gone.py"), "of a job");
  EXPECT_THAT(send_and_delete().removed, IsEmpty());
  EXPECT_TRUE(fs::exists(there("gone.py")));
}

TEST_F(SyncDelete, OddNamesGoExactly) {
  const std::vector<std::string> names = {"with space", "[brackets]", "star*",  "back\\slash", "both\\*",
                                          "-dash",      "ünï",        "ends ",  " begins",     "#hash",
                                          "what?",      "**",         "quote'", "R x"};
  std::vector<std::string> wanted;
  for (const std::string& name : names) {
    write(here(name), "1");
    write(here("in " + name + "/" + name), "1");
    wanted.insert(wanted.end(), {name, "in " + name + "/" + name});
  }
  write(here("stays"), "1");
  send();
  // Files that the names would match as patterns.
  const std::vector<std::string> of_jobs = {"b", "starfish", "both\\x", "whats", "in star1/x", "x"};
  for (const std::string& name : of_jobs) {
    write(there(name), "of a job");
  }
  for (const std::string& name : names) {
    fs::remove(here(name));
    fs::remove_all(here("in " + name));
  }
  EXPECT_THAT(send_and_delete(true).removed, UnorderedElementsAreArray(wanted));
  EXPECT_THAT(send_and_delete().removed, UnorderedElementsAreArray(wanted));
  for (const std::string& name : names) {
    EXPECT_FALSE(fs::exists(there(name))) << name;
    EXPECT_FALSE(fs::exists(there("in " + name))) << name;
  }
  EXPECT_TRUE(fs::exists(there("stays")));
  for (const std::string& name : of_jobs) {
    EXPECT_TRUE(fs::exists(there(name))) << name;
  }
}

TEST_F(SyncDelete, WithoutARecordNothingGoes) {
  write(here("a"), "1");
  write(here("last"), "1");
  send();
  const std::string content = read_file(record());
  fs::remove(here("a"));
  fs::remove(record());
  EXPECT_THAT(send_and_delete().removed, IsEmpty());
  for (const std::string& damaged : {content.substr(0, content.size() - 1), std::string("a\0", 2),
                                     content + std::string("../b\0", 5), std::string(), content.substr(1)}) {
    write(record(), damaged);
    EXPECT_THAT(send_and_delete(true).removed, IsEmpty());
  }
  EXPECT_TRUE(fs::exists(there("a")));
  write(record(), content);
  EXPECT_THAT(send_and_delete(true).removed, ElementsAre("a"));

  // Another folder under the same server's name has its own record.
  config_.servers[0].remote_path = "~/elsewhere";
  write(sandbox_.home(0) / "elsewhere/a", "of a job");
  EXPECT_THAT(send_and_delete().removed, IsEmpty());
  EXPECT_TRUE(fs::exists(sandbox_.home(0) / "elsewhere/a"));
}

TEST_F(SyncDelete, WhatWasSentAndThenExcludedStays) {
  write(here("data/set"), "1");
  write(here("notes.md"), "1");
  write(here("a.py"), "1");
  send();
  for (const char* name : {"data/set", "notes.md", "a.py"}) {
    fs::remove(here(name));
  }
  fs::remove(here("data"));
  write(here(".remote/exclude.txt"), "/data/\n*.md\n+ *.py\n");
  write(there("job.py"), "of a job");
  EXPECT_THAT(send_and_delete().removed, ElementsAre("a.py"));
  EXPECT_TRUE(fs::exists(there("data/set")));
  EXPECT_TRUE(fs::exists(there("notes.md")));
  EXPECT_TRUE(fs::exists(there("job.py")));
}

TEST_F(SyncDelete, WhatAJobWroteOverAndASyncFoundNewerStays) {
  write(here("state.json"), "{}");
  fs::last_write_time(here("state.json"), fs::file_time_type::clock::now() - std::chrono::hours(1));
  send();
  write(there("state.json"), "of a job");
  EXPECT_THAT(send().newer, ElementsAre("state.json"));
  fs::remove(here("state.json"));
  EXPECT_THAT(send_and_delete().removed, IsEmpty());
  EXPECT_EQ(read_file(there("state.json")), "of a job");
}

TEST_F(SyncDelete, ALinkToNowhereHereRemovesNothingAndSaysSo) {
  write(here("a"), "1");
  send();
  fs::remove(here("a"));
  fs::create_symlink("nowhere", here("link"));
  const SyncReport report = send_and_delete();
  EXPECT_THAT(report.removed, IsEmpty());
  EXPECT_THAT(report.warnings, Contains(HasSubstr("nothing was removed")));
  EXPECT_TRUE(fs::exists(there("a")));
  fs::remove(here("link"));
  EXPECT_THAT(send_and_delete().removed, ElementsAre("a"));
}

// The whole command, on two servers that send the project to each other.
TEST(SyncDeleteCommand, SaysWhatWasSentAndRemovedAndLeftAlone) {
  test::TestSandbox sandbox(2);
  sandbox.write_config();
  const auto rsync = [&sandbox](std::vector<std::string> words) {
    SubprocessSpec spec;
    spec.argv = {test::remote_binary, "--project", sandbox.project().string(), "rsync"};
    spec.argv.insert(spec.argv.end(), words.begin(), words.end());
    spec.set_env = {{"HOME", sandbox.home(0).string()}};
    const ExecResult result = run_subprocess(spec);
    EXPECT_TRUE(result.status.success()) << result.err;
    return result.err;
  };
  write(sandbox.project() / "old/a.py", "1");
  write(sandbox.project() / "b.py", "1");
  fs::last_write_time(sandbox.project() / "b.py", fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_THAT(rsync({"--fan-out", "peers"}),
              AllOf(HasSubstr("rsync 2 files from node-"), HasSubstr("2 servers synced\n")));
  fs::remove_all(sandbox.project() / "old");
  write(sandbox.project() / "c.py", "1");
  write(sandbox.home(1) / "my_project/old/out.log", "of a job");
  EXPECT_THAT(rsync({"--delete", "--dry-run"}), AllOf(HasSubstr("rsync 1 file, 1 removed (dry run)"),
                                                      HasSubstr("node-2: would remove:\n    old/a.py\n"),
                                                      HasSubstr("2 servers compared, nothing was sent\n")));
  EXPECT_TRUE(fs::exists(sandbox.home(1) / "my_project/old/a.py"));
  EXPECT_THAT(rsync({"--delete"}),
              AllOf(HasSubstr("node-2: ok rsync 1 file, 1 removed"),
                    HasSubstr("node-1: removed:\n    old/a.py\n"), Not(HasSubstr("cannot delete"))));
  EXPECT_FALSE(fs::exists(sandbox.home(0) / "my_project/old"));
  EXPECT_FALSE(fs::exists(sandbox.home(1) / "my_project/old/a.py"));
  EXPECT_TRUE(fs::exists(sandbox.home(1) / "my_project/old/out.log"));

  write(sandbox.home(1) / "my_project/b.py", "2");
  EXPECT_THAT(
      rsync({"--delete"}),
      AllOf(HasSubstr(
                "node-2: not changed, newer on the server:\n    b.py\n hint: send them too with --overwrite"),
            HasSubstr("2 servers synced except for files that are newer there\n")));
  EXPECT_THAT(rsync({"--overwrite"}), AllOf(HasSubstr("2 servers synced\n"), Not(HasSubstr("except for"))));
  EXPECT_EQ(read_file(sandbox.home(1) / "my_project/b.py"), "1");
}

}  // namespace
}  // namespace remote::servers
