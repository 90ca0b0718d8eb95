// Sends the project to real sshd processes with real rsync, over a libssh connection.

#include "servers/sync.hpp"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <remote/error.hpp>
#include <sys/stat.h>

#include "base/files.hpp"
#include "base/strings.hpp"
#include "ssh/connector.hpp"
#include "support/paths.hpp"
#include "support/prepare_world.hpp"
#include "support/test_sandbox.hpp"
#include "support/test_sshd.hpp"
#include "support/waiting.hpp"
#include "support/wrapped_connection.hpp"

namespace remote::servers {
namespace {

void set_age(const fs::path& file, std::chrono::seconds age) {
  fs::last_write_time(file, fs::file_time_type::clock::now() - age);
}

class SyncTest : public SandboxTest {
 protected:
  SyncTest() : SandboxTest(1) {
    connection_ = connect();
    options_.pipe_program = test::remote_binary;
  }

  SyncReport sync() { return sync_to(*connection_, config_, config_.servers[0], options_, Cancel()); }

  const SigpipeGuard guard_;  // as in Project, which all of this needs
  std::unique_ptr<ssh::Connection> connection_;
  SyncOptions options_;
};

TEST_F(SyncTest, SendsFilesOnceAndNothingTheSecondTime) {
  write(here("train.py"), "print(1)\n");
  write(here("src/model.py"), "x = 1\n");
  const SyncReport first = sync();
  EXPECT_THAT(first.changed, UnorderedElementsAre("train.py", "src/model.py"));
  EXPECT_EQ(first.bytes, 15U);
  EXPECT_EQ(read_file(there("src/model.py")), "x = 1\n");
  EXPECT_THAT(sync().changed, IsEmpty());
  write(here("train.py"), "print(22)\n");
  EXPECT_THAT(sync().changed, ElementsAre("train.py"));
}

TEST_F(SyncTest, NamesWhatIsNewerOnTheServerAndLeavesIt) {
  write(here("a is newer"), "old");
  write(here("b"), "b");
  set_age(here("a is newer"), std::chrono::hours(1));
  sync();
  write(there("a is newer"), "changed on the server");
  const SyncReport report = sync();
  EXPECT_THAT(report.newer, ElementsAre("a is newer"));
  EXPECT_THAT(report.changed, IsEmpty());
  EXPECT_EQ(read_file(there("a is newer")), "changed on the server");
}

TEST_F(SyncTest, OtherUsersOfTheServerCannotChangeTheCode) {
  write(here("run.sh"), "true\n");
  fs::permissions(here("run.sh"), fs::perms::all | fs::perms::set_uid);
  fs::create_directory(here("src"));
  fs::permissions(here("src"), fs::perms::all);
  sync();
  const fs::perms closed = fs::perms(0755);
  EXPECT_EQ(fs::status(there("run.sh")).permissions(), closed);
  EXPECT_EQ(fs::status(there("src")).permissions(), closed);
}

TEST_F(SyncTest, OddNamesArriveExactly) {
  const std::vector<std::string> names = {"with space", "quote'\"s", "$HOME `x` \\back", "line\nbreak",
                                          "-dash",      "ünï",       "star*[a]?",        "@item cd 1 x"};
  for (const std::string& name : names) {
    write(here("dir " + name + "/" + name), name);
  }
  for (const std::string& folder : names) {
    config_.servers[0].remote_path = "~/" + folder;
    fs::create_directories(sandbox_.home(0) / folder);
    sync();
    for (const std::string& name : names) {
      EXPECT_EQ(read_file_if_there(sandbox_.home(0) / folder / ("dir " + name) / name), name)
          << folder << "/" << name;
    }
  }
}

TEST_F(SyncTest, ExcludesByTheUsersFileAndKeepsSecretsHere) {
  for (const char* name :
       {".remote/key", ".jobs/x", ".remote-scripts/x", "data/big", "sub/data/small", "a.tmp", "a"}) {
    write(here(name), name);
  }
  write(here(".remote/exclude.txt"), "*.tmp\n/data/\n+ .remote\n");
  EXPECT_THAT(sync().changed, UnorderedElementsAre("a", "sub/data/small"));
}

TEST_F(SyncTest, OnlyTheNamesThatMayBeRemovedAreWhateverThePatternsSay) {
  for (const char* patterns : {"*.ckpt\n+ *.py\n", "!\n/.remote/\n"}) {
    write(here(".remote/exclude.txt"), patterns);
    write(here("stays.py"), "1");
    for (const char* name : {"gone.py", "job.py", "model.ckpt", ".jobs/1/job.py",
                             ".remote-scripts/bin/python", "old [name]/with space", "old [name]/job"}) {
      write(there(name), "1");
    }
    options_.remove = {};
    EXPECT_THAT(sync().removed, IsEmpty());
    options_.remove = {"gone.py", "stays.py", "never there", "old [name]/", "old [name]/with space"};
    EXPECT_THAT(sync().removed, UnorderedElementsAre("gone.py", "old [name]/with space"));
    EXPECT_FALSE(fs::exists(there("gone.py")));
    EXPECT_FALSE(fs::exists(there("old [name]/with space")));
    for (const char* name : {"stays.py", "job.py", "model.ckpt", ".jobs/1/job.py",
                             ".remote-scripts/bin/python", "old [name]/job"}) {
      EXPECT_TRUE(fs::exists(there(name))) << name << " with " << patterns;
    }
  }
}

TEST_F(SyncTest, DryRunChangesNothing) {
  write(here("a"), "1");
  options_.dry_run = true;
  EXPECT_THAT(sync().changed, ElementsAre("a"));
  EXPECT_FALSE(fs::exists(there("a")));
}

TEST_F(SyncTest, FollowsSymlinksAndWarnsOfOnesToNowhere) {
  const TempFolder outside;
  write(outside.path() / "data", "followed");
  fs::create_symlink(outside.path() / "data", here("link"));
  fs::create_symlink("nowhere", here(".#lock"));
  fs::create_symlink("circle", here("circle"));
  const SyncReport report = sync();
  EXPECT_EQ(read_file(there("link")), "followed");
  EXPECT_FALSE(fs::is_symlink(there("link")));
  EXPECT_THAT(report.warnings, UnorderedElementsAre(HasSubstr(".#lock"), HasSubstr("circle")));
}

TEST_F(SyncTest, AFileThatCannotBeSentIsAnErrorWhateverItsName) {
  for (const std::string name : {"vanished", "file has vanished: x", "it has no referent"}) {
    write(here(name), "new");
    write(there(name + "/in the way"), "");
    EXPECT_THROW(sync(), Error) << name;
    fs::remove_all(here(name));
  }
}

TEST_F(SyncTest, VariablesForTheUsersOwnRsyncChangeNothing) {
  const std::pair<const char*, const char*> variables[] = {{"RSYNC_ICONV", "utf8,latin1"},
                                                           {"RSYNC_RSH", "false"},
                                                           {"RSYNC_PARTIAL_DIR", "/dev/null/x"},
                                                           {"RSYNC_CHECKSUM_LIST", "bad"}};
  for (const auto& [name, value] : variables) {
    ::setenv(name, value, 1);
  }
  write(here("\u00fc\u20ac"), "1");
  EXPECT_NO_THROW(sync());
  for (const auto& [name, value] : variables) {
    ::unsetenv(name);
  }
  EXPECT_EQ(read_file_if_there(there("\u00fc\u20ac")), "1");
}

TEST_F(SyncTest, APathWithAnEmptyEntryHasTheCurrentFolder) {
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", (":" + path).c_str(), 1);
  write(here("a"), "1");
  EXPECT_NO_THROW(sync());
  ::setenv("PATH", path.c_str(), 1);
}

TEST_F(SyncTest, AnInterruptedTransferGoesOnWhereItWas) {
  std::string content(std::size_t{24} << 20U, '\0');
  std::uint32_t state = 1;
  for (char& c : content) {  // not compressible
    state = state * 1664525U + 1013904223U;
    c = static_cast<char>(state >> 24U);
  }
  write(here("big"), content);
  Cancel cancel;
  options_.on_progress = [&](const TransferProgress& progress) {
    if (progress.bytes > 0) {
      cancel.cancel();
    }
  };
  options_.bytes_per_second = 4000 * 1024;  // slow enough to be interrupted in the middle
  EXPECT_THROW(sync_to(*connection_, config_, config_.servers[0], options_, cancel), Interrupted);
  connection_ = connect();
  const fs::path partial = there(".rsync-partial/big");
  ASSERT_TRUE(test::eventually([&] { return fs::exists(partial) || fs::exists(there("big")); }));
  ASSERT_TRUE(fs::exists(partial)) << "the transfer was over before it was interrupted";
  EXPECT_GT(fs::file_size(partial), 0U);
  options_.bytes_per_second = 0;
  std::uint64_t sent = 0;
  options_.on_progress = [&](const TransferProgress& progress) { sent = progress.bytes; };
  sync();
  EXPECT_EQ(read_file(there("big")), content);
  EXPECT_FALSE(fs::exists(partial));
  EXPECT_GT(sent, 0U);
}

// The link breaks in the middle of a large file, because the server's sshd dies during the transfer.
TEST_F(SyncTest, AfterACutLinkOnlyTheRestOfALargeFileIsSent) {
  constexpr std::uint64_t size = 40'000'000;
  std::string content(size, '\0');
  std::uint32_t state = 1;
  for (char& c : content) {
    state = state * 1664525U + 1013904223U;
    c = static_cast<char>(state >> 24U);
  }
  write(here("big"), content);
  const auto cut = [this] {
    for (const pid_t pid : test::sshd_sessions(sandbox_.servers()[0].pid)) {
      ::kill(pid, SIGKILL);
    }
  };
  // rsync reports progress once a second: without a limit it may already be done.
  options_.bytes_per_second = 10'000 * 1024;
  bool is_cut = false;
  options_.on_progress = [&](const TransferProgress& progress) {
    if (progress.bytes > size / 2 && !is_cut) {
      is_cut = true;
      cut();
    }
  };
  EXPECT_THROW(sync(), Error);
  ASSERT_TRUE(is_cut) << "no progress was seen";
  const fs::path partial = there(".rsync-partial/big");
  ASSERT_TRUE(test::eventually([&] { return fs::exists(partial); }));
  const std::uint64_t kept = fs::file_size(partial);
  EXPECT_GT(kept, size / 4);
  connection_ = connect();
  options_.on_progress = {};
  options_.bytes_per_second = 0;
  test::WrappedConnection counted(*connection_);
  EXPECT_THAT(sync_to(counted, config_, config_.servers[0], options_, Cancel()).changed, ElementsAre("big"));
  EXPECT_LT(counted.sent(), size - kept + size / 20);
  EXPECT_TRUE(read_file(there("big")) == content);
  EXPECT_FALSE(fs::exists(partial));
}

TEST_F(SyncTest, DifferencesAreFoundByContent) {
  write(here("a"), "1");
  write(here("b"), "2");
  sync();
  EXPECT_THAT(differences(*connection_, config_, config_.servers[0], options_, Cancel()), IsEmpty());
  const auto time = fs::last_write_time(there("b"));
  write(there("b"), "3");
  fs::last_write_time(there("b"), time);  // same size, same time
  EXPECT_THAT(differences(*connection_, config_, config_.servers[0], options_, Cancel()), ElementsAre("b"));
  EXPECT_EQ(read_file(there("b")), "3");
}

TEST_F(SyncTest, BringsFilesBack) {
  write(there("runs 1/a"), "1");
  write(there("runs 1/deep/b"), "22");
  write(there("log"), "line 1\n");
  const TempFolder here_folder;
  PullOptions options;
  options.pipe_program = test::remote_binary;
  const auto pull = [&](const std::vector<std::string>& paths) {
    return sync_from(*connection_, paths, here_folder.path() / "in to", options, Cancel());
  };
  EXPECT_THAT(pull({"~/my_project/runs 1", "~/my_project/log"}).changed,
              UnorderedElementsAre("runs 1/a", "runs 1/deep/b", "log"));
  EXPECT_EQ(read_file(here_folder.path() / "in to/runs 1/deep/b"), "22");
  options.append = true;
  write(there("log"), "line 1\nline 2\n");
  pull({"~/my_project/log"});
  EXPECT_EQ(read_file(here_folder.path() / "in to/log"), "line 1\nline 2\n");
  EXPECT_THROW(pull({"~/my_project/no such"}), Error);
}

TEST_F(SyncTest, AProgramPathWithSpacesAndQuotesWorks) {
  const TempFolder folder("rsync \"tunnel' ");
  fs::copy_file(test::remote_binary, folder.path() / "re mote'");
  options_.pipe_program = folder.path() / "re mote'";
  write(here("a"), "1");
  EXPECT_THAT(sync().changed, ElementsAre("a"));
}

TEST_F(SyncTest, TheConnectionServesOtherCommandsAfterwards) {
  write(here("a"), "1");
  sync();
  ssh::ExecRequest request;
  request.command = "echo still here";
  EXPECT_EQ(connection_->exec(request).out, "still here\n");
  sync();
}

// For example, a process left behind by the login shell's startup file.
TEST_F(SyncTest, AProcessInTheBackgroundThatHoldsTheOutputDoesNotHoldTheTransfer) {
  write(here("a"), "1");
  const TempFolder folder;
  const std::string program = (folder.path() / "rsync").string();
  write(program, "#!/bin/sh\ncd " + folder.path().string() +
                     "\nsleep 60 </dev/null &\necho $! >pid\nmkfifo pipe\nexec 3<&0\n"
                     "tee input <&3 >pipe &\ncd\nexec rsync \"$@\" <" +
                     (folder.path() / "pipe").string() + " 3<&-\n");
  fs::permissions(program, fs::perms::owner_all);
  ssh::RsyncRequest request;
  request.args = {"--rsync-path=" + program, "-a", here("a").string(), ssh::remote_spec("~/a")};
  request.pipe_program = test::remote_binary;
  EXPECT_EQ(ssh::run_rsync(*connection_, request, Cancel()).status, ExitStatus::exited(0));
  EXPECT_EQ(read_file(sandbox_.home(0) / "a"), "1");
  const auto pid = parse_number<pid_t>(trim(read_file(folder.path() / "pid"))).value();
  EXPECT_EQ(::kill(pid, SIGKILL), 0) << "its end was waited for";
  // If the link goes silent, nothing else would end the server's rsync.
  EXPECT_THAT(read_file(folder.path() / "input"), HasSubstr("--timeout=600"));
}

TEST_F(SyncTest, AMissingSourceIsAnErrorThatNamesIt) {
  config_.project = here("no such folder");
  try {
    sync();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.reason(), HasSubstr("no such folder"));
    EXPECT_EQ(error.reason().find('\n'), std::string::npos) << "it is shown within a line";
  }
}

// A server whose rsync is a script.
class ScriptedRsync : public testing::Test {
 protected:
  // `pull`: from the server. Returns the error of the transfer.
  Error fail(const std::string& script, bool pull) {
    const fs::path rsync = bin_.path() / "rsync";
    write(rsync, "#!/bin/sh\n" + script);
    fs::permissions(rsync, fs::perms::owner_all);
    sandbox::SandboxOptions sandbox_options;
    sandbox_options.environment["PATH"] = bin_.path().string() + ":/usr/bin:/bin";
    test::TestSandbox sandbox(1, sandbox_options);
    const config::Config config = sandbox.config();
    ssh::ConnectorOptions connector_options;
    connector_options.user_config = "/dev/null";
    connector_options.masters = sandbox.masters();
    const auto connection =
        ssh::make_connector(config, connector_options)->connect(config.servers[0], Cancel());
    const auto before = std::signal(SIGPIPE, SIG_IGN);  // like the program
    Error error("the transfer", "it did not fail");
    try {
      if (pull) {
        write(sandbox.home(0) / "a", "1");
        PullOptions options;
        options.pipe_program = test::remote_binary;
        sync_from(*connection, {"a"}, bin_.path() / "here", options, Cancel());
      } else {
        SyncOptions options;
        options.pipe_program = test::remote_binary;
        sync_to(*connection, config, config.servers[0], options, Cancel());
      }
      ADD_FAILURE();
    } catch (const Error& thrown) {
      error = thrown;
    }
    std::signal(SIGPIPE, before);
    return error;
  }

