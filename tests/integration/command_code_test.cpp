// Launches warn if the code on the servers is older than the code here.

#include <fstream>

#include <fcntl.h>

#include "base/files.hpp"
#include "support/command_world.hpp"

namespace remote::test {
namespace {

class CommandCode : public ::testing::Test {
 protected:
  CommandCode() {
    world.configure(config(""));
    for (const char* name : {"train.py", "model.py", "data.py", "util.py"}) {
      write(name, "1\n");
    }
  }
  static std::string config(const std::string& launch) {
    return "name: proj\npython: {manager: system}\nservers:\n"
           "  a: {hostname: a, internal_address: 127.0.0.1}\n"
           "  b: {hostname: b, internal_address: 127.0.0.1}\n" +
           launch;
  }
  void write(const std::string& name, const std::string& content) {
    make_folders((world.project() / name).parent_path());
    write_file_atomic(world.project() / name, content);
  }
  // The stderr of a launch that does nothing.
  std::string launch(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"launch", "--cmd", "true", "--nproc-per-node", "1", "--on-failure", "leave"});
    const CommandResult result = world.run(more);
    EXPECT_EQ(result.code, 0) << result;
    return result.err;
  }
  void rsync(std::vector<std::string> more = {}) {
    more.insert(more.begin(), "rsync");
    EXPECT_EQ(world.run(more).code, 0);
  }
  std::string there(const char* server, const std::string& name = "train.py") {
    return read_file_if_there(world.there(server) / name).value_or("");
  }
  static void age(const fs::path& file, std::chrono::minutes minutes) {
    fs::last_write_time(file, fs::file_time_type::clock::now() - minutes);
  }
  // Changes a file on the server, as a job or another folder of the same name would.
  void change_there(const std::string& server, const std::string& name, const std::string& content) {
    write_file_atomic(world.there(server) / name, content);
    fs::last_write_time(world.there(server) / name,
                        fs::file_time_type::clock::now() + std::chrono::minutes(1));
  }
  // A fact that `show` prints about a server of the newest launch.
  std::string fact(std::size_t server, const std::string& name) {
    const nlohmann::json record = world.run({"show", "last", "--json"}).json();
    for (const auto& one : record["setups"][server]["facts"]) {
      if (one[0] == name) {
        return one[1];
      }
    }
    return "none";
  }
  CommandWorld world;
};

TEST_F(CommandCode, WhatChangedSinceTheLastRsyncIsNamedOnce) {
  rsync();
  EXPECT_THAT(launch(), Not(HasSubstr("warning")));
  for (const char* name : {"train.py", "model.py", "data.py", "util.py"}) {
    write(name, "2\n");  // modified in the same second and with the same size
  }
  EXPECT_THAT(launch(), HasSubstr("warning: changed here since the last rsync to a, b: data.py, model.py, "
                                  "train.py and 1 more; --rsync sends them\n"));
  rsync({"--server", "a"});
  const std::string one = launch();
  EXPECT_THAT(one, AllOf(HasSubstr("since the last rsync to b: "), Not(HasSubstr("rsync to a"))));
  rsync();
  write("new.py", "");
  fs::remove(world.project() / "util.py");  // rsync would leave it on the server
  EXPECT_THAT(launch(), HasSubstr("rsync to a, b: new.py; --rsync sends it\n"));
}

TEST_F(CommandCode, TheQuestionBeforeALaunchIsAnsweredOrNothingStarts) {
  rsync();
  write("train.py", "2\n\n");
  const auto answer = [&](const std::string& typed) {
    return world.run({"launch", "--cmd", "true", "--nproc-per-node", "1", "--no-follow"}, screen(typed));
  };
  const auto there = [&] { return read_file(world.there("a") / "train.py"); };
  const CommandResult cancelled = answer("\x04");
  EXPECT_EQ(cancelled.code, 1) << cancelled;
  EXPECT_THAT(cancelled.err, AllOf(HasSubstr("Copy first? [Y/n]"), HasSubstr("nothing was started")));
  EXPECT_EQ(answer("x\n\x04").code, 1);
  EXPECT_TRUE(world.store().list().jobs.empty());
  EXPECT_EQ(there(), "1\n");
  EXPECT_EQ(answer("No\n").code, 0);
  EXPECT_EQ(there(), "1\n");
  EXPECT_EQ(answer("x\nYes\n").code, 0);
  EXPECT_EQ(there(), "2\n\n");
}

