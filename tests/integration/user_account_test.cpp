// Accounts whose startup files export, print, redirect, change directory or exit: remote's own actions do not
// depend on them, and the user's command sees the account's own environment. Uses real sshd; ForceCommand
// reads the startup file as a login shell would.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.hpp"
#include "base/shell_quote.hpp"
#include "support/program_on_terminal.hpp"
#include "support/ssh_job_world.hpp"

namespace remote::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

class Account : public testing::Test {
 protected:
  fs::path start_file() const { return folder_.path() / "start"; }
  void start_with(const std::string& text) const { write_file_atomic(start_file(), text + "\n"); }
  fs::path here(const std::string& name) const { return world_.client.folder() / name; }
  fs::path there(const std::string& name) const { return world_.home() / "proj" / name; }
  void TearDown() override { start_with(""); }  // so that the jobs there can be stopped
  ExecResult run(const std::string& command) const {
    return world_.remote({"run", "--server", "one", "--cmd", command});
  }
  // Commands that need a server fail with this text, with and without a terminal.
  void expect_everywhere(const testing::Matcher<std::string>& text) const {
    for (const std::vector<std::string>& words :
         std::vector<std::vector<std::string>>{{"run", "--server", "one", "--cmd", "true"},
                                               {"run", "--server", "one", "--tty", "--cmd", "true"},
                                               {"rsync"},
                                               {"check", "--server", "one"}}) {
      const ExecResult result = world_.remote(words);
      EXPECT_EQ(result.status, ExitStatus::exited(1)) << words[0];
      EXPECT_THAT(result.out + result.err, text) << words[0];
    }
    const fs::path home = world_.client.folder();
    ProgramOnTerminal shell({"--project", home.string(), "shell", "one"}, home, 24, 300);
    EXPECT_EQ(shell.end(), 1);
    EXPECT_THAT(shell.screen(), text);
  }

 private:
  TempFolder folder_;

 protected:
  SshJobWorld world_{
      {"ForceCommand . " + shell_quote(start_file().string()) + "; exec sh -c \"$SSH_ORIGINAL_COMMAND\""}};
};

TEST_F(Account, WhatItExportsChangesNothing) {
  write_file_atomic(here("bash_env"), "from_bash_env=yes\n");
  start_with(fmt::format(
      "export TIME_STYLE=full-iso TMOUT=1 QUOTING_STYLE=c BLOCK_SIZE=1M LS_BLOCK_SIZE=1M BLOCKSIZE=1M "
      "CDPATH=/tmp "
      "GREP_OPTIONS=--color=always GREP_COLOR='1;32' TAR_OPTIONS=--garbage GZIP=--garbage "
      "LC_ALL=de_DE.UTF-8 TMPDIR=/gone PYTHONINSPECT=1 PYTHONVERBOSE=1 PYTHONWARNINGS=error ENV=/nowhere "
      "RSYNC_ICONV=garbage RSYNC_CHECKSUM_LIST=bad RSYNC_MAX_ALLOC=1 BASH_ENV={}\numask 0\ncd /tmp\necho "
      "welcome\necho welcome >&2",
      shell_quote(here("bash_env").string())));
  write_file_atomic(here("train.py"), "print(1)\n");
  write_file_atomic(here("requirements.txt"), "# nothing\n");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"prepare"}, {"update-packages"}, {"rsync"}}) {
    const ExecResult result = world_.remote(words);
    EXPECT_TRUE(result.status.success()) << words[0] << ": " << result.out << result.err;
  }
  EXPECT_EQ(read_file_if_there(there("train.py")), "print(1)\n");
  EXPECT_FALSE(fs::exists("/tmp/proj"));
  EXPECT_EQ(fs::status(there("")).permissions() & fs::perms(0022), fs::perms::none);
  const std::string command =
      "sleep 2; echo \"$TMOUT $TIME_STYLE $TAR_OPTIONS $CDPATH $from_bash_env $(umask)\"";
  const std::string expected = "1 full-iso --garbage /tmp yes 0000\n";
  const ExecResult said = run(command + "; env | grep ^REMOTE_HID");
  EXPECT_EQ(said.out, expected) << said.err;
  const ExecResult job = world_.remote({"job-run", "--server", "one", "--cmd", command});
  ASSERT_TRUE(job.status.success()) << job.err;
  EXPECT_TRUE(world_.remote({"job-wait", "1"}).status.success());
  EXPECT_EQ(world_.remote({"--quiet", "job-tail", "--job", "1", "--no-follow"}).out, expected);
  write_file_atomic(there("result"), "42");
  EXPECT_TRUE(world_.remote({"job-pull", "--job", "1", "result"}).status.success());
  const ExecResult other = world_.remote({"job-run", "--server", "one", "--cmd", "exec sleep 1000"});
  ASSERT_TRUE(other.status.success()) << other.err;
  EXPECT_TRUE(world_.remote({"job-kill", "--job", "2", "--yes"}).status.success());
}

