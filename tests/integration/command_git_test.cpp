// The git state of the project as recorded by launches: submodules, and repositories that claim files outside
// the project.

#include <unistd.h>

#include "base/files.hpp"
#include "base/strings.hpp"
#include "base/subprocess.hpp"
#include "jobs/launch_store.hpp"
#include "project/git.hpp"
#include "project/past_code.hpp"
#include "support/command_world.hpp"

namespace remote::test {
namespace {

class CommandGit : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!find_program("git")) {
      GTEST_SKIP() << "there is no git";
    }
    write(world.project() / "train.py", "print(1)\n");
  }
  static void write(const fs::path& file, const std::string& content) {
    make_folders(file.parent_path());
    write_file_atomic(file, content);
  }
  std::string git(const fs::path& folder, std::vector<std::string> words) const {
    SubprocessSpec spec;
    spec.argv = {"git",
                 "-c",
                 "user.name=test",
                 "-c",
                 "user.email=test@example.org",
                 "-c",
                 "init.defaultBranch=main",
                 "-c",
                 "protocol.file.allow=always"};
    spec.argv.insert(spec.argv.end(), words.begin(), words.end());
    spec.directory = folder;
    spec.set_env = {{"HOME", world.home().string()}, {"GIT_CONFIG_NOSYSTEM", "1"}};
    const ExecResult result = run_subprocess(spec);
    EXPECT_TRUE(result.status.success()) << result.describe();
    return result.out;
  }
  void commit_all(const fs::path& folder) const {
    git(folder, {"add", "-A"});
    git(folder, {"commit", "-q", "-m", "all"});
  }
  // A repository elsewhere on this machine, with a private file.
  fs::path make_private() const {
    const fs::path folder = world.home() / "private";
    write(folder / "secret.txt", "hunter2\n");
    git(folder, {"init", "-q"});
    commit_all(folder);
    write(folder / "secret.txt", "hunter2 and more\n");
    return folder;
  }
  // Launches; returns the output and the whole record with its patch.
  std::string launch() {
    const CommandResult result = world.run({"launch", "--rsync", "--nproc-per-node", "1", "--cmd", "true"});
    EXPECT_EQ(result.code, 0) << result;
    return result.err;
  }
  std::string show() { return world.run({"show", "last"}).out; }
  bool is_anywhere(const std::string& text) {
    for (const fs::path& top : {world.project() / ".remote", world.there("a"), world.there("b")}) {
      for (const auto& entry : fs::recursive_directory_iterator(top)) {
        if (entry.is_regular_file() && read_file(entry.path()).find(text) != std::string::npos) {
          return true;
        }
      }
    }
    return false;
  }
  CommandWorld world;
};

TEST_F(CommandGit, ALaunchPrintsTheCommitThatItRuns) {
  git(world.project(), {"init", "-q"});
  write(world.project() / ".remote/exclude.txt", ".git\n");
  commit_all(world.project());
  const std::string commit = git(world.project(), {"rev-parse", "HEAD"}).substr(0, 7);
  EXPECT_THAT(launch(), HasSubstr("code: commit " + commit + ", same on 2 servers\n"));
  write(world.project() / "train.py", "print(2)\n");
  write(world.project() / "new.py", "print(3)\n");
  EXPECT_THAT(launch(), HasSubstr("code: commit " + commit +
                                  " with changes and 1 untracked file, same on 2 servers\n"));
  EXPECT_THAT(show(), HasSubstr("changed, 1 untracked file"));
}

