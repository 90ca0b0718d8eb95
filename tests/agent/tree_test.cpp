// The trees of frozen launches: creating, sharing, landing and removing them.

#include <gmock/gmock.h>
#include <sodium.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "agent/host/descriptor.hpp"
#include "agent/job/answers.hpp"
#include "agent/job/report.hpp"
#include "agent/jobs_place.hpp"
#include "agent/tree/files.hpp"
#include "agent/tree/make_tree.hpp"
#include "agent/tree/trees.hpp"

namespace remote::agent {
namespace {

using test::eventually;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using wire::TreeOutcome;

std::string sha256_of(const std::string& text) {
  unsigned char hash[crypto_hash_sha256_BYTES];
  ::crypto_hash_sha256(hash, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  char digits[2 * sizeof hash + 1];
  for (std::size_t i = 0; i < sizeof hash; ++i) {
    std::snprintf(digits + 2 * i, 3, "%02x", hash[i]);
  }
  return digits;
}

class JobTree : public ::testing::Test, protected test::JobsPlace {
 protected:
  ~JobTree() override {
    for (const std::string& id : started_) {
      const auto found = record(id);
      if (found && found->main) {
        ::kill(found->main->pid, SIGKILL);
      }
      EXPECT_TRUE(eventually([&] { return find_processes(id).empty(); }));
    }
  }

  fs::path project() const { return place.project.string(); }
  void put(const std::string& name, const std::string& text) {
    fs::create_directories((project() / name).parent_path());
    fs::remove(project() / name);  // like rsync, which replaces files
    test::HostFolder::put(project() / name, text);
  }
  static std::string text_of(const fs::path& path) { return read_file(path.string()).value_or(""); }
  // The list of these files in their current state.
  std::string list(const std::vector<std::string>& names) const {
    std::string text;
    for (const std::string& name : names) {
      struct stat info {};
      EXPECT_EQ(::stat((project() / name).c_str(), &info), 0);
      text += std::to_string(info.st_size) + " " +
              std::to_string(info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec) + " " + name + '\0';
    }
    return text;
  }
  wire::MakeTreeReply make(const std::string& digest, const std::string& text) {
    return make_tree(host(), {.place = {place.project, ".jobs"}, .digest = digest}, text);
  }
  TreeOutcome outcome(const std::string& digest, const std::string& text) {
    const wire::MakeTreeReply reply = make(digest, text);
    EXPECT_EQ(reply.outcome == TreeOutcome::failed, !reply.reason.empty());
    return reply.outcome;
  }
  std::string start_in(const std::string& digest, const std::string& command) {
    std::string id = new_id();
    test::HostFolder::put(job(id) / "tree", digest + "\n");
    EXPECT_TRUE(use_tree(host(), place, id));
    start("cd '" + tree(digest).string() + "'\n" + command, id);
    started_.push_back(id);
    return id;
  }
  fs::path tree(const std::string& digest) const { return jobs() / ".trees" / digest; }
  wire::JobReport status(const std::string& id) {
    Backends backends(host(), place);
    Reporter reporter(backends);
    std::vector<wire::JobReport> reports{reporter.report(id, {})};
    reporter.finish(reports);
    return reports.at(0);
  }
  void wait_end(const std::string& id) {
    EXPECT_TRUE(eventually([&] { return !test::read_end(job(id)).empty(); })) << file(id, "job.err");
  }
  void until_out(const std::string& id, const std::string& text) {
    EXPECT_TRUE(eventually([&] { return file(id, "job.out").find(text) != std::string::npos; }));
  }
  void remove(const std::string& id) {
    EXPECT_EQ(clean(host(), {.place = {place.project, ".jobs"}, .ids = {id}}).jobs.at(0).outcome,
              wire::CleanOutcome::removed);
  }

 private:
  std::vector<std::string> started_;
};

TEST_F(JobTree, AJobRunsInItAndItsFilesLandInTheProject) {
  put("main.py", "one\n");
  put("pkg/conf.yaml", "conf\n");
  put("data/big", "mine\n");
  const std::string text = list({"main.py", "pkg/conf.yaml"});
  const std::string digest = sha256_of(text);
  ASSERT_EQ(make(digest, text).outcome, TreeOutcome::ready);
  put("main.py", "two, by a sync\n");
  const std::string id =
      start_in(digest,
               "cat main.py pkg/conf.yaml data/big; echo out >out.txt; mkdir new; echo a >new/a; "
               "echo b >data/b; echo more >>pkg/conf.yaml; mkdir pkg/__pycache__; "
               "ln -s new latest; until [ -e go ]; do sleep 0.05; done");
  const std::string other = start_in(digest, "cat main.py; : >other.txt");
  wait_end(other);
  until_out(id, "mine");
  EXPECT_EQ(file(other, "job.out"), "one\n");
  EXPECT_FALSE(fs::exists(project() / "other.txt")) << "a rank still runs in the tree";
  test::HostFolder::put(tree(digest) / "go", "");
  wait_end(id);
  EXPECT_EQ(file(id, "job.out"), "one\nconf\nmine\n");
  EXPECT_EQ(text_of(project() / "out.txt"), "out\n");
  EXPECT_EQ(text_of(project() / "latest/a"), "a\n");
  EXPECT_EQ(text_of(project() / "data/b"), "b\n");
  EXPECT_TRUE(fs::exists(project() / "other.txt"));
  EXPECT_FALSE(fs::exists(project() / "pkg/__pycache__"));
  EXPECT_EQ(text_of(project() / "pkg/conf.yaml"), "conf\nmore\n");
  EXPECT_EQ(text_of(project() / "main.py"), "two, by a sync\n");
  EXPECT_TRUE(fs::is_symlink(tree(digest) / "new"));
  remove(other);
  EXPECT_TRUE(fs::exists(tree(digest)));
  remove(id);
  EXPECT_FALSE(fs::exists(tree(digest)));
  EXPECT_EQ(text_of(project() / "new/a"), "a\n");
  EXPECT_EQ(outcome(digest, ""), TreeOutcome::unknown);
}

TEST_F(JobTree, NothingIsReplacedThatWasSentMeanwhile) {
  put("conf.yaml", "conf\n");
  const std::string text = list({"conf.yaml"});
  const std::string digest = sha256_of(text);
  ASSERT_EQ(make(digest, text).outcome, TreeOutcome::ready);
  put("conf.yaml", "another, sent later\n");
  EXPECT_EQ(outcome(digest, ""), TreeOutcome::ready) << "the tree is complete, whatever the project is now";
  EXPECT_EQ(outcome(digest, "\n"), TreeOutcome::ready);
  wait_end(start_in(digest, "echo more >>conf.yaml"));
  EXPECT_EQ(text_of(project() / "conf.yaml"), "another, sent later\n");
  EXPECT_EQ(text_of(project() / ("conf.yaml.frozen-" + digest.substr(0, 8))), "conf\nmore\n");
  const wire::MakeTreeReply reply = make(digest, "");
  EXPECT_EQ(reply.outcome, TreeOutcome::differs);
  EXPECT_THAT(reply.differing, ElementsAre("conf.yaml"));
  EXPECT_EQ(reply.more, 0);
}

TEST_F(JobTree, FilesOfALostServerLandLater) {
  put("a.py", "x");
  put("conf.yaml", "x");
  const std::string text = list({"a.py", "conf.yaml"});
  const std::string digest = sha256_of(text);
  ASSERT_EQ(make(digest, text).outcome, TreeOutcome::ready);
  const std::string id =
      start_in(digest, "mkdir ck; echo 1 >ck/one; echo more >>conf.yaml; echo made; exec sleep 60");
  until_out(id, "made");
  ASSERT_EQ(make(digest, text).outcome, TreeOutcome::ready);
  EXPECT_FALSE(fs::exists(project() / "ck")) << "a job runs in the tree";
  EXPECT_EQ(text_of(tree(digest) / "conf.yaml"), "xmore\n");
  crash(id);
  ASSERT_EQ(make(digest, text).outcome, TreeOutcome::differs);
  EXPECT_EQ(text_of(project() / "ck/one"), "1\n");
  EXPECT_EQ(text_of(project() / "conf.yaml"), "xmore\n");
}

TEST_F(JobTree, FilesOfAJobWithoutASupervisorLandWhenItsEndIsSeen) {
  put("a.py", "x");
  const std::string text = list({"a.py"});
  const std::string digest = sha256_of(text);
  for (const bool stopped : {false, true}) {
    ASSERT_EQ(make(digest, text).outcome, TreeOutcome::ready);
    const std::string name = stopped ? "two" : "one";
    const std::string id = start_in(digest, "echo 1 >" + name + "; echo made; exec sleep 60");
    until_out(id, "made");
    ::kill(record(id).value().supervisor.value().id.pid, SIGKILL);
    EXPECT_EQ(status(id).phase, wire::JobPhase::running);
    EXPECT_FALSE(fs::exists(project() / name));
    if (stopped) {
      stop(id);
      EXPECT_EQ(status(id).phase, wire::JobPhase::ended);
    } else {
      crash(id);
      EXPECT_EQ(status(id).phase, wire::JobPhase::gone);
    }
    EXPECT_TRUE(eventually([&] { return fs::exists(project() / name); }));
  }
}

TEST_F(JobTree, WhateverAProgramDoesNothingIsLost) {
  put("main.py", "x");
  put("out/.gitkeep", "");
  put("data/README", "ours");
  put("checkpoints/run5/model.pt", "five");
  const fs::path set = project().parent_path() / "a set of images";
  test::HostFolder::put(set / "img1", "image");
  const std::string text = list({"data/README", "main.py", "out/.gitkeep"});
  const std::string digest = sha256_of(text);
  ASSERT_EQ(make(digest, text).outcome, TreeOutcome::ready);
  const std::string id =
      start_in(digest,
               "ln -s ../../../checkpoints/run5 latest; mv checkpoints ck; rm -r out data; echo file >out; "
               "ln -s '" +
                   set.string() +
                   "' data; echo theirs >metrics.csv; ln -s nobody:1 run.lock; "
                   "until [ -e go ]; do sleep 0.05; done");
  ASSERT_TRUE(eventually([&] { return fs::is_symlink(tree(digest) / "run.lock"); }));
  put("metrics.csv", "came meanwhile");
  ASSERT_EQ(outcome(digest, text), TreeOutcome::failed) << "it has put something else in place of folders";
  EXPECT_TRUE(fs::is_symlink(tree(digest) / "run.lock")) << "a job runs there";
  test::HostFolder::put(tree(digest) / "go", "");
  wait_end(id);
  const std::string aside = ".frozen-" + digest.substr(0, 8);
  EXPECT_EQ(text_of(project() / "ck/run5/model.pt"), "five") << "a link of ours that it renamed";
  EXPECT_TRUE(fs::is_symlink(project() / "latest"));
  EXPECT_EQ(text_of(set / "img1"), "image");
  EXPECT_FALSE(fs::is_symlink(set / "img1"));
  EXPECT_EQ(fs::read_symlink(project() / ("data" + aside)), set);
  EXPECT_EQ(text_of(project() / "data/README"), "ours");
  EXPECT_EQ(text_of(project() / ("out" + aside)), "file\n");
  EXPECT_EQ(text_of(project() / "metrics.csv"), "came meanwhile");
  EXPECT_EQ(text_of(project() / ("metrics.csv" + aside)), "theirs\n");
  EXPECT_EQ(make(digest, text).outcome, TreeOutcome::ready);
  EXPECT_EQ(text_of(tree(digest) / "data/README"), "ours");
}

TEST_F(JobTree, ALinkToAnExistingFileIsNoNewNameOfIt) {
  put("main.py", "x");
  put("checkpoints/run5/model.pt", "five");
  const std::string text = list({"main.py"});
  const std::string digest = sha256_of(text);
  ASSERT_EQ(make(digest, text).outcome, TreeOutcome::ready);
  wait_end(start_in(digest,
                    "ln -s ../../../checkpoints/run5 latest; cp -a checkpoints current; "
                    "ln -s '" +
                        (tree(digest) / "main.py").string() + "' absolute"));
  EXPECT_EQ(text_of(project() / "checkpoints/run5/model.pt"), "five");
  EXPECT_FALSE(fs::is_symlink(project() / "checkpoints"));
  EXPECT_EQ(text_of(project() / "latest/model.pt"), "five");
  EXPECT_EQ(text_of(project() / "current/run5/model.pt"), "five");
  EXPECT_EQ(fs::read_symlink(project() / "absolute"), "main.py");
}

TEST_F(JobTree, WrongListsAndFilesAreRefusedAndLeaveNothing) {
  put("a\tb.py", "x");
  put("gone.py", "x");
  put("pipe.py", "");
  const std::string text = list({"a\tb.py", "gone.py", "pipe.py"});
  put("a\tb.py", "longer");
  fs::remove(project() / "gone.py");
  fs::remove(project() / "pipe.py");
  ASSERT_EQ(::mkfifo((project() / "pipe.py").c_str(), 0600), 0);
  const wire::MakeTreeReply reply = make(sha256_of(text), text);
  EXPECT_EQ(reply.outcome, TreeOutcome::differs);
  EXPECT_THAT(reply.differing, ElementsAre("a\\x09b.py", "gone.py", "pipe.py"));
  EXPECT_FALSE(fs::exists(tree(sha256_of(text))));
  EXPECT_FALSE(fs::exists(jobs() / ".trees" / (".new." + sha256_of(text))));
  EXPECT_THAT(make(sha256_of("else"), text).reason, HasSubstr("damaged"));
  for (const char* name : {"../../evil", "/evil", "a/../../evil", ".."}) {
    const std::string out = std::string("1 1 ") + name + '\0';
    EXPECT_THAT(make(sha256_of(out), out).reason, HasSubstr("leads out"));
  }
  for (const char* line : {"1 1 ", "1 1", "", "x 1 a", "1 x a", "1"}) {
    const std::string out = std::string(line) + '\0';
    EXPECT_THAT(make(sha256_of(out), out).reason, HasSubstr("damaged")) << line;
  }
  EXPECT_EQ(outcome("../../../x", text), TreeOutcome::failed);
  // The remains of a tree that was being made when the server was lost.
  fs::create_directories(jobs() / ".trees/.new.rubbish/sub");
  const std::string good = list({"a\tb.py"});
  EXPECT_EQ(make(sha256_of(good), good).outcome, TreeOutcome::ready);
  EXPECT_FALSE(fs::exists(jobs() / ".trees/.new.rubbish"));
}

TEST_F(JobTree, NamesTheFirstFilesThatDifferAndCountsTheOthers) {
  std::string text;
  for (int i = 10; i < 35; ++i) {
    text += "1 -1 f" + std::to_string(i) + '\0';
  }
  const wire::MakeTreeReply reply = make(sha256_of(text), text);
  EXPECT_EQ(reply.differing.size(), 20U);
  EXPECT_EQ(reply.differing.back(), "f29");
  EXPECT_EQ(reply.more, 5);
  // Times before 1970 are rounded down, like a file's seconds.
  put("old", "x");
  const timespec times[] = {{-5, 500'000'000}, {-5, 500'000'000}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (project() / "old").c_str(), times, 0), 0);
  const std::string old = list({"old"});
  EXPECT_EQ(make(sha256_of(old), old).outcome, TreeOutcome::ready);
}

TEST_F(JobTree, LinksSourcesAndLargeFilesAndCopiesOthers) {
  put("pkg/a.py", "x");
  put("a.yaml", "x");
  put("py", "x");
  put("large", std::string(1 << 20, 'x'));
  fs::permissions(project() / "a.yaml", fs::perms::owner_all);
  ASSERT_EQ(::link((project() / "a.yaml").c_str(), (project() / "second").c_str()), 0);
  std::string text = list({"a.yaml", "large", "pkg/a.py", "py"});
  std::string digest = sha256_of(text);
  ASSERT_EQ(make(digest, text).outcome, TreeOutcome::ready);
  struct stat copy {};
  ASSERT_EQ(::stat((tree(digest) / "a.yaml").c_str(), &copy), 0);
  EXPECT_EQ(copy.st_mode & 07777U, 0700U);
  EXPECT_FALSE(fs::equivalent(tree(digest) / "a.yaml", project() / "a.yaml"));
  EXPECT_FALSE(fs::equivalent(tree(digest) / "py", project() / "py"));
  const fs::path probe = jobs() / ".trees/probe";
  if (copy_file((project() / "py").string(), probe.string(), true) == CopyOutcome::not_supported) {
    EXPECT_TRUE(fs::equivalent(tree(digest) / "large", project() / "large"));
    EXPECT_TRUE(fs::equivalent(tree(digest) / "pkg/a.py", project() / "pkg/a.py"));
    wait_end(start_in(digest, "echo more >>pkg/a.py"));
    EXPECT_EQ(std::distance(fs::directory_iterator(project() / "pkg"), {}), 1) << "it is changed already";
    ASSERT_EQ(make(digest, text).outcome, TreeOutcome::differs);
    put("pkg/a.py", "x");
    text = list({"a.yaml", "large", "pkg/a.py", "py"});
    digest = sha256_of(text);
    ASSERT_EQ(make(digest, text).outcome, TreeOutcome::ready);
  }
  // A folder that was created later gets its link the next time.
  EXPECT_EQ(fs::read_symlink(tree(digest) / "second"), "../../../second");
  put("data/x", "x");
  put("pkg/y", "x");
  fs::remove(project() / "second");
  ASSERT_EQ(make(digest, text).outcome, TreeOutcome::ready);
  EXPECT_EQ(fs::read_symlink(tree(digest) / "data"), "../../../data");
  EXPECT_EQ(fs::read_symlink(tree(digest) / "pkg/y"), "../../../../pkg/y");
  EXPECT_FALSE(fs::is_symlink(tree(digest) / "second"));
  EXPECT_FALSE(fs::exists(tree(digest) / ".jobs"));
}

TEST_F(JobTree, ATreeOfALaunchThatIsStartingIsKept) {
  put("a.py", "x");
  const std::string text = list({"a.py"});
  const std::string digest = sha256_of(text);
  ASSERT_EQ(make(digest, text).outcome, TreeOutcome::ready);
  test::HostFolder::put(tree(digest) / "new", "x");
  drop_trees(host(), place);
  EXPECT_TRUE(fs::exists(tree(digest) / "new"));
  EXPECT_FALSE(fs::exists(project() / "new"));
  fs::last_write_time(tree(digest).string() + ".starting",
                      fs::file_time_type::clock::now() - std::chrono::minutes(11));
  drop_trees(host(), place);
  EXPECT_EQ(text_of(project() / "new"), "x");
  EXPECT_FALSE(fs::exists(tree(digest)));
  for (const char* suffix : {".list", ".open", ".starting", ".jobs"}) {
    EXPECT_FALSE(fs::exists(tree(digest).string() + suffix));
  }
}

TEST_F(JobTree, AJobOnAnotherMachineUsesIt) {
  put("a.py", "x");
  const std::string text = list({"a.py"});
  const std::string digest = sha256_of(text);
  ASSERT_EQ(make(digest, text).outcome, TreeOutcome::ready);
  fs::remove(tree(digest).string() + ".starting");
  const std::string id = new_id();
  test::HostFolder::put(job(id) / "supervisor", "10 20 another-boot 30\n");
  test::HostFolder::put(tree(digest).string() + ".jobs/" + id, "another machine\n");
  test::HostFolder::put(tree(digest) / "new", "x");
  drop_trees(host(), place);
  EXPECT_FALSE(fs::exists(project() / "new"));
  // This machine, before its last boot
  test::HostFolder::put(tree(digest).string() + ".jobs/" + id,
                        read_first_line("/proc/sys/kernel/hostname") + "\n");
  drop_trees(host(), place);
  EXPECT_TRUE(fs::exists(project() / "new"));
  EXPECT_TRUE(fs::exists(tree(digest))) << "the job's folder is there";
  fs::remove_all(job(id));
  drop_trees(host(), place);
  EXPECT_FALSE(fs::exists(tree(digest)));
}

TEST_F(JobTree, AFolderThatCannotBeMovedIsKept) {
  put("pkg/a.py", "x");
  const std::string text = list({"pkg/a.py"});
  const std::string digest = sha256_of(text);
  ASSERT_EQ(make(digest, text).outcome, TreeOutcome::ready);
  wait_end(start_in(digest, ":"));
  // The list is lost, so it is unknown which files are new.
  test::HostFolder::put(tree(digest).string() + ".open", "");
  fs::remove(tree(digest).string() + ".list");
  test::HostFolder::put(tree(digest) / "new", "x");
  for (const auto& user : fs::directory_iterator(tree(digest).string() + ".jobs")) {
    fs::remove_all(job(user.path().stem()));
  }
  drop_trees(host(), place);
  EXPECT_TRUE(fs::exists(tree(digest) / "new"));
  EXPECT_THAT(make(digest, text).reason, HasSubstr("the list of its files is lost"));
}

TEST_F(JobTree, AFileInPlaceOfAFolderIsNotReplaced) {
  put("pkg/a.py", "x");
  const std::string text = list({"pkg/a.py"});
  const std::string digest = sha256_of(text);
  ASSERT_EQ(make(digest, text).outcome, TreeOutcome::ready);
  const std::string id = start_in(digest, "echo new >pkg/new; until [ -e go ]; do sleep 0.05; done");
  ASSERT_TRUE(eventually([&] { return fs::exists(tree(digest) / "pkg/new"); }));
  fs::remove_all(project() / "pkg");
  put("pkg", "now a file");
  test::HostFolder::put(tree(digest) / "go", "");
  wait_end(id);
  EXPECT_EQ(text_of(project() / "pkg"), "now a file");
  EXPECT_EQ(text_of(project() / ("pkg_new.frozen-" + digest.substr(0, 8))), "new\n");
}

TEST_F(JobTree, FoldersOfOtherUsersAreRefused) {
  put("a.py", "x");
  const std::string text = list({"a.py"});
  const std::string digest = sha256_of(text);
  const fs::path elsewhere = project().parent_path() / "elsewhere";
  fs::create_directories(elsewhere);
  fs::create_directory_symlink(elsewhere, jobs() / ".trees");
  EXPECT_THAT(make(digest, text).reason, HasSubstr("is a symbolic link"));
  fs::remove(jobs() / ".trees");
  fs::create_directories(jobs() / ".trees");
  fs::permissions(jobs() / ".trees", fs::perms::all);
  ASSERT_EQ(make(digest, text).outcome, TreeOutcome::ready);
  EXPECT_EQ(fs::status(jobs() / ".trees").permissions() & fs::perms::others_write, fs::perms::none);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown((jobs() / ".trees").c_str(), 65534, 65534), 0);
    EXPECT_THAT(make(digest, text).reason, HasSubstr("belongs to another user"));
  }
  fs::remove_all(project());
  EXPECT_EQ(outcome(digest, text), TreeOutcome::unknown);
}