 private:
  TempFolder bin_;
};

TEST_F(ScriptedRsync, AServerWithoutRsyncGetsTheFix) {
  // The output of a server's shell without rsync: this machine has one, even outside PATH.
  const Error error = fail("echo 'sh: 1: rsync: not found' >&2\nexit 127\n", false);
  EXPECT_EQ(error.reason(), "rsync was not found on the server");
  EXPECT_THAT(error.hint(), HasSubstr("apt-get install rsync"));
}

// The sender is on the server, the receiver on this machine.
TEST_F(ScriptedRsync, AFullDiskOfTheServerIsNotTakenForThatOfThisMachine) {
  const auto fail_with = [&](const std::string& line) {
    return fail("/usr/bin/rsync \"$@\"\necho '" + line + "' >&2\nexit 11\n", true);
  };
  const Error here = fail_with("rsync: [receiver] write failed on \"/x/a\": No space left on device (28)");
  EXPECT_EQ(here.cause(), Cause::disk_full) << here.message();
  EXPECT_THAT(here.hint(), HasSubstr("this machine"));
  const Error there = fail_with("rsync: [sender] mkstemp failed: No space left on device (28)");
  EXPECT_NE(there.cause(), Cause::disk_full) << there.message();
  EXPECT_THAT(there.reason(), HasSubstr("No space left"));
}

TEST_F(ScriptedRsync, ADiskOfTheServerThatTakesNoFileIsNamedWithWhatToDo) {
  const auto hint_for = [&](const std::string& line) {
    return fail("/usr/bin/rsync \"$@\"\necho '" + line + "' >&2\nexit 11\n", false).hint();
  };
  EXPECT_THAT(hint_for("rsync: [receiver] write failed on \"/x/a\": Disk quota exceeded (122)"),
              HasSubstr("`quota -s`"));
  EXPECT_THAT(hint_for("rsync: [receiver] write failed on \"/x/a\": No space left on device (28)"),
              HasSubstr("free some space on the server's disk"));
  EXPECT_THAT(
      hint_for("rsync: [generator] failed to set permissions on \"/x/.\": Operation not permitted (1)"),
      HasSubstr("choose another remote_path"));
}

}  // namespace
}  // namespace remote::servers
