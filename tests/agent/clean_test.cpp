#include <gmock/gmock.h>
#include <sys/stat.h>

#include "agent/job/answers.hpp"
#include "agent/local_jobs.hpp"
#include "agent/tree/trees.hpp"

namespace remote::agent {
namespace {

using ::testing::HasSubstr;
using wire::CleanOutcome;

class Clean : public testing::Test, protected test::LocalJobs {
 protected:
  std::vector<wire::CleanedJob> clean_all(const std::vector<std::string>& ids) {
    return clean(host(), {.place = place(), .ids = ids}).jobs;
  }
  wire::CleanedJob clean_one(const std::string& id) { return clean_all({id}).at(0); }
  std::string make_ended(std::map<std::string, std::string> files = {}) {
    files.insert({{"spec.json", ""},
                  {"supervisor", dead_supervisor()},
                  {"pid", "999999998 1\n"},
                  {"journal.jsonl", test::format_end("exit 0 1700000000123 supervisor\n")}});
    return make(files);
  }
};

TEST_F(Clean, RemovesWhatHasEndedAndNothingElse) {
  const test::Started process = stranger();
  const std::string ended = make_ended();
  const std::string running =
      make({{"spec.json", ""}, {"supervisor", supervisor_words(process)}, {"pid", words(process) + "\n"}});
  const std::string absent = new_id();
  test::HostFolder::put(fs::path(jobs().jobs) / "mine.txt", "mine");
  put_second(ended + ".journal.jsonl", test::format_end("exit 0 1700000000123 supervisor\n"));
  const auto results = clean_all({ended, running, absent});
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0].id, ended);
  EXPECT_EQ(results[0].outcome, CleanOutcome::removed) << results[0].reason;
  EXPECT_EQ(results[0].reason, "");
  EXPECT_EQ(results[1].outcome, CleanOutcome::running);
  EXPECT_EQ(results[1].reason, "it still runs (pid " + std::to_string(process.pid()) + ")");
  EXPECT_EQ(results[2].outcome, CleanOutcome::none);
  EXPECT_FALSE(fs::exists(folder(ended)));
  EXPECT_FALSE(fs::exists(second_place()));
  EXPECT_TRUE(fs::exists(folder(running) / "spec.json"));
  EXPECT_TRUE(fs::exists(fs::path(jobs().jobs) / "mine.txt"));
  EXPECT_EQ(clean_one(ended).outcome, CleanOutcome::none);
}

TEST_F(Clean, KeepsAJobThatWaitsForItsLease) {
  const test::Started process = stranger();
  const std::string id =
      make({{"spec.json", ""}, {"supervisor", supervisor_words(process)}, {"pid", words(process) + "\n"}});
  put(id, "queue", id + "\n/usr/bin/python3\n");
  EXPECT_EQ(clean_one(id).outcome, CleanOutcome::running);
  EXPECT_TRUE(fs::exists(folder(id) / "spec.json"));
}

TEST_F(Clean, RemovesTheDeadOfThisBootAndOfOthers) {
  const std::string gone = make({{"spec.json", ""}, {"supervisor", dead_supervisor()}});
  const std::string rebooted = make({{"spec.json", ""}, {"supervisor", "1 2 another-boot 3\n"}});
  for (const wire::CleanedJob& result : clean_all({gone, rebooted})) {
    EXPECT_EQ(result.outcome, CleanOutcome::removed) << result.reason;
  }
}

TEST_F(Clean, SeesWhatTheSupervisorDoesNot) {
  const std::string id = make_ended();
  {
    const test::Started child = carrier(id);
    EXPECT_EQ(clean_one(id).outcome, CleanOutcome::running);
    EXPECT_EQ(clean_one(id).reason,
              "one of its processes still runs (pid " + std::to_string(child.pid()) + ")");
    EXPECT_NE(test::read_end(folder(id)), "");
  }
  EXPECT_EQ(clean_one(id).outcome, CleanOutcome::removed);
}

// The last helper process of a supervisor may survive it briefly.
TEST_F(Clean, LooksOnceMoreForWhatIsEnding) {
  const std::string id = make_ended();
  const test::Started helper([&] {
    char variable[] = "REMOTE_JOB_ID=00000000000000000000000000000000";
    id.copy(variable + 14, 32);
    char name[] = "sleep";
    char time[] = "0.15";
    char* argv[] = {name, time, nullptr};
    char* environment[] = {variable, nullptr};
    ::execve("/bin/sleep", argv, environment);
  });
  EXPECT_EQ(clean_one(id).outcome, CleanOutcome::removed);
}

