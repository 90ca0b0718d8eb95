// Launches tell when the code on the servers is older than the code here.

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
  // What a launch of nothing says.
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
  CommandWorld world;
};

TEST_F(CommandCode, WhatChangedSinceTheLastRsyncIsNamedOnce) {
  rsync();
  EXPECT_THAT(launch(), Not(HasSubstr("warning")));
  for (const char* name : {"train.py", "model.py", "data.py", "util.py"}) {
    write(name, "2\n");  // in the same second and of the same size
  }
  EXPECT_THAT(launch(), HasSubstr("warning: changed here since the last rsync to a, b: data.py, model.py, "
                                  "train.py and 1 more; --rsync sends them\n"));
  rsync({"--server", "a"});
  const std::string one = launch();
  EXPECT_THAT(one, AllOf(HasSubstr("since the last rsync to b: "), Not(HasSubstr("rsync to a"))));
  rsync();
  write("new.py", "");
  fs::remove(world.project() / "util.py");  // rsync would leave it there
  EXPECT_THAT(launch(), HasSubstr("rsync to a, b: new.py; --rsync sends it\n"));
}

TEST_F(CommandCode, AProjectThatWasNeverSentIsTold) {
  EXPECT_THAT(launch(), HasSubstr("warning: nothing was sent from here to a, b yet"));
  rsync({"--dry-run"});
  EXPECT_THAT(launch({"--json"}), HasSubstr("nothing was sent from here to a, b yet"));
  rsync({"--server", "a"});
  EXPECT_THAT(launch(), HasSubstr("nothing was sent from here to b yet"));
  EXPECT_THAT(world.run({"job-run", "--server", "b", "--cmd", "true"}).err,
              HasSubstr("nothing was sent from here to b yet"));
  // The same name for another folder is another place.
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
  // A link that leads out is not followed unless that was allowed.
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

}  // namespace
}  // namespace remote::test