TEST_F(CommandCode, PackagesThatAreOlderThanTheFilesAreTold) {
  const std::string old = "packages: they are older than the project's files";
  write("requirements.txt", "# none\n");
  ASSERT_EQ(world.run({"prepare"}).code, 0);
  EXPECT_THAT(launch(), Not(HasSubstr(old)));
  write("requirements.txt", "# none yet\n");
  EXPECT_THAT(launch({"--rsync"}), HasSubstr(old));
  EXPECT_THAT(launch({"--no-check"}), Not(HasSubstr(old)));
  const CommandResult check = world.run({"check"});
  EXPECT_THAT(check.out + check.err, HasSubstr("they are older than the project's files"));
  ASSERT_EQ(world.run({"prepare"}).code, 0);
  EXPECT_THAT(launch(), Not(HasSubstr(old)));
  const CommandResult again = world.run({"check"});
  EXPECT_THAT(again.out + again.err, Not(HasSubstr("they are older")));
}

TEST_F(CommandCode, AProjectThatWasNeverSentIsTold) {
  EXPECT_THAT(launch(), HasSubstr("warning: nothing was sent from here to a, b yet"));
  rsync({"--dry-run"});
  EXPECT_THAT(launch({"--json"}), HasSubstr("nothing was sent from here to a, b yet"));
  rsync({"--server", "a"});
  EXPECT_THAT(launch(), HasSubstr("nothing was sent from here to b yet"));
  EXPECT_THAT(world.run({"job-run", "--server", "b", "--cmd", "true"}).err,
              HasSubstr("nothing was sent from here to b yet"));
  // The same server with another folder is a different destination.
  world.configure(config("remote_path: ~/other\n"));
  make_folders(world.servers().home("a") / "other");
  EXPECT_THAT(world.run({"job-run", "--server", "a", "--cmd", "true"}).err,
              HasSubstr("nothing was sent from here to a yet"));
}

TEST_F(CommandCode, WhatIsNotSentDoesNotCount) {
  write(".remote/exclude.txt", "*.log\n/out/\n");
  rsync();
  write("a.log", "1");
  write("out/file.py", "1");
  write(".remote/note", "1");
  EXPECT_THAT(launch(), Not(HasSubstr("warning")));
  // A link out of the project is not followed unless this is allowed.
  const TempFolder outside("remote-outside-");
  write_file_atomic(outside.path() / "data.py", "1");
  fs::create_directory_symlink(outside.path(), world.project() / "link");
  EXPECT_THAT(launch(), Not(HasSubstr("warning")));
  write(".remote/exclude.txt", "/out/\n");
  EXPECT_THAT(launch(), HasSubstr(": a.log; --rsync sends it"));
}

TEST_F(CommandCode, ARecordOfAnOlderVersionGoesByItsTime) {
  rsync();
  for (const char* name : {"a", "b"}) {
    fs::remove(world.project() / ".remote/sent" / (std::string(".state.") + name));
  }
  EXPECT_THAT(launch(), Not(HasSubstr("warning")));
  write("model.py", "2\n");
  fs::last_write_time(world.project() / "model.py",
                      fs::file_time_type::clock::now() + std::chrono::minutes(1));
  EXPECT_THAT(launch(), HasSubstr("rsync to a, b: model.py; "));
}

TEST_F(CommandCode, ServersShareOneRecordAndOldOnesAreRemoved) {
  const auto trees = [&] {
    int count = 0;
    for (const auto& entry : fs::directory_iterator(world.project() / ".remote/sent")) {
      count += entry.path().filename().string().starts_with(".tree.") ? 1 : 0;
    }
    return count;
  };
  rsync();
  EXPECT_EQ(trees(), 1);
  write("train.py", "2\n");
  rsync({"--server", "a"});
  EXPECT_EQ(trees(), 2);
  rsync();
  EXPECT_EQ(trees(), 1);
}