// A copy of the project on a server has no .git.
TEST_F(CommandGit, EachRankHasTheCommit) {
  const auto ranks = [this](std::vector<std::string> options) {
    std::vector<std::string> words{"launch", "--rsync", "--nproc-per-node", "1", "--follow", "--server", "b"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--cmd", "echo \"<$REMOTE_COMMIT>\""});
    return world.run(words).out;
  };
  EXPECT_THAT(ranks({}), HasSubstr("<>")) << "there is no repository";
  git(world.project(), {"init", "-q"});
  write(world.project() / ".remote/exclude.txt", ".git\n");
  commit_all(world.project());
  const std::string commit(trim(git(world.project(), {"rev-parse", "HEAD"})));
  EXPECT_THAT(ranks({}), HasSubstr("<" + commit));
  EXPECT_THAT(ranks({"-e", "REMOTE_COMMIT=mine"}), HasSubstr("<mine>"));
}

// Also if that happens after its record was read.
TEST_F(CommandGit, APatchThatIsReplacedByALinkIsNotRead) {
  git(world.project(), {"init", "-q"});
  write(world.project() / ".remote/exclude.txt", ".git\n");
  commit_all(world.project());
  write(world.project() / "train.py", "print(2)\n");
  launch();
  const jobs::Store store = world.store();
  const std::optional<PastLaunch> record = jobs::LaunchStore(store).read(*world.stored(1).launch);
  ASSERT_TRUE(record && !record->patch.empty());
  EXPECT_THAT(project::read_patch(*record), HasSubstr("+print(2)"));
  EXPECT_EQ(project::PastCode(world.project(), Cancel()).then(*record).kept, CodeKept::kept);
  write(world.home() / "secret.txt", "hunter2\n");
  fs::remove(record->patch);
  fs::create_symlink(world.home() / "secret.txt", record->patch);
  EXPECT_THROW(project::read_patch(*record), Error);
  EXPECT_THROW(project::PastCode(world.project(), Cancel()).then(*record), Error);
  fs::remove(record->patch);
  EXPECT_EQ(project::read_patch(*record), "");
  EXPECT_EQ(project::PastCode(world.project(), Cancel()).then(*record).kept, CodeKept::no_patch);
}

TEST_F(CommandGit, ChangesInASubmoduleAreOnRecord) {
  const fs::path library = world.home() / "library";
  write(library / "code.py", "one = 1\n");
  git(library, {"init", "-q"});
  commit_all(library);
  git(world.project(), {"init", "-q"});
  write(world.project() / ".remote/exclude.txt", ".git\nignored.txt\n");
  git(world.project(), {"submodule", "--quiet", "add", library.string(), "libs/sub"});
  commit_all(world.project());
  EXPECT_THAT(launch(), HasSubstr(", same on 2 servers\n"));
  EXPECT_THAT(show(), AllOf(HasSubstr(", clean"), Not(HasSubstr("(in "))));
  // git would run these if it inspected the submodule by itself.
  const fs::path mark = world.home() / "ran";
  git(world.project() / "libs/sub", {"config", "core.fsmonitor", "touch '" + mark.string() + "' #"});
  git(world.project() / "libs/sub", {"config", "filter.own.clean", "touch '" + mark.string() + "' #"});
  write(world.project() / ".git/modules/libs/sub/info/attributes", "* filter=own\n");
  write(world.project() / "libs/sub/ignored.txt", "this is not sent\n");
  EXPECT_THAT(launch(), Not(HasSubstr("with changes")));
  write(world.project() / "libs/sub/code.py", "two = 22\n");
  EXPECT_THAT(launch(), HasSubstr(" with changes (in libs/sub/), same on 2 servers\n"));
  EXPECT_THAT(show(), HasSubstr(", changed (in libs/sub/)"));
  EXPECT_FALSE(fs::exists(mark)) << "a program of the submodule's settings ran";
  EXPECT_EQ(world.run({"rerun", "last"}).code, 0) << "it is the same code still";
  // The code has changed since: the commit does not include the earlier changes.
  write(world.project() / "libs/sub/code.py", "three = 333\n");
  const CommandResult again = world.run({"rerun", "last"});
  EXPECT_EQ(again.code, 2) << again;
  EXPECT_THAT(again.err, HasSubstr("its code is gone"));
  const std::string diff = world.run({"diff", "last", "now"}).out;
  EXPECT_THAT(diff, AllOf(HasSubstr("libs/sub/code.py"), Not(HasSubstr("the code is the same"))));
  // A new file in the submodule is code, too.
  git(world.project() / "libs/sub", {"checkout", "-q", "."});
  write(world.project() / "libs/sub/new.py", "1\n");
  EXPECT_THAT(launch(), HasSubstr("with changes (in libs/sub/)"));
}