TEST_F(Clean, KeepsAFreshClaim) {
  const std::string id = new_id();
  ASSERT_TRUE(claim(host(), jobs(), id));
  EXPECT_EQ(clean_one(id).outcome, CleanOutcome::running);
  EXPECT_THAT(clean_one(id).reason, HasSubstr("abandoned less than a minute ago"));
  put(id, "journal.jsonl", test::format_end("never 0 1000\n"));
  EXPECT_EQ(clean_one(id).outcome, CleanOutcome::removed);
}

TEST_F(Clean, ClaimsWhatDidNotGetFar) {
  const std::string id = make({{"spec.json", ""}});
  EXPECT_EQ(clean_one(id).outcome, CleanOutcome::running);
  EXPECT_TRUE(record(id).never_started());
}

TEST_F(Clean, DoesNotFollowLinks) {
  const fs::path precious = path() / "precious";
  test::HostFolder::put(precious / "journal.jsonl", test::format_end("exit 0 1000\n"));
  const std::string id = new_id();
  fs::create_directory_symlink(precious, folder(id));
  EXPECT_EQ(clean_one(id).outcome, CleanOutcome::failed);
  EXPECT_THAT(clean_one(id).reason, HasSubstr("is not a folder"));
  EXPECT_TRUE(fs::exists(precious / "journal.jsonl"));
  const std::string ended = make_ended();
  fs::create_directory_symlink(precious, folder(ended) / "link");
  fs::create_symlink(precious / "journal.jsonl", folder(ended) / "file");
  ASSERT_EQ(::mkfifo((folder(ended) / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(clean_one(ended).outcome, CleanOutcome::removed);
  EXPECT_TRUE(fs::exists(precious / "journal.jsonl"));
}

TEST_F(Clean, RemovesDeepAndLargeFolders) {
  const std::string id = make_ended();
  fs::path deep = folder(id);
  for (int i = 0; i < 200; ++i) {
    deep /= "a folder";
  }
  fs::create_directories(deep);
  test::HostFolder::put(deep / "file", "");
  for (int i = 0; i < 500; ++i) {
    test::HostFolder::put(folder(id) / "many" / std::to_string(i), "");
  }
  fs::create_directories(folder(id) / "strange \n name/\x01");
  const wire::CleanedJob result = clean_one(id);
  EXPECT_EQ(result.outcome, CleanOutcome::removed) << result.reason;
  EXPECT_FALSE(fs::exists(folder(id)));
}

TEST_F(Clean, AFolderThatCannotBeRemovedKeepsItsResult) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root, to be another user";
  }
  const std::string id = make_ended();
  test::HostFolder::put(folder(id) / "closed/file", "");
  fs::permissions(folder(id) / "closed", fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(test::call_as_nobody(path(),
                                 [&] {
                                   const wire::CleanedJob result = clean_one(id);
                                   return result.outcome == CleanOutcome::failed &&
                                                  result.reason == "cannot remove " + folder(id).string() +
                                                                       "/closed/file: Permission denied"
                                              ? 7
                                              : 1;
                                 }),
            7);
  EXPECT_NE(test::read_end(folder(id)), "");
  EXPECT_FALSE(fs::exists(folder(id) / "spec.json"));
}

TEST_F(Clean, AJobThatRunsWithoutItsFolderIsSeen) {
  const std::string id = new_id();
  const test::Started process = carrier(id);
  EXPECT_EQ(clean_one(id).outcome, CleanOutcome::running);
  EXPECT_EQ(clean_one(id).reason, "it still runs (pid " + std::to_string(process.pid()) +
                                      "), but its folder is not there or cannot be seen");
}

TEST_F(Clean, AMissingProjectIsAnObstacle) {
  const std::string id = make_ended();
  fs::rename(fs::path(jobs().project), path() / "elsewhere");
  EXPECT_EQ(clean_one(id).outcome, CleanOutcome::failed);
  EXPECT_THAT(clean_one(id).reason, HasSubstr("the folder of the project"));
  EXPECT_FALSE(fs::exists(fs::path(jobs().project))) << "nothing is made in its place";
}

TEST_F(Clean, LeavesAloneWhatANewerVersionMade) {
  const std::string id = make_ended({{"backend", "queue\n"}});
  EXPECT_EQ(clean_one(id).outcome, CleanOutcome::running);
  EXPECT_EQ(clean_one(id).reason, "this version of remote does not know its backend queue");
  EXPECT_TRUE(fs::exists(folder(id)));
}

TEST_F(Clean, RemovesContainersThatARestartHasLeft) {
  const fs::path boxes = path() / "boxes";
  put_program("docker", "case $1 in\n  ps) cat '" + boxes.string() + "' ;;\n  rm) [ -e '" +
                            (path() / "stuck").string() + "' ] || : >'" + boxes.string() + "' ;;\nesac\n");
  const std::string id =
      make_ended({{"container", "engine docker\n"}, {"supervisor", "1 2 another-boot 3\n"}});
  test::HostFolder::put(boxes, "remote-" + id + " Exited (255) 2 hours ago\n");
  test::HostFolder::put(path() / "stuck", "");
  EXPECT_EQ(clean_one(id).outcome, CleanOutcome::failed);
  EXPECT_EQ(clean_one(id).reason,
            "its container remote-" + id + " cannot be removed: does the engine answer?");
  EXPECT_TRUE(fs::exists(folder(id)));
  fs::remove(path() / "stuck");
  EXPECT_EQ(clean_one(id).outcome, CleanOutcome::removed);
  EXPECT_EQ(read_file(boxes), "");
}

TEST_F(Clean, LeavesTheSharedFileOfTheLaunch) {
  const std::string launch = new_id();
  const fs::path shared = path() / (".remote-init-" + launch);
  test::HostFolder::put(shared / "launch", launch + "\n");
  EXPECT_EQ(clean_one(make_ended({{"init_file", "1\n" + shared.string() + "\n"}})).outcome,
            CleanOutcome::removed);
  EXPECT_FALSE(fs::exists(shared));
}

void make_tree_with_file(const fs::path& trees, const std::string& digest) {
  test::HostFolder::put(trees / digest / "new", "new");
  test::HostFolder::put(trees / (digest + ".list"), std::string("1 1 a\0", 6));
  test::HostFolder::put(trees / (digest + ".open"), "");
  fs::permissions(trees, fs::perms::owner_all);
}

TEST_F(Clean, DropsTheTreesThatNoJobNeeds) {
  const fs::path trees = fs::path(jobs().jobs) / ".trees";
  const fs::path home = trees.parent_path().parent_path() / "new";
  const std::string digest(64, 'a');
  const std::string id = make({{"tree", digest + "\n"}});
  EXPECT_FALSE(leave_tree(jobs(), id));
  test::HostFolder::put(trees / (digest + ".jobs") / id, "machine\n");
  EXPECT_TRUE(leave_tree(jobs(), id));
  EXPECT_TRUE(fs::exists(trees / (digest + ".jobs") / (id + ".done")));
  EXPECT_FALSE(leave_tree(jobs(), id));
  make_tree_with_file(trees, digest);
  land_trees(host(), jobs());  // in the background
  EXPECT_TRUE(test::eventually([&] { return fs::exists(home) && !fs::exists(trees / (digest + ".open")); }));
  EXPECT_TRUE(fs::exists(trees / digest)) << "the job's folder exists";
  // The job can write this file.
  test::HostFolder::put(path() / "x.jobs" / id, "");
  put(id, "tree", "../../../../x\n");
  EXPECT_FALSE(leave_tree(jobs(), id));
  EXPECT_TRUE(fs::exists(path() / "x.jobs" / id));
  // If other users can write to the folder, its files are not moved.
  const std::string other(64, 'b');
  fs::remove(home);
  make_tree_with_file(trees, other);
  fs::permissions(trees, fs::perms::others_write, fs::perm_options::add);
  clean_one(make_ended());
  EXPECT_TRUE(fs::exists(trees / other / "new") && !fs::exists(home));
  fs::permissions(trees, fs::perms::owner_all);
  clean_one(make_ended());
  EXPECT_TRUE(fs::exists(home));
  EXPECT_FALSE(fs::exists(trees / other));
}

}  // namespace
}  // namespace remote::agent