// Also if the login shell passes every command to the server's /bin/sh.
TEST_F(Account, APathWithoutTheUsualFolders) {
  start_with("PATH=/nowhere; export PATH; exec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"");
  write_file_atomic(here("train.py"), "print(1)\n");
  const ExecResult sent = world_.remote({"rsync"});
  EXPECT_TRUE(sent.status.success()) << sent.err;
  EXPECT_EQ(run("echo here").out, "here\n");
}

TEST_F(Account, AUmaskThatShutsItsOwnerOut) {
  start_with("umask 0777");
  make_folders(here("sub"));
  write_file_atomic(here("sub/train.py"), "print(1)\n");
  const ExecResult sent = world_.remote({"rsync"});
  EXPECT_TRUE(sent.status.success()) << sent.err;
  EXPECT_EQ(fs::status(there("sub")).permissions() & fs::perms::owner_all, fs::perms::owner_all);
  EXPECT_EQ(run("umask").out, "0777\n");
}

// sshd sets HOME; only a startup file can unset it.
TEST_F(Account, WithoutHomeItIsAskedFor) {
  const fs::path tools = world_.client.folder() / "tools";
  make_folders(tools);
  write_file_atomic(tools / "getent",
                    "#!/bin/sh\necho \"x:x:$2:0:a:" + world_.home().string() + ":/bin/sh\"\n");
  fs::permissions(tools / "getent", fs::perms::owner_all);
  start_with("PATH=" + shell_quote(tools.string()) + ":$PATH; unset HOME");
  write_file_atomic(here("train.py"), "print(1)\n");
  const ExecResult sent = world_.remote({"rsync"});
  EXPECT_TRUE(sent.status.success()) << sent.err;
  EXPECT_EQ(read_file_if_there(there("train.py")), "print(1)\n");
  EXPECT_EQ(run("echo $HOME").out, world_.home().string() + "\n");
  write_file_atomic(tools / "getent", "#!/bin/sh\nexit 2\n");
  fs::permissions(tools / "getent", fs::perms::owner_all);
  EXPECT_THAT(run("true").err, AllOf(HasSubstr("HOME is not set"), Not(HasSubstr("free some space"))));
}

TEST_F(Account, AShellThatEndsIsQuoted) {
  start_with("echo 'closed for maintenance'; exit 3");
  for (const ExecResult& result :
       {run("true"), world_.remote({"job-run", "--server", "one", "--cmd", "true"})}) {
    EXPECT_THAT(result.err, AllOf(HasSubstr("nothing was run on the server"), HasSubstr("exit 3"),
                                  HasSubstr("it printed: closed for maintenance")));
  }
}

TEST_F(Account, AGatewayThatNeedsATerminalIsNamed) {
  const auto matches =
      AllOf(HasSubstr("this gateway needs a PTY"), HasSubstr("the machine's own address and port"),
            Not(HasSubstr("\\n")), Not(HasSubstr(".bashrc")), Not(HasSubstr("shell printed nothing")));
  for (const char* where : {"", " >&2"}) {
    start_with("[ -t 0 ] || { echo 'Welcome.'; echo 'this gateway needs a PTY'" + std::string(where) +
               "; exit 1; }; exec sh");
    expect_everywhere(matches);
  }
}

// As on rented machines: every login attaches to a tmux session, and leaving it ends the login.
TEST_F(Account, AStartFileThatOpensTmuxIsNamed) {
  start_with(
      "for command in attach new; do echo 'open terminal failed: not a terminal' >&2; false; done; exit");
  expect_everywhere(AllOf(HasSubstr("open terminal failed: not a terminal"), HasSubstr("~/.bashrc"),
                          Not(HasSubstr("\\n")), Not(HasSubstr("shell printed nothing"))));
}

TEST_F(Account, WithoutALoginShell) {
  start_with("echo 'This account is currently not available.'; exit 1");
  for (const ExecResult& result : {run("true"), world_.remote({"rsync"})}) {
    EXPECT_THAT(result.err, AllOf(HasSubstr("it accepts no commands, and prints"), HasSubstr("chsh"),
                                  Not(HasSubstr(".bashrc"))));
  }
}

// Like cloud images, file-transfer accounts, and accounts with an expired password.
TEST_F(Account, WhatTheServerSaysInPlaceOfACommandHasItsRemedy) {
  const std::vector<std::pair<std::string, std::string>> answers = {
      {"Please login as the user 'ubuntu' rather than the user 'root'.", "`username` of the server"},
      {"This service allows sftp connections only.", "log in as another user"},
      {"Password change required but no TTY available.", "change the password"},
      {"Interactive login required.", "the machine's own address"}};
  for (const auto& [text, hint] : answers) {
    start_with("echo \"" + text + "\"; exit 1");
    EXPECT_THAT(run("true").err, AllOf(HasSubstr(hint), Not(HasSubstr(".bashrc")))) << text;
  }
}

TEST_F(Account, OutputThatGoesElsewhereIsNotCalledACommandThatDidNotRun) {
  start_with("");
  make_folders(there(""));
  const ExecResult first = run("true");  // otherwise the server would have to request the program
  ASSERT_TRUE(first.status.success()) << first.err;
  start_with("exec >/dev/null 2>&1");
  const ExecResult result = run("echo >ran");
  EXPECT_THAT(result.err, AllOf(HasSubstr("exec >FILE"), Not(HasSubstr("nothing was run"))));
  EXPECT_THAT(run("echo >ran; exit 3").err, AllOf(HasSubstr("no answer"), Not(HasSubstr("nothing was run"))));
  start_with("exec >/dev/null");
  EXPECT_THAT(run("exit 3").err, AllOf(HasSubstr("no answer"), HasSubstr("exec >FILE")));
}

TEST_F(Account, AShellThatAnotherReplacesIsQuoted) {
  start_with("echo 'I am another shell'; exec cat >/dev/null");
  EXPECT_THAT(run("true").err, AllOf(HasSubstr("no answer"), HasSubstr("it printed: I am another shell")));
}

// As a ForceCommand that records sessions may do. It changes bytes.
TEST_F(Account, ATerminalInBetween) {
  make_folders(there(""));
  for (const char* state : {"without the agent", "with the agent"}) {
    start_with("exec script -qec \"$SSH_ORIGINAL_COMMAND\" /dev/null");
    const ExecResult result = run("echo here; echo >ran; exit 4");
    EXPECT_EQ(result.status, ExitStatus::exited(1)) << state;
    EXPECT_THAT(result.err, AllOf(HasSubstr("error: one: cannot start the agent"), HasSubstr("on a terminal"),
                                  Not(HasSubstr("nothing was run"))))
        << state;
    EXPECT_FALSE(fs::exists(there("ran"))) << state << ": the agent did not start, but the command ran";
    start_with("");
    EXPECT_EQ(run("exit 4").status, ExitStatus::exited(4)) << state;
  }
}

}  // namespace
}  // namespace remote::test