// People mark files with local settings so that git does not show their changes.
TEST_F(CommandGit, ChangesThatGitWasToldNotToCheckAreOnRecord) {
  const fs::path library = world.home() / "library";
  write(library / "code.py", "one = 1\n");
  git(library, {"init", "-q"});
  commit_all(library);
  git(world.project(), {"init", "-q"});
  write(world.project() / ".remote/exclude.txt", ".git\n");
  git(world.project(), {"submodule", "--quiet", "add", library.string(), "sub"});
  write(world.project() / "sp ace/conf.py", "lr = 1\n");
  commit_all(world.project());
  for (const std::string mark : {"assume-unchanged", "skip-worktree"}) {
    git(world.project(), {"update-index", "--" + mark, "sp ace/conf.py"});
    const std::string index = read_file(world.project() / ".git/index");
    EXPECT_THAT(launch(), Not(HasSubstr("with changes"))) << mark;
    EXPECT_THAT(show(), HasSubstr(", clean")) << mark;
    write(world.project() / "sp ace/conf.py", "lr = 22\n");
    EXPECT_THAT(launch(), HasSubstr(" with changes, same on 2 servers\n")) << mark;
    EXPECT_THAT(show(), HasSubstr(", changed")) << mark;
    write(world.project() / "sp ace/conf.py", "lr = 333\n");
    EXPECT_THAT(world.run({"diff", "last", "now"}).out, HasSubstr("-lr = 22\n+lr = 333\n")) << mark;
    const CommandResult again = world.run({"rerun", "last"});
    EXPECT_EQ(again.code, 0) << again;
    EXPECT_EQ(read_file(world.there("a") / "sp ace/conf.py"), "lr = 22\n") << mark;
    EXPECT_EQ(read_file(world.project() / ".git/index"), index) << "the user's index has changed";
    write(world.project() / "sp ace/conf.py", "lr = 1\n");
    git(world.project(), {"update-index", "--no-" + mark, "sp ace/conf.py"});
  }
  // A sparse checkout does not have this file.
  git(world.project(), {"update-index", "--skip-worktree", "sp ace/conf.py"});
  fs::remove(world.project() / "sp ace/conf.py");
  EXPECT_THAT(launch(), Not(HasSubstr("with changes")));
  git(world.project() / "sub", {"update-index", "--assume-unchanged", "code.py"});
  write(world.project() / "sub/code.py", "two = 22\n");
  EXPECT_THAT(launch(), HasSubstr(" with changes (in sub/), same on 2 servers; 1 file that is gone here "));
}

