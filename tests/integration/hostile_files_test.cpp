// Project files that try to read this machine, and servers that try to act here through rsync.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.hpp"
#include "base/hashing.hpp"
#include "base/shell_quote.hpp"
#include "servers/python_env.hpp"
#include "support/command_world.hpp"
#include "wire/json_text.hpp"

namespace remote::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* secret = "machine example login ada password hunter2\n";

class HostileFiles : public ::testing::Test {
 protected:
  HostileFiles() {
    write_file_atomic(world.home() / ".netrc", secret, 0600);
    write("train.py", "print(1)\n");
    // Keeps everything sent to rsync on the servers.
    make_folders(kept);
    world.servers().add_program("rsync", "exec python3 -c " +
                                             shell_quote(R"(import os, subprocess, sys, threading
p = subprocess.Popen(['/usr/bin/rsync'] + sys.argv[2:], stdin=subprocess.PIPE)
kept = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def copy():
  while True:
    data = os.read(0, 65536)
    if not data: break
    os.write(kept, data)
    p.stdin.write(data)
    p.stdin.flush()
  p.stdin.close()
threading.Thread(target=copy, daemon=True).start()
os._exit(p.wait()))") + " " + shell_quote((kept / "rsync").string()) +
                                             " \"$@\"\n");
  }
  void write(const std::string& name, const std::string& text) {
    make_folders((world.project() / name).parent_path());
    write_file_atomic(world.project() / name, text);
  }
  void link(const fs::path& target, const std::string& name) {
    make_folders((world.project() / name).parent_path());
    fs::remove(world.project() / name);
    fs::create_symlink(target, world.project() / name);
  }
  // Everything that rsync on the servers has read so far.
  std::string sent() const { return read_file_if_there(kept / "rsync").value_or(""); }

  CommandWorld world;
  const fs::path kept = world.home() / "kept";
};

TEST_F(HostileFiles, AFileOfTheProjectThatIsALinkToASecretIsNotRead) {
  ASSERT_EQ(world.run({"rsync"}).code, 0);
  for (const fs::path& target : {fs::path("../../../home/.netrc"), world.home() / ".netrc"}) {
    for (const std::string name :
         {".remote/exclude.txt", "requirements.txt", "Pipfile", "Pipfile.lock", "pyproject.toml"}) {
      const int before = world.servers().commands();
      if (name == "Pipfile.lock") {
        write("Pipfile", "");
      }
      link(target, name);
      for (const std::vector<std::string>& command : {std::vector<std::string>{"rsync", "--delete"},
                                                      {"rsync", "-n", "--delete"},
                                                      {"prepare", "--delete"},
                                                      {"update-packages"}}) {
        const bool is_read =
            name == ".remote/exclude.txt" ? command[0] != "update-packages" : command[0] != "rsync";
        if (!is_read) {
          continue;
        }
        const CommandResult result = world.run(command);
        EXPECT_THAT(result, Refused("leads out of")) << name << ": " << command[0];
        EXPECT_THAT(result.err, AllOf(HasSubstr(name), Not(HasSubstr("hunter2"))));
      }
      EXPECT_EQ(world.servers().commands(), before) << name;
      fs::remove(world.project() / name);
      fs::remove(world.project() / "Pipfile");
    }
  }
  EXPECT_THAT(sent(), Not(HasSubstr("hunter2")));
}

TEST_F(HostileFiles, AFifoOrAGiantFileIsAnErrorAtOnce) {
  for (const std::string name : {".remote/exclude.txt", "requirements.txt"}) {
    const fs::path file = world.project() / name;
    ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
    EXPECT_THAT(world.run({"prepare"}), Refused("not a regular file")) << name;
    fs::remove(file);
    write(name, "x\n");
    ASSERT_EQ(::truncate(file.c_str(), off_t{200} << 30U), 0);
    EXPECT_THAT(world.run({"prepare"}), Refused("larger than")) << name;
    fs::remove(file);
  }
}