TEST_F(CommandCode, RsyncSendsItFirst) {
  const auto there = [&](const char* server) {
    return read_file_if_there(world.there(server) / "train.py").value_or("");
  };
  const std::string sent = launch({"--rsync"});
  EXPECT_THAT(sent, AllOf(HasSubstr("a: ok rsync 4 files"), Not(HasSubstr("warning"))));
  EXPECT_EQ(there("a") + there("b"), "1\n1\n");
  write("train.py", "2\n");
  EXPECT_THAT(launch({"--rsync", "--server", "b"}), HasSubstr("b: ok rsync 1 file"));
  EXPECT_EQ(there("a") + there("b"), "1\n2\n");
  const CommandResult json = world.run({"--json", "launch", "--rsync", "--cmd", "true"});
  EXPECT_EQ(json.json().size(), 2U) << json;
  write("train.py", "3\n");
  EXPECT_EQ(world.run({"job-run", "--rsync", "--server", "a", "--cmd", "true"}).code, 0);
  EXPECT_EQ(there("a") + there("b"), "3\n2\n");
}

TEST_F(CommandCode, RsyncGoesOverTheConnectionsOfTheLaunch) {
  world.servers().set_faults({.connect = 3});  // two servers: one connection each
  EXPECT_THAT(launch({"--rsync"}), HasSubstr("b: ok rsync 4 files"));
}

TEST_F(CommandCode, WhatCannotBeSentIsNotStarted) {
  fs::remove_all(world.there("b"));
  write_file_atomic(world.there("b"), "no folder");
  const CommandResult result = world.run({"launch", "--rsync", "--cmd", "true"});
  EXPECT_EQ(result.code, 1) << result;
  EXPECT_THAT(result.err, HasSubstr("error: nothing was started: the project was not sent to all"));
  EXPECT_THAT(world.store().list().jobs, IsEmpty());
}

TEST_F(CommandCode, TheHabitStandsInTheConfiguration) {
  world.configure(config("launch: {rsync: true}\n"));
  EXPECT_THAT(launch(), HasSubstr("a: ok rsync 4 files"));
  EXPECT_THAT(launch({"--no-rsync"}), Not(HasSubstr("ok rsync")));
}

TEST_F(CommandCode, AnOlderVersionThatIsPutBackIsWhatRuns) {
  age(world.project() / "train.py", std::chrono::minutes(60));
  write("old.py", "old\n");
  age(world.project() / "old.py", std::chrono::minutes(30));
  rsync();
  write("train.py", "new\n");
  rsync();
  fs::rename(world.project() / "old.py", world.project() / "train.py");  // like cp -p
  EXPECT_THAT(launch(),
              AllOf(HasSubstr("changed here since the last rsync to a, b: train.py; --rsync sends it"),
                    HasSubstr("code: no commit, different on a, b; 1 file that is gone here is still there "
                              "(`remote rsync --delete` removes it)\n")));
  const std::string sent = launch({"--rsync"});
  EXPECT_THAT(sent,
              AllOf(HasSubstr("a: ok rsync 1 file"), HasSubstr("code: no commit, same on 2 servers; 1 "),
                    Not(HasSubstr("newer")), Not(HasSubstr("warning"))));
  EXPECT_EQ(there("a") + there("b"), "old\nold\n");
  EXPECT_THAT(world.run({"diff", "last", "now"}).out, HasSubstr("the files are the same"));
}

// A module that was deleted here can still be imported there.
TEST_F(CommandCode, FilesThatAreGoneHereAndStillThereAreCounted) {
  write("pkg/old.py", "1\n");
  write("pkg/older.py", "1\n");
  write(".git/index", "1\n");
  rsync();
  EXPECT_THAT(launch(), HasSubstr("code: no commit, same on 2 servers\n"));
  fs::remove_all(world.project() / "pkg");
  fs::remove_all(world.project() / ".git");
  fs::remove(world.there("a") / "pkg/old.py");  // as a job may
  const char* both =
      "same on 2 servers; 2 files that are gone here are still there (`remote rsync --delete` "
      "removes them)\n";
  EXPECT_THAT(launch(), HasSubstr(both));
  EXPECT_THAT(launch({"--verify-sync"}), HasSubstr(both));
  EXPECT_THAT(launch({"--server", "a"}),
              HasSubstr("same on 1 server; 1 file that is gone here is still there"));
  rsync({"--delete"});
  EXPECT_THAT(launch(), HasSubstr("same on 2 servers\n"));
}