TEST_F(CommandGit, ASentFileThatGitIgnoresIsCode) {
  git(world.project(), {"init", "-q"});
  write(world.project() / ".remote/exclude.txt", ".git\n");
  write(world.project() / ".gitignore", "local.py\n");
  write(world.project() / "local.py", "lr = 1\n");
  commit_all(world.project());
  launch();
  EXPECT_THAT(show(), HasSubstr(", clean"));
  const std::string same = "the code is the same, as far as git has it\n";
  EXPECT_EQ(world.run({"diff", "1", "now"}).out, same);
  EXPECT_EQ(world.run({"rerun", "1"}).code, 0) << "nothing has changed";
  write(world.project() / "local.py", "lr = 22\n");
  EXPECT_EQ(world.run({"diff", "1", "now"}).out,
            same + "1 file that git does not have differs (by size and time): local.py\n");
  EXPECT_EQ(world.run({"diff", "1", "now", "--json"}).json()["code"]["unkept"], nlohmann::json({"local.py"}));
  const CommandResult asks = world.run({"rerun", "1"});
  EXPECT_EQ(asks.code, 2) << asks;
  EXPECT_THAT(asks.err, HasSubstr("git does not have local.py, and here it has changed since: the servers' "
                                  "version is used"));
  EXPECT_EQ(world.run({"rerun", "1", "--yes"}).code, 0);
  EXPECT_EQ(read_file(world.there("a") / "local.py"), "lr = 1\n");
  EXPECT_EQ(world.run({"rerun", "1", "--code", "now"}).code, 0);
  EXPECT_EQ(read_file(world.there("a") / "local.py"), "lr = 22\n");
  fs::remove(world.project() / "local.py");
  EXPECT_EQ(world.run({"rerun", "1"}).code, 2) << "the file is gone here";
}

// The record has the commit of the submodule and that of the project.
TEST_F(CommandGit, ARerunHasTheSubmoduleOfThenOrAsks) {
  const fs::path library = world.home() / "library";
  write(library / "code.py", "one = 1\n");
  git(library, {"init", "-q"});
  commit_all(library);
  git(world.project(), {"init", "-q"});
  write(world.project() / ".remote/exclude.txt", ".git\n");
  git(world.project(), {"submodule", "--quiet", "add", library.string(), "sub"});
  commit_all(world.project());
  launch();
  write(world.project() / "train.py", "print(22)\n");
  commit_all(world.project());
  launch();
  EXPECT_EQ(world.run({"rerun", "1"}).code, 0) << "the submodule is as it was";
  EXPECT_EQ(read_file(world.there("a") / "train.py"), "print(1)\n");
  EXPECT_EQ(read_file(world.there("a") / "sub/code.py"), "one = 1\n");
  write(world.project() / "sub/code.py", "two = 22\n");
  commit_all(world.project() / "sub");
  commit_all(world.project());
  const CommandResult again = world.run({"rerun", "1"});
  EXPECT_EQ(again.code, 2) << again;
  EXPECT_THAT(again.err, HasSubstr("it has submodules, and they were different then"));
}

// A project's repository cannot claim other files on this machine.
class HostileGit : public CommandGit {
 protected:
  void SetUp() override {
    CommandGit::SetUp();
    if (!IsSkipped()) {
      outside = make_private();
      git(world.project(), {"init", "-q"});
      write(world.project() / ".remote/exclude.txt", ".git\n");
    }
  }
  // Nothing from the other repository is in a record or on a server.
  void expect_nothing_outside(const std::string& what) {
    const std::string commit = git(outside, {"rev-parse", "HEAD"}).substr(0, 7);
    EXPECT_THAT(launch(), Not(HasSubstr(commit))) << what;
    world.run({"rerun", "last", "--yes", "--code", "git"});
    world.run({"diff", "last", "now"});
    EXPECT_FALSE(is_anywhere("hunter2")) << what;
  }
  fs::path outside;
};

TEST_F(HostileGit, AWorkTreeElsewhereHasNoEffect) {
  commit_all(world.project());
  EXPECT_THAT(launch(), HasSubstr("code: commit "));
  for (const std::string& tree : {outside.string(), std::string("../..")}) {
    git(world.project() / ".git", {"config", "--file", "config", "core.worktree", tree});
    expect_nothing_outside("core.worktree=" + tree);
  }
  // A commit with the names of files there makes them look changed.
  git(world.project() / ".git", {"config", "--file", "config", "--unset", "core.worktree"});
  write(world.project() / "secret.txt", "1\n");
  commit_all(world.project());
  git(world.project() / ".git", {"config", "--file", "config", "core.worktree", outside.string()});
  expect_nothing_outside("a file of the same name");
  write(world.home() / "more", "[core]\n\tworktree = " + outside.string() + "\n");
  git(world.project() / ".git",
      {"config", "--file", "config", "include.path", (world.home() / "more").string()});
  expect_nothing_outside("an included file");
}