TEST_F(HostileFiles, AServerSeesNoPattern) {
  write(".remote/exclude.txt", "client-of-ours/\n+ secret-name\n*.tmp\n");
  write("gone.py", "1");
  write("with \"quotes\" and\nline", "1");
  ASSERT_EQ(world.run({"rsync"}).code, 0);
  fs::remove(world.project() / "gone.py");
  write("x.tmp", "1");
  EXPECT_THAT(world.run({"rsync", "--delete"}).err, HasSubstr("gone.py"));
  EXPECT_FALSE(fs::exists(world.there("a") / "gone.py"));
  EXPECT_FALSE(fs::exists(world.there("a") / "x.tmp"));
  EXPECT_THAT(sent(), AllOf(HasSubstr("train.py"), HasSubstr("gone.py"), Not(HasSubstr("client-of-ours")),
                            Not(HasSubstr("secret-name")), Not(HasSubstr("*.tmp"))));
}

TEST_F(HostileFiles, NoDigestOfAFileOutsideTheProjectIsSent) {
  write("requirements.txt", "-r more.txt\n");
  link(world.home() / ".netrc", "more.txt");
  EXPECT_THAT(world.run({"update-packages"}), Refused("more.txt"));
  // A file outside the project is looked up on the server.
  fs::remove(world.project() / "more.txt");
  write("requirements.txt", "-r ../home/.netrc\n-c " + (world.home() / ".netrc").string() + "\n");
  config::Config config;
  config.project = world.project();
  EXPECT_THAT(wire::to_json_text(servers::packages_request(config)), Not(HasSubstr(sha256_hex(secret))));
  const std::string before = servers::package_sources(config).digest;
  write_file_atomic(world.home() / ".netrc", "other");
  EXPECT_EQ(servers::package_sources(config).digest, before);
}

TEST_F(HostileFiles, PatternsWithoutEffectAreNamedOnce) {
  write(".remote/exclude.txt",
        "*.tmp\n!keep\ndata/ # big\ndata/ \n./data/\n\"data/\"\ndata//\n[abc\n~bob/x\n$HOME/x\n"
        "*.pt // big\n");
  const CommandResult result = world.run({"rsync"});
  EXPECT_EQ(result.code, 0) << result;
  for (const char* words :
       {"exclude.txt:2: '!keep' matches no file", "exclude.txt:3: 'data/ # big'", "exclude.txt:4: 'data/ '",
        "exclude.txt:5: './data/'", "exclude.txt:6: '\"data/\"'",
        "exclude.txt:7: 'data//' matches no file: write a single '/'", "exclude.txt:8: '[abc'",
        "exclude.txt:9: '~bob/x'", "exclude.txt:10: '$HOME/x'", "exclude.txt:11: '*.pt // big'"}) {
    const std::size_t at = result.err.find(words);
    EXPECT_NE(at, std::string::npos) << words << " in " << result.err;
    EXPECT_EQ(result.err.find(words, at + 1), std::string::npos) << words;
  }
  EXPECT_THAT(result.err, Not(HasSubstr("*.tmp")));
}

TEST_F(HostileFiles, AByteOrderMarkDoesNotHideTheFirstPattern) {
  write(".remote/exclude.txt", "\xEF\xBB\xBF/data/\r\n*.tmp\r\n");
  write("data/big", "1");
  write("x.tmp", "1");
  EXPECT_EQ(world.run({"rsync"}).code, 0);
  EXPECT_TRUE(fs::exists(world.there("a") / "train.py"));
  EXPECT_FALSE(fs::exists(world.there("a") / "data"));
  EXPECT_FALSE(fs::exists(world.there("a") / "x.tmp"));
  write(".remote/exclude.txt", std::string("\xFF\xFE*\0.\0t\0", 8));
  EXPECT_THAT(world.run({"rsync"}), Refused("UTF-16"));
}