// Also with servers that send it to each other, and in a dry run.
TEST_F(CommandCode, AnOlderVersionGoesByWayOfPeersToo) {
  write("train.py", "new\n");
  rsync();
  write("train.py", "old\n");
  age(world.project() / "train.py", std::chrono::minutes(30));
  EXPECT_THAT(world.run({"rsync", "--dry-run"}).err, HasSubstr("would send:\n    train.py\n"));
  EXPECT_EQ(there("a"), "new\n");
  rsync({"--fan-out", "peers"});
  EXPECT_EQ(there("a") + there("b"), "old\nold\n");
}

TEST_F(CommandCode, OtherCodeThereStopsALaunchThatCopies) {
  rsync();
  change_there("b", "model.py", "of somebody else\n");
  for (const char* command : {"launch", "sweep", "job-run"}) {
    std::vector<std::string> words{command, "--rsync"};
    if (command == std::string("job-run")) {
      words.insert(words.end(), {"--server", "b"});
    }
    words.insert(words.end(), {"--cmd", "true"});
    if (command == std::string("sweep")) {
      words.insert(words.end(), {"--param", "lr=1,2"});
    }
    const CommandResult result = world.run(words);
    EXPECT_EQ(result.code, 1) << command << result;
    EXPECT_THAT(result.err, AllOf(HasSubstr("b: not changed, newer on the server:\n    model.py\n"),
                                  HasSubstr("model.py is newer there than here, and was not sent from here"),
                                  HasSubstr("--overwrite"), HasSubstr("error: nothing was started: ")))
        << command;
  }
  EXPECT_THAT(world.store().list().jobs, IsEmpty());
  EXPECT_EQ(there("b", "model.py"), "of somebody else\n");
  // The next launch does not mistake it for the code that was sent.
  EXPECT_THAT(launch(), AllOf(HasSubstr("warning: changed on b since the last rsync, or sent there from "
                                        "elsewhere: model.py; `remote rsync --overwrite` replaces it\n"),
                              HasSubstr("code: no commit, different on b, same on 1 server\n")));
  EXPECT_EQ(fact(1, "changed there"), "1 file");
  EXPECT_EQ(fact(1, "code"), "none");
  EXPECT_EQ(fact(0, "changed there"), "none");
  EXPECT_THAT(world.run({"diff", "last", "now"}).out, Not(HasSubstr("same")));
  rsync({"--overwrite"});
  EXPECT_THAT(launch({"--rsync"}), HasSubstr("code: no commit, same on 2 servers\n"));
  EXPECT_EQ(there("b", "model.py"), "1\n");
}

TEST_F(CommandCode, ASecondFolderOfTheSameNameIsNoticed) {
  rsync();
  // Another folder with a newer and an older file. It has never sent anything.
  fs::remove_all(world.project() / ".remote/sent");
  write("train.py", "second\n");
  age(world.project() / "train.py", std::chrono::minutes(30));
  EXPECT_THAT(launch(), AllOf(HasSubstr("nothing was sent from here to a, b yet"),
                              HasSubstr("code: no commit, different on a, b\n")));
  EXPECT_EQ(world.run({"launch", "--rsync", "--cmd", "true"}).code, 1);
  EXPECT_EQ(there("a"), "1\n");
  // A copy with the same contents is the same code.
  write("train.py", "1\n");
  age(world.project() / "train.py", std::chrono::minutes(30));
  EXPECT_THAT(launch({"--rsync"}), AllOf(HasSubstr("code: no commit, same on 2 servers\n"),
                                         Not(HasSubstr("warning")), Not(HasSubstr("newer"))));
}