TEST_F(HostileGit, ARepositoryElsewhereIsNotBelieved) {
  fs::remove_all(world.project() / ".git");
  write(world.project() / ".git", "gitdir: " + (outside / ".git").string() + "\n");
  expect_nothing_outside("a file .git that names another repository");
  EXPECT_FALSE(project::find_repository(world.project()));
  fs::remove(world.project() / ".git");
  fs::create_directory_symlink(outside / ".git", world.project() / ".git");
  expect_nothing_outside("a link .git");
  fs::remove(world.project() / ".git");
  git(world.project(), {"init", "-q"});
  write(world.project() / ".git/commondir", (outside / ".git").string() + "\n");
  write(world.project() / ".git/HEAD", "ref: refs/heads/main\n");
  expect_nothing_outside("commondir");
}

TEST_F(HostileGit, ObjectsOfAnotherRepositoryAreNotBelieved) {
  const fs::path own = world.project() / ".git";
  const fs::path objects = own / "objects";
  const std::string commit = git(outside, {"rev-parse", "HEAD"});
  write(own / "HEAD", commit);
  write(objects / "info/alternates", (outside / ".git/objects").string() + "\n");
  expect_nothing_outside("alternates");
  write(objects / "info/alternates", '"' + (outside / ".git/objects").string() + "\"\n");
  expect_nothing_outside("quoted alternates");
  write(objects / "info/alternates", "other\n");
  write(objects / "other/info/alternates", (outside / ".git/objects").string() + "\n");
  expect_nothing_outside("alternates of alternates");
  fs::remove(objects / "info/alternates");
  fs::remove_all(objects);
  fs::create_directory_symlink(outside / ".git/objects", objects);
  expect_nothing_outside("a link objects");
  fs::remove(objects);
  make_folders(objects / "info");
  make_folders(objects / "pack");
  for (const auto& entry : fs::directory_iterator(outside / ".git/objects")) {
    if (entry.path().filename().string().size() == 2) {
      fs::create_directory_symlink(entry.path(), objects / entry.path().filename());
    }
  }
  expect_nothing_outside("links in objects");
  git(outside, {"gc", "-q"});
  fs::remove_all(objects / "pack");
  fs::create_directory_symlink(outside / ".git/objects/pack", objects / "pack");
  expect_nothing_outside("a link objects/pack");
}

// A rerun copies submodules from the project's folder.
TEST_F(HostileGit, ASubmoduleBehindALinkIsNotSent) {
  const fs::path library = world.home() / "library";
  write(library / "code.py", "one = 1\n");
  git(library, {"init", "-q"});
  commit_all(library);
  git(world.project(), {"submodule", "--quiet", "add", library.string(), "sub"});
  git(world.project(), {"submodule", "--quiet", "add", library.string(), "libs/inner"});
  commit_all(world.project());
  launch();
  const PastLaunch record = History(world.project()).launch("last");
  write(outside / "inner/secret.txt", "hunter2\n");
  const auto expect_not_copied = [&](const fs::path& folder, const std::string& submodule) {
    const fs::path aside = world.home() / "aside";
    fs::rename(world.project() / folder, aside);
    fs::create_directory_symlink(outside, world.project() / folder);
    for (const char* mark : {"--assume-unchanged", "--skip-worktree"}) {
      git(world.project(), {"update-index", mark, submodule});
      write(world.project() / "train.py", std::string("print('") + mark + "')\n");
      world.run({"rerun", std::to_string(record.first_key), "--yes"});
      world.run({"rerun", std::to_string(record.first_key), "--yes", "--code", "git"});
      launch();
      write(world.project() / "train.py", "print(22)\n");
      world.run({"rerun", "last", "--yes"});
      EXPECT_FALSE(is_anywhere("hunter2")) << submodule << " with " << mark;
    }
    git(world.project(), {"update-index", "--no-assume-unchanged", submodule});
    git(world.project(), {"update-index", "--no-skip-worktree", submodule});
    project::PastCode code(world.project(), Cancel());
    const project::PastCode::Tree then = code.then(record);
    EXPECT_EQ(then.kept, CodeKept::kept);
    EXPECT_EQ(then.submodules.size(), 2U);
    EXPECT_THROW(code.write(then), Error) << submodule;
    fs::remove(world.project() / folder);
    fs::rename(aside, world.project() / folder);
  };
  expect_not_copied("sub", "sub");
  expect_not_copied("libs", "libs/inner");
  project::PastCode code(world.project(), Cancel());
  EXPECT_EQ(read_file(code.write(code.then(record)) / "libs/inner/code.py"), "one = 1\n");
}