TEST_F(HostileFiles, WhatIsThereIsWritableForItsOwnerAlone) {
  write("lib/x.py", "1");
  for (const char* name : {"lib/x.py", "lib", "train.py", "."}) {
    ASSERT_EQ(::chmod((world.project() / name).c_str(), 06777), 0) << name;
  }
  ASSERT_EQ(world.run({"trust", "--folder", "--yes"}).code, 0);
  const auto expect_closed = [&] {
    for (const char* name : {"lib/x.py", "lib", "train.py", "."}) {
      struct stat info {};
      ASSERT_EQ(::stat((world.there("a") / name).c_str(), &info), 0) << name;
      EXPECT_EQ(info.st_mode & 07777, 0755U) << name;
    }
  };
  const mode_t before = ::umask(0);
  EXPECT_EQ(world.run({"rsync"}).code, 0);
  expect_closed();
  // Files sent by an older version are closed, too.
  for (const char* name : {"lib/x.py", "lib", "train.py", "."}) {
    ASSERT_EQ(::chmod((world.there("a") / name).c_str(), 0777), 0) << name;
  }
  EXPECT_EQ(world.run({"rsync"}).code, 0);
  ::umask(before);
  expect_closed();
}

TEST_F(HostileFiles, ALinkInPlaceOfARecordOrAnOutputIsNotRead) {
  ASSERT_EQ(world.run({"launch", "--server", "a", "--follow", "--", "sh", "-c", "echo fine"}).code, 0);
  ASSERT_EQ(world.run({"report"}).code, 0);
  const Job job = world.stored(1);
  link(world.home() / ".netrc", ".remote/jobs/" + job.id.text() + "/job.out");
  const CommandResult report = world.run({"report", "--offline", "--json"});
  EXPECT_THAT(report.out + report.err, AllOf(HasSubstr("leads out of"), Not(HasSubstr("hunter2"))));
  const std::string record = ".remote/jobs/" + job.id.text() + "/job.json";
  fs::rename(world.project() / record, world.home() / "job.json");
  link(world.home() / "job.json", record);
  fs::remove(world.project() / ".remote/jobs/index");
  EXPECT_THAT(world.run({"job-list"}), Ends(0, Not(HasSubstr("echo fine")), HasSubstr("leads out of")));
}

TEST_F(HostileFiles, SettingsOutsideTheProjectAreAskedAbout) {
  fs::rename(world.project() / ".remote/configs.yaml", world.home() / "configs.yaml");
  link(world.home() / "configs.yaml", ".remote/configs.yaml");
  EXPECT_THAT(world.run({"rsync"}), Refused("it is a link to " + (world.home() / "configs.yaml").string()));
  ASSERT_EQ(world.run({"trust", "--folder", "--yes"}).code, 0);
  EXPECT_EQ(world.run({"rsync"}).code, 0);
}

TEST_F(HostileFiles, AFileThatTheUserNamesInAProjectIsNoLinkOutOfIt) {
  link(world.home() / ".netrc", "points.csv");
  const std::string file = (world.project() / "points.csv").string();
  EXPECT_THAT(world.run({"sweep", "--file", file, "--dry-run", "--cmd", "echo {machine}"}),
              Refused("leads out of"));
  EXPECT_THAT(world.run({"launch", "--hostfile", file, "--dry-run", "--", "true"}), Refused("leads out of"));
}

TEST_F(HostileFiles, NoFolderIsALinkIntoGit) {
  make_folders(world.project() / "sub/.git/hooks");
  for (const char* folder : {".remote/jobs", ".remote/logs", ".remote/sent"}) {
    link(world.project() / "sub/.git/hooks", folder);
    EXPECT_THAT(world.run({"rsync"}), Refused("which is git's own")) << folder;
    fs::remove(world.project() / folder);
  }
  EXPECT_TRUE(fs::is_empty(world.project() / "sub/.git/hooks"));
}

TEST_F(HostileFiles, EveryTextFileMayHaveAMark) {
  const std::string mark = "\xEF\xBB\xBF";
  write(".remote/configs.yaml", mark + read_file(world.project() / ".remote/configs.yaml"));
  write("hosts", mark + "b slots=1\n");
  const CommandResult plan =
      world.run({"launch", "--dry-run", "--hostfile", (world.project() / "hosts").string(), "--", "true"});
  EXPECT_EQ(plan.code, 0) << plan;
  write("hosts", std::string("\xFF\xFE"
                             "b\0\n\0",
                             6));
  EXPECT_THAT(
      world.run({"launch", "--dry-run", "--hostfile", (world.project() / "hosts").string(), "--", "true"}),
      Refused("UTF-16"));
  write(".remote/configs.yaml", std::string("\xFF\xFEn\0a\0", 6));
  EXPECT_THAT(world.run({"rsync"}), Refused("UTF-16"));
}