TEST_F(CommandCode, OtherCodeThereIsAskedAboutOnATerminal) {
  rsync();
  change_there("a", "model.py", "of somebody else\n");
  const std::vector<std::string> words{"launch", "--rsync", "--nproc-per-node", "1", "--cmd", "true"};
  const CommandResult no = world.run(words, screen("n\n"));
  EXPECT_EQ(no.code, 1) << no;
  EXPECT_THAT(no.err, HasSubstr("Replace them with the files here? [y/N] "));
  EXPECT_THAT(world.store().list().jobs, IsEmpty());
  const CommandResult yes = world.run(words, screen("y\n"));
  EXPECT_EQ(yes.code, 0) << yes;
  EXPECT_THAT(yes.err, HasSubstr("same on 2 servers"));
  EXPECT_EQ(there("a", "model.py"), "1\n");
  // Even without --rsync.
  change_there("a", "model.py", "again\n");
  const CommandResult asked =
      world.run({"launch", "--nproc-per-node", "1", "--cmd", "true"}, screen("y\ny\n"));
  EXPECT_EQ(asked.code, 0) << asked;
  EXPECT_THAT(asked.err, AllOf(HasSubstr("Copy first?"), HasSubstr("same on 2 servers")));
}

TEST_F(CommandCode, TheEndOfTheInputAtAnyOfTheQuestionsStartsNothing) {
  rsync();
  for (const auto& [input, question] :
       {std::pair("\x04", "Copy first?"), std::pair("y\n\x04", "Replace them with the files here?")}) {
    change_there("a", "model.py", "of somebody else\n");
    const CommandResult ended =
        world.run({"launch", "--nproc-per-node", "1", "--cmd", "true"}, screen(input));
    EXPECT_EQ(ended.code, 1) << ended;
    EXPECT_THAT(ended.err, AllOf(HasSubstr(question), HasSubstr("nothing was started")));
    EXPECT_EQ(there("a", "model.py"), "of somebody else\n");
  }
  const CommandResult must =
      world.run({"launch", "--rsync", "--nproc-per-node", "1", "--cmd", "true"}, screen("\x04"));
  EXPECT_EQ(must.code, 1) << must;
  EXPECT_THAT(must.err, HasSubstr("nothing was started"));
  EXPECT_THAT(world.store().list().jobs, IsEmpty());
}

TEST_F(CommandCode, FilesThatWereChangedThereAreNoticedWhateverTheirTimes) {
  write("a name, 'quoted'", "1\n");
  rsync();
  write_file_atomic(world.there("a") / "a name, 'quoted'", "22\n");
  fs::last_write_time(world.there("a") / "a name, 'quoted'",
                      fs::file_time_type::clock::now() - std::chrono::hours(24));
  fs::remove(world.there("b") / "data.py");
  const std::string said = launch();
  EXPECT_THAT(said,
              AllOf(HasSubstr("changed on a since the last rsync, or sent there from elsewhere: a name, "),
                    HasSubstr("since the last rsync to b: data.py; --rsync sends it"),
                    HasSubstr("code: no commit, different on a, b\n")));
  // Touching a file does not change the code.
  rsync({"--overwrite"});
  age(world.there("a") / "train.py", std::chrono::minutes(1));
  age(world.there("b") / "train.py", std::chrono::minutes(-1));
  EXPECT_THAT(launch(), AllOf(HasSubstr("same on 2 servers"), Not(HasSubstr("warning"))));
}

TEST_F(CommandCode, MoreFilesThanAreListedAreCompared) {
  make_folders(world.project() / "many");
  for (int i = 0; i < 1100; ++i) {
    std::ofstream(world.project() / "many" / std::to_string(i)) << "1\n";
  }
  rsync();
  for (int i = 0; i < 1100; ++i) {
    age(world.there("a") / "many" / std::to_string(i), std::chrono::minutes(5));
  }
  EXPECT_THAT(launch(), AllOf(HasSubstr("same on 2 servers"), Not(HasSubstr("warning"))));
}