TEST_F(HostileGit, ARepositoryOfAnotherUserIsNotBelieved) {
  commit_all(world.project());
  EXPECT_TRUE(project::find_repository(world.project()));
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can give files away";
  }
  ASSERT_EQ(::lchown((world.project() / ".git").c_str(), 12345, 12345), 0);
  EXPECT_FALSE(project::find_repository(world.project()));
  EXPECT_THAT(launch(), HasSubstr("code: no commit"));
}

TEST_F(HostileGit, ProgramsOfItsSettingsAreNotRun) {
  commit_all(world.project());
  const fs::path mark = world.home() / "ran";
  for (const char* key : {"core.fsmonitor",
                          "core.pager",
                          "core.editor",
                          "core.sshCommand",
                          "core.askPass",
                          "core.gitProxy",
                          "core.alternateRefsCommand",
                          "diff.external",
                          "diff.own.command",
                          "diff.own.textconv",
                          "filter.own.clean",
                          "filter.own.smudge",
                          "filter.own.process",
                          "gpg.program",
                          "credential.helper",
                          "alias.status",
                          "alias.diff",
                          "merge.own.driver",
                          "interactive.diffFilter",
                          "uploadpack.packObjectsHook"}) {
    git(world.project(), {"config", key, "touch '" + mark.string() + "' #"});
  }
  write(world.project() / ".git/info/attributes", "* diff=own filter=own merge=own\n");
  make_folders(world.project() / ".git/hooks");
  for (const char* hook : {"post-checkout", "post-index-change", "pre-applypatch", "fsmonitor-watchman"}) {
    write(world.project() / ".git/hooks" / hook, "#!/bin/sh\ntouch '" + mark.string() + "'\n");
    fs::permissions(world.project() / ".git/hooks" / hook, fs::perms::owner_all);
  }
  write(world.project() / "train.py", "print(2)\n");
  launch();
  write(world.project() / "train.py", "print(3)\n");
  EXPECT_EQ(world.run({"rerun", "last", "--yes"}).code, 0);
  world.run({"diff", "last", "now"});
  EXPECT_FALSE(fs::exists(mark));
}

// Common setups: a linked worktree, a submodule as a project, a project inside a repository.
TEST_F(CommandGit, RepositoriesOfPeopleAreBelieved) {
  const fs::path main = make_private();
  const fs::path tree = world.home() / "tree";
  git(main, {"worktree", "add", "-q", tree.string(), "-b", "other"});
  const auto found = project::find_repository(tree);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->top, tree);
  EXPECT_EQ(found->folder, main / ".git/worktrees/tree");
  make_folders(main / "deep/er");
  EXPECT_EQ(project::find_repository(main / "deep/er").value().top, main);
  git(main, {"submodule", "--quiet", "add", tree.string(), "sub"});
  EXPECT_EQ(project::find_repository(main / "sub").value().folder, main / ".git/modules/sub");
  EXPECT_FALSE(project::find_repository("/"));
}

}  // namespace
}  // namespace remote::test