// The server's rsync adds its own message, which the local rsync prints.
class HostileRsync : public HostileFiles {
 protected:
  void inject(const std::string& text) {
    world.servers().add_program("rsync", "exec python3 -c " +
                                             shell_quote(R"(import os, struct, subprocess, sys
p = subprocess.Popen(['/usr/bin/rsync'] + sys.argv[2:], stdout=subprocess.PIPE)
text, done = sys.argv[1].encode(), False
def is_framed(data):
  at = 0
  while at + 4 <= len(data):
    head = struct.unpack('<I', data[at:at + 4])[0]
    if not 7 <= head >> 24 < 117 or (at == 0 and head >> 24 != 7): return False
    at += 4 + (head & 0xffffff)
  return len(data) > 8 and at == len(data)
while True:
  data = os.read(p.stdout.fileno(), 65536)
  if not data: break
  for at in range(0 if done else len(data)):
    if is_framed(data[at:]):
      data = data[:at] + struct.pack('<I', 9 << 24 | len(text)) + text + data[at:]
      done = True
      break
  os.write(1, data)
open(os.environ['HOME'] + '/injected', 'a').write(str(done))
sys.exit(p.wait()))") + " " + shell_quote(text) +
                                             " \"$@\"\n");
  }
  bool injected() {
    return read_file_if_there(world.servers().home("a") / "injected").value_or("").ends_with("True");
  }
};

TEST_F(HostileRsync, AMessageIsNotTakenForOneOfOurs) {
  std::vector<Job> job = {old_record("wrote files")};
  world.store().add(job);
  make_folders(world.there("a") / "results");
  write_file_atomic(world.there("a") / "results/good", "good\n");
  const fs::path to = world.home() / "pulled here";
  make_folders(to);
  make_folders(world.home() / "precious");
  fs::create_symlink("nowhere", world.home() / "precious/link");
  fs::create_symlink("nowhere", world.home() / "link");
  fs::create_symlink(world.home() / "precious", to / "way");
  fs::create_symlink(world.home() / "precious", world.project() / "mine");
  const std::vector<std::string> names = {"../link",
                                          "../precious/link",
                                          "way/link",
                                          "way",
                                          "../my project/mine",
                                          "train.py",
                                          (world.home() / "link").string()};
  std::string text;
  for (const std::string& name : names) {
    text += "@item cL+++++++++ 0 " + name + "\ncL+++++++++ 0 " + name + "\n";
  }
  inject(text);
  const CommandResult result = world.run({"job-pull", "--job", "1", "--to", to.string(), "results/"});
  EXPECT_EQ(result.code, 0) << result;
  EXPECT_TRUE(injected());
  EXPECT_EQ(read_file(to / "good"), "good\n");
  for (const fs::path& link :
       {world.home() / "precious/link", world.home() / "link", to / "way", world.project() / "mine"}) {
    EXPECT_TRUE(fs::is_symlink(link)) << link;
  }
  EXPECT_THAT(result.err, Not(HasSubstr("not brought")));
}

TEST_F(HostileRsync, NoFileIsHeldBackFromTheOtherServers) {
  std::vector<Job> job = {old_record("wrote files")};
  world.store().add(job);
  make_folders(world.there("a") / "results");
  write_file_atomic(world.there("a") / "results/good", "good\n");
  inject("@item >f+++++++++ 9 train.py\n");
  EXPECT_EQ(world.run({"job-pull", "--job", "1", "--to", world.project().string(), "results/"}).code, 0);
  EXPECT_TRUE(injected());
  EXPECT_EQ(world.run({"rsync", "--server", "b"}).code, 0);
  EXPECT_EQ(read_file_if_there(world.there("b") / "train.py"), "print(1)\n");
}

}  // namespace
}  // namespace remote::test