TEST_F(CommandCode, AScriptThatDoesNotExistIsNotStarted) {
  make_folders(world.project() / "sub");
  write("sub/w.py", "1\n");
  rsync();
  const auto refused = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"launch", "--nproc-per-node", "1"});
    const CommandResult result = world.run(words);
    EXPECT_EQ(result.code, 2) << result;
    EXPECT_THAT(world.store().list().jobs, IsEmpty()) << result;
    return result.err;
  };
  EXPECT_THAT(refused({"--cmd", "python3 -u trian.py --lr 1"}),
              AllOf(HasSubstr("error: nothing was started: there is no trian.py, here or on a, b"),
                    HasSubstr("did you mean 'train.py'?"), HasSubstr("--no-check")));
  EXPECT_THAT(refused({"--workdir", "sub", "--", "python3", "train.py"}),
              AllOf(HasSubstr("there is no sub/train.py"), HasSubstr("did you mean ../train.py?")));
  EXPECT_THAT(
      refused({"--workdir", "sub", "--", "python3", "sub/w.py"}),
      AllOf(HasSubstr("did you mean w.py? The server looks for sub/sub/w.py; write `remote "),
            HasSubstr(" launch --nproc-per-node 1 --workdir sub -- python3 w.py`; --no-check starts it")));
  EXPECT_THAT(refused({"--workdir", "sub", "--cmd", "python3 sub/w.py --lr 1"}),
              HasSubstr(" --workdir sub --cmd 'python3 w.py --lr 1'`"));
  // A path that exists here, but not for the processes of a server.
  const UniqueFd opened(::open(world.project().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const UniqueFd folder(::fcntl(opened.get(), F_DUPFD_CLOEXEC, 200));
  const std::string here = "/proc/self/fd/" + std::to_string(folder.get()) + "/sub/w.py";
  EXPECT_THAT(refused({"--", "python3", here, "--lr", "1"}),
              AllOf(HasSubstr("on a server, this file of the project is sub/w.py; write `remote "),
                    HasSubstr(" launch --nproc-per-node 1 -- python3 sub/w.py --lr 1`")));
  EXPECT_THAT(refused({"--", "sh", "-e", "run.sh"}), HasSubstr("there is no run.sh"));
  EXPECT_THAT(refused({"--", "./run.sh"}), HasSubstr("there is no run.sh"));
  EXPECT_THAT(refused({"--", "python3", "/nowhere/train.py"}),
              HasSubstr("there is no /nowhere/train.py on a"));
  write("env.sh", "export A=1\n");
  write("moves.sh", "cd sub\n");
  for (const char* line :
       {"export A=1 && python3 trian.py", "mkdir -p out; python3 trian.py", ". ./env.sh && python3 trian.py",
        "set -e; python3 trian.py", "bash -c \"python3 trian.py\""}) {
    EXPECT_THAT(refused({"--cmd", line}), AllOf(HasSubstr("there is no trian.py, here or on a, b"),
                                                HasSubstr("did you mean 'train.py'?")))
        << line;
  }
  EXPECT_THAT(refused({"--workdir", "sub", "--", "bash", "-c", "python3 sub/w.py"}),
              AllOf(HasSubstr("did you mean w.py?"), Not(HasSubstr("; write `"))));
  write("late.py", "1\n");
  EXPECT_THAT(refused({"--", "python3", "late.py"}), HasSubstr("late.py is not on a, b: it was not sent"));
  const CommandResult unchecked =
      world.run({"launch", "--no-check", "--nproc-per-node", "1", "--", "sh", "run.sh"});
  EXPECT_EQ(unchecked.code, 0) << unchecked;
  // A file that is read first may change the folder.
  for (const char* line :
       {". ./moves.sh && ./w.sh", ". ~/env.sh && ./w.sh", "mkdir -p new && cd new && ./w.sh"}) {
    const CommandResult result = world.run({"job-run", "--server", "a", "--cmd", line});
    EXPECT_EQ(result.code, 0) << line << result;
  }
  EXPECT_EQ(world.run({"job-run", "--server", "a", "--cmd", ". ./env.sh && ./w.sh"}).code, 2);
  EXPECT_THAT(world.run({"job-run", "--server", "a", "--", "torchrun", "--nnodes", "1", "trian.py"}).err,
              HasSubstr("there is no trian.py, here or on a"));
  // It is enough if the servers have the file.
  write_file_atomic(world.there("a") / "made.sh", "true\n");
  write_file_atomic(world.there("b") / "made.sh", "true\n");
  EXPECT_EQ(world.run({"launch", "--nproc-per-node", "1", "--", "sh", "made.sh"}).code, 0);
  fs::remove(world.there("b") / "made.sh");
  EXPECT_THAT(world.run({"launch", "--nproc-per-node", "1", "--", "sh", "made.sh"}).err,
              HasSubstr("there is no made.sh, here or on b"));
}

}  // namespace
}  // namespace remote::test
