#include "agent/authorize/authorize.hpp"

#include <csignal>
#include <string>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/fake_host.hpp"
#include "agent/host/descriptor.hpp"
#include "agent/host/files.hpp"

namespace remote::agent {
namespace {

using ::testing::HasSubstr;
using wire::KeyState;

class AgentAuthorize : public ::testing::Test {
 protected:
  AgentAuthorize() { fake.put_program(fake.programs() / "restorecon", "echo \"$@\" >>\"$HOME/labels\""); }

  wire::AuthorizeReply authorize() const { return authorize_key(fake.host, request); }
  std::string fail() const {
    const wire::AuthorizeReply reply = authorize();
    EXPECT_EQ(reply.state, KeyState::failed);
    return reply.problem;
  }
  // Runs it with this content of authorized_keys; returns the new content.
  std::string run(const std::string& before) {
    fake.put(file(), before);
    fs::permissions(file(), fs::perms(0666));
    reply_ = authorize();
    EXPECT_EQ(reply_.problem, "");
    EXPECT_EQ(fs::status(file()).permissions(), fs::perms(0600));
    EXPECT_EQ(fs::status(folder()).permissions(), fs::perms(0700));
    return read();
  }
  std::string read() const { return read_file(file()).value_or("missing"); }
  fs::path folder() const { return fake.home() / ".ssh"; }
  fs::path file() const { return folder() / "authorized_keys"; }

  test::FakeHost fake;
  const std::string blob = "AAAAC3NzaC1lZDI1NTE5AAAAIBgE0p0Q9n9mR8yq6b3zHnYH0C9JwXc0cGx4nR2vQqgk";
  const std::string key = "ssh-ed25519 " + blob;
  const std::string line = key + " ann\n";
  wire::AuthorizeRequest request{"ssh-ed25519", blob, "ann"};
  wire::AuthorizeReply reply_;
};

TEST_F(AgentAuthorize, AddsTheKeyOnce) {
  EXPECT_EQ(run(""), line);
  EXPECT_EQ(reply_.state, KeyState::added);
  EXPECT_EQ(run(line), line);
  EXPECT_EQ(reply_.state, KeyState::present);
  EXPECT_EQ(run("ssh-rsa AAAA other"), "ssh-rsa AAAA other\n" + line);  // no newline after the last line
  EXPECT_EQ(run("# " + line), "# " + line + line);
  const std::string command = "command=\"echo " + key + " \" ssh-rsa AAAA other\n";
  EXPECT_EQ(run(command), command + line);
  EXPECT_EQ(run(key + "AA ann\n"), key + "AA ann\n" + line);
  request.comment = "";
  EXPECT_EQ(run(""), key + "\n");
}

TEST_F(AgentAuthorize, FindsTheKeyUnderAnotherCommentOrOptions) {
  for (const std::string& there : {key, key + " other\r\n", " ssh-ed25519\t" + blob + "\tx\n"}) {
    EXPECT_EQ(run(there), there);
    EXPECT_EQ(reply_.state, KeyState::present) << there;
  }
  const std::string limited = "from=\"10.* x\\\"y\",no-pty " + key + "\n";
  EXPECT_EQ(run(limited), limited);
  EXPECT_EQ(reply_.state, KeyState::restricted);
  EXPECT_EQ(run(limited + key + "\n"), limited + key + "\n");
  EXPECT_EQ(reply_.state, KeyState::present);
  EXPECT_EQ(run(key + "\n" + limited), key + "\n" + limited);
  EXPECT_EQ(reply_.state, KeyState::present);
}

TEST_F(AgentAuthorize, MakesTheFolderAndRestoresTheLabelsOfNewFiles) {
  EXPECT_EQ(authorize().state, KeyState::added);
  EXPECT_EQ(fs::status(folder()).permissions(), fs::perms(0700));
  EXPECT_EQ(fs::status(file()).permissions(), fs::perms(0600));
  EXPECT_EQ(read(), line);
  EXPECT_EQ(authorize().state, KeyState::present);
  EXPECT_EQ(read_file(fake.home() / "labels").value_or(""), "-R " + folder().string() + "\n");
}

TEST_F(AgentAuthorize, ReportsAHomeDirectoryThatOthersCanWriteTo) {
  EXPECT_EQ(authorize().open_folder, "");
  for (const unsigned mode : {0720U, 0702U}) {
    fs::permissions(fake.home(), fs::perms(mode));
    EXPECT_EQ(authorize().open_folder, fake.home().string());
  }
}

TEST_F(AgentAuthorize, WritesOnlyToAFile) {
  fs::create_directories(file());
  EXPECT_EQ(fail(), file().string() + " is not a file");
  fs::remove(file());
  ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
  EXPECT_EQ(fail(), file().string() + " is not a file");
  fs::remove_all(folder());
  fake.put(folder(), "");
  EXPECT_THAT(fail(), HasSubstr("cannot make " + folder().string() + ": Not a directory"));
}

TEST_F(AgentAuthorize, NoticesThatItCannotWrite) {
  fake.put(file(), "");
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit none{10, before.rlim_max};
  std::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &none);
  const wire::AuthorizeReply reply = authorize();
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(reply.problem, "cannot write " + file().string() + ": is the disk full?");
}

TEST_F(AgentAuthorize, RefusesAHugeFile) {
  fake.put(file(), std::string((std::size_t{16} << 20U) + 1, '\n'));
  EXPECT_THAT(fail(), HasSubstr("has more than 16 MB"));
  EXPECT_EQ(fs::file_size(file()), (std::size_t{16} << 20U) + 1);
}

TEST_F(AgentAuthorize, FollowsLinksOfTheUser) {
  fake.put(fake.home() / "dotfiles/ssh/keys", "");
  fs::create_symlink("dotfiles/ssh", folder());
  fs::create_symlink("keys", file());
  EXPECT_EQ(authorize().state, KeyState::added);
  EXPECT_EQ(read_file(fake.home() / "dotfiles/ssh/keys"), line);
}

TEST_F(AgentAuthorize, DoesNotFollowLinksOfOtherUsers) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can make a link of another user";
  }
  fake.put(fake.home() / "project/authorized_keys", "");
  fs::permissions(fake.home() / "project", fs::perms(0755));
  fs::create_symlink("project", folder());
  ASSERT_EQ(::lchown(folder().c_str(), 12345, 12345), 0);
  EXPECT_EQ(fail(), folder().string() + " is another user's link");
  EXPECT_EQ(fs::status(fake.home() / "project").permissions(), fs::perms(0755));
  fs::remove(folder());
  fs::create_directories(folder());
  fs::create_symlink("../project/authorized_keys", file());
  ASSERT_EQ(::lchown(file().c_str(), 12345, 12345), 0);
  EXPECT_EQ(fail(), file().string() + " is another user's link");
  EXPECT_EQ(read_file(fake.home() / "project/authorized_keys"), "");
}

TEST_F(AgentAuthorize, WaitsForAnotherClient) {
  fake.put(file(), "");
  Descriptor other(::open(file().c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
  std::thread writer([&] {
    ::usleep(200'000);  // time for the other one to start waiting; the test passes in any order
    EXPECT_EQ(::write(other.get(), line.data(), line.size()), static_cast<ssize_t>(line.size()));
    other.reset();
  });
  EXPECT_EQ(authorize().state, KeyState::present);
  writer.join();
  EXPECT_EQ(read(), line);
}

}  // namespace
}  // namespace remote::agent