TEST_F(JobTree, OnlyOneProcessUsesTheFolder) {
  put("a.py", "x");
  const std::string text = list({"a.py"});
  const std::string digest = sha256_of(text);
  ASSERT_EQ(make(digest, text).outcome, TreeOutcome::ready);
  const Descriptor lock(::open((jobs() / ".trees/lock").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX), 0);
  host().cancelled = std::make_shared<std::atomic<bool>>(true);
  EXPECT_EQ(outcome(digest, text), TreeOutcome::failed) << "the client is gone";
  test::HostFolder::put(tree(digest) / "new", "x");
  fs::remove(tree(digest).string() + ".starting");
  drop_trees(host(), place);
  EXPECT_TRUE(fs::exists(tree(digest) / "new"));
}

TEST(TreePaths, AreNormalizedAndRelative) {
  EXPECT_EQ(normalize("/a/./b//../c/"), "/a/c");
  EXPECT_EQ(normalize("/../../a"), "/a");
  EXPECT_EQ(normalize("/a/.."), "/");
  EXPECT_EQ(make_relative("/a/b", "/a/c/d"), "../../b");
  EXPECT_EQ(make_relative("/a/b/c", "/a/b"), "c");
  EXPECT_EQ(make_relative("/a/b", "/a/b"), ".");
  EXPECT_EQ(make_relative("/a", "/a/b"), "..");
}

}  // namespace
}  // namespace remote::agent
