// The trees of frozen launches: made, shared, carried home and removed, on every shell.
#include <sys/stat.h>

#include "base/hashing.hpp"
#include "jobs/trees.hpp"
#include "support/script_test.hpp"

namespace remote::jobs {
namespace {

class JobTree : public test::ScriptTest {
 protected:
  void put(const std::string& name, const std::string& text) {
    fs::create_directories((place() / name).parent_path());
    write_file_atomic(place() / name, text);
  }
  // What ProjectState::text() would be of these files, as they are now.
  std::string list(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) {
      struct stat info {};
      EXPECT_EQ(::stat((place() / name).c_str(), &info), 0);
      text += std::to_string(info.st_size) + " " +
              std::to_string(info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec) + " " + name + '\0';
    }
    return text;
  }
  TreeAnswer make(const std::string& digest, const std::string& text) {
    const auto action = tree_action(jobs_folder, digest, text, "");
    return read_answer<TreeAnswer>(exec(action.script.data_input(action.input)));
  }
  JobId start_in(const std::string& digest, const std::string& command) {
    const JobId id = JobId::random();
    servers::ProcessSpec process{command, "", {}};
    process.tree = digest;
    const auto replies = start_all({{.id = id, .process = process, .files = {{"tree", digest + "\n"}}}});
    EXPECT_EQ(replies.at(0).outcome, StartReply::Outcome::started) << replies.at(0).reason;
    return id;
  }
  fs::path tree(const std::string& digest) { return place() / ".jobs" / ".trees" / digest; }
};

TEST_P(JobTree, AJobRunsInItAndWhatItWritesComesHome) {
  put("main.py", "one\n");
  put("pkg/conf.yaml", "conf\n");
  put("data/big", "mine\n");
  const std::string text = list({"main.py", "pkg/conf.yaml"});
  const std::string digest = sha256_hex(text);
  ASSERT_TRUE(make(digest, text).ready);
  put("main.py", "two, by a sync\n");
  const JobId id =
      start_in(digest,
               "cat main.py pkg/conf.yaml data/big; echo out >out.txt; mkdir new; echo a >new/a; "
               "echo b >data/b; echo more >>pkg/conf.yaml; mkdir pkg/__pycache__; "
               "ln -s new latest; until [ -e go ]; do sleep 0.2; done");
  const JobId other = start_in(digest, "cat main.py; : >other.txt");
  wait_end(other);
  until_out(id, "mine");
  EXPECT_EQ(file(other, "job.out"), "one\n");
  EXPECT_FALSE(fs::exists(place() / "other.txt")) << "a rank still runs in the tree";
  write_file_atomic(tree(digest) / "go", "");
  EXPECT_EQ(wait_end(id).phase, Phase::ended);
  EXPECT_EQ(file(id, "job.out"), "one\nconf\nmine\n");
  EXPECT_EQ(read_file(place() / "out.txt"), "out\n");
  EXPECT_EQ(read_file(place() / "latest/a"), "a\n");
  EXPECT_EQ(read_file(place() / "data/b"), "b\n");
  EXPECT_TRUE(fs::exists(place() / "other.txt"));
  EXPECT_FALSE(fs::exists(place() / "pkg/__pycache__"));
  EXPECT_EQ(read_file(place() / "pkg/conf.yaml"), "conf\nmore\n");
  EXPECT_EQ(read_file(place() / "main.py"), "two, by a sync\n");
  EXPECT_TRUE(fs::is_symlink(tree(digest) / "new"));
  run(clean_action(jobs_folder, {other}));
  EXPECT_TRUE(fs::exists(tree(digest)));
  run(clean_action(jobs_folder, {id}));
  EXPECT_FALSE(fs::exists(tree(digest)));
  EXPECT_EQ(read_file(place() / "new/a"), "a\n");
  EXPECT_TRUE(make(digest, "").unknown);
}

TEST_P(JobTree, NothingIsReplacedThatWasSentMeanwhile) {
  put("conf.yaml", "conf\n");
  const std::string text = list({"conf.yaml"});
  const std::string digest = sha256_hex(text);
  ASSERT_TRUE(make(digest, text).ready);
  put("conf.yaml", "another, sent later\n");
  EXPECT_TRUE(make(digest, "").ready) << "the tree is whole, whatever the project is now";
  wait_end(start_in(digest, "echo more >>conf.yaml"));
  EXPECT_EQ(read_file(place() / "conf.yaml"), "another, sent later\n");
  EXPECT_EQ(read_file(place() / ("conf.yaml.frozen-" + digest.substr(0, 8))), "conf\nmore\n");
  const TreeAnswer answer = make(digest, "");
  EXPECT_EQ(answer.differing, std::vector<std::string>{"conf.yaml"});
}

TEST_P(JobTree, WhatALostServerHasLeftComesHomeLater) {
  put("a.py", "x");
  const std::string text = list({"a.py"});
  const std::string digest = sha256_hex(text);
  ASSERT_TRUE(make(digest, text).ready);
  const JobId id = start_in(digest, "mkdir ck; echo 1 >ck/one; echo made; exec sleep 60");
  until_out(id, "made");
  ASSERT_TRUE(make(digest, text).ready);
  EXPECT_FALSE(fs::exists(place() / "ck")) << "a job runs in the tree";
  const pid_t job = std::stoi(file(id, "pid"));
  ::kill(supervisor_of(id), SIGKILL);
  ::kill(job, SIGKILL);
  expect_nothing_left();
  ASSERT_TRUE(make(digest, text).ready);
  EXPECT_EQ(read_file(place() / "ck/one"), "1\n");
}

TEST_P(JobTree, WhateverAProgramDoesNothingIsLost) {
  put("main.py", "x");
  put("out/.gitkeep", "");
  put("data/README", "ours");
  put("checkpoints/run5/model.pt", "five");
  const fs::path set = place().parent_path() / "a set of images";
  fs::create_directories(set);
  write_file_atomic(set / "img1", "image");
  const std::string text = list({"data/README", "main.py", "out/.gitkeep"});
  const std::string digest = sha256_hex(text);
  ASSERT_TRUE(make(digest, text).ready);
  const JobId id =
      start_in(digest,
               "ln -s ../../../checkpoints/run5 latest; mv checkpoints ck; rm -r out data; echo file >out; "
               "ln -s '" +
                   set.string() +
                   "' data; echo theirs >metrics.csv; ln -s nobody:1 run.lock; "
                   "until [ -e go ]; do sleep 0.2; done");
  until([&] { return fs::is_symlink(tree(digest) / "run.lock"); }, "what the job does");
  put("metrics.csv", "came meanwhile");
  ASSERT_NE(make(digest, text).failure, "") << "it has put something else in place of folders";
  EXPECT_TRUE(fs::is_symlink(tree(digest) / "run.lock")) << "a job runs there";
  write_file_atomic(tree(digest) / "go", "");
  wait_end(id);
  const std::string aside = ".frozen-" + digest.substr(0, 8);
  EXPECT_EQ(read_file(place() / "ck/run5/model.pt"), "five") << "a link of ours that it renamed";
  EXPECT_TRUE(fs::is_symlink(place() / "latest"));
  EXPECT_EQ(read_file(set / "img1"), "image");
  EXPECT_FALSE(fs::is_symlink(set / "img1"));
  EXPECT_EQ(fs::read_symlink(place() / ("data" + aside)), set);
  EXPECT_EQ(read_file(place() / "data/README"), "ours");
  EXPECT_EQ(read_file(place() / ("out" + aside)), "file\n");
  EXPECT_EQ(read_file(place() / "metrics.csv"), "came meanwhile");
  EXPECT_EQ(read_file(place() / ("metrics.csv" + aside)), "theirs\n");
  EXPECT_TRUE(make(digest, text).ready);
  EXPECT_EQ(read_file(tree(digest) / "data/README"), "ours");
}

TEST_P(JobTree, ALinkToWhatWasThereBeforeIsNoNewNameOfIt) {
  put("main.py", "x");
  put("checkpoints/run5/model.pt", "five");
  const std::string text = list({"main.py"});
  const std::string digest = sha256_hex(text);
  ASSERT_TRUE(make(digest, text).ready);
  wait_end(start_in(digest, "ln -s ../../../checkpoints/run5 latest; cp -a checkpoints current"));
  EXPECT_EQ(read_file(place() / "checkpoints/run5/model.pt"), "five");
  EXPECT_FALSE(fs::is_symlink(place() / "checkpoints"));
  EXPECT_EQ(read_file(place() / "latest/model.pt"), "five");
  EXPECT_EQ(read_file(place() / "current/run5/model.pt"), "five");
}

TEST_P(JobTree, WhatIsWrongIsRefusedAndLeavesNothing) {
  put("a\tb.py", "x");
  put("gone.py", "x");
  const std::string text = list({"a\tb.py", "gone.py"});
  put("a\tb.py", "longer");
  fs::remove(place() / "gone.py");
  TreeAnswer answer = make(sha256_hex(text), text);
  EXPECT_EQ(answer.differing.size(), 2U);
  EXPECT_EQ(answer.differing.front().find('\t'), std::string::npos);
  EXPECT_NE(make(sha256_hex("else"), text).failure.find("damaged"), std::string::npos);
  const std::string out = std::string("1 1 ../../evil") + '\0';
  EXPECT_NE(make(sha256_hex(out), out).failure.find("leads out"), std::string::npos);
  // rubbish of one that was being made when the server was lost
  fs::create_directories(place() / ".jobs/.trees/.new.rubbish/sub");
  const std::string good = list({"a\tb.py"});
  EXPECT_TRUE(make(sha256_hex(good), good).ready);
  EXPECT_FALSE(fs::exists(place() / ".jobs/.trees/.new.rubbish"));
}

INSTANTIATE_TEST_SUITE_P(Shells, JobTree, test::every_shell, test::shell_name);

}  // namespace
}  // namespace remote::jobs
