// Connections over OpenSSH masters: which one is used, what ends with it, and its limitations.

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <remote/error.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.hpp"
#include "base/paths.hpp"
#include "base/subprocess.hpp"
#include "ssh/masters.hpp"
#include "ssh/session.hpp"
#include "support/test_sshd.hpp"
#include "support/waiting.hpp"

namespace remote {
namespace {

using namespace std::chrono_literals;
using test::TestClient;
using test::TestSshd;

class OverMaster : public testing::Test {
 protected:
  std::unique_ptr<ssh::Connection> connect(const TestSshd& sshd, config::ConnectBy by) const {
    config::Config config = client.config();
    config.connect_by = by;
    return ssh::make_connector(config, client.options())->connect(sshd.server(client.key()), Cancel());
  }
  static bool over_master(const ssh::Connection& connection) {
    return dynamic_cast<const ssh::MuxConnection*>(&connection) != nullptr;
  }
  static ExecResult run(ssh::Connection& connection, const std::string& command) {
    ssh::ExecRequest request;
    request.command = command;
    request.timeout = 30s;
    return connection.exec(request);
  }
  // Opens the user's own master, at the ControlPath of ~/.ssh/config; returns its pid.
  pid_t open_own(const TestSshd& sshd, const std::string& path) const {
    write_file_atomic(client.ssh_config(), "HashKnownHosts no\nControlPath " + path + "\n");
    SubprocessSpec spec;
    spec.argv = {"ssh",
                 "-F",
                 client.ssh_config().string(),
                 "-MNf",
                 "-i",
                 client.key().string(),
                 "-o",
                 "StrictHostKeyChecking=accept-new",
                 "-o",
                 "UserKnownHostsFile=" + client.known_hosts().string(),
                 "-p",
                 std::to_string(sshd.port()),
                 "-l",
                 test::own_user(),
                 "-o",
                 "BatchMode=yes",
                 "-E",
                 (client.folder() / "own-log").string(),
                 "127.0.0.1"};
    Subprocess ssh(spec);
    EXPECT_TRUE(ssh.wait().success());
    const auto sockets = control_sockets(client.folder() / "own");
    if (sockets.size() != 1) {
      return -1;
    }
    ssh::mux::ControlSocket socket(sockets[0]);
    return static_cast<pid_t>(ssh::mux::ask_alive(socket).value_or(0));
  }
  static std::vector<std::filesystem::path> control_sockets(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> found;
    for (const auto& path : entries_of(folder)) {
      struct stat info {};
      if (::lstat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode)) {
        found.push_back(path);
      }
    }
    return found;
  }
  std::filesystem::path own_folder() const {
    make_folders(client.folder() / "own", 0700);
    return client.folder() / "own";
  }
  const SigpipeGuard guard_;  // as in Project, which all of this needs
  TestClient client;
};

TEST_F(OverMaster, AutoUsesAMasterThatIsOpenAndElseLogsInByItself) {
  TestSshd sshd(client.public_key());
  EXPECT_FALSE(over_master(*connect(sshd, config::ConnectBy::automatic)));
  EXPECT_TRUE(over_master(*connect(sshd, config::ConnectBy::openssh)));
  const auto connection = connect(sshd, config::ConnectBy::automatic);
  EXPECT_TRUE(over_master(*connection));
  EXPECT_EQ(run(*connection, "echo hello").out, "hello\n");
  EXPECT_EQ(connection->peer_address(), "127.0.0.1");
  EXPECT_THAT(connection->login().host_key, testing::StartsWith("ssh-ed25519 "));
  EXPECT_FALSE(over_master(*connect(sshd, config::ConnectBy::libssh)));
  const auto sockets = control_sockets(client.masters());
  ASSERT_EQ(sockets.size(), 1U);
  EXPECT_FALSE(std::filesystem::exists(sockets[0].string() + ".lock"));
  EXPECT_TRUE(ssh::mux::end_master(sockets[0]));
  EXPECT_FALSE(over_master(*connect(sshd, config::ConnectBy::automatic)));
}

// Those of masters that have ended, and of processes that were killed while they opened one.
TEST_F(OverMaster, FilesWithoutASocketAreRemoved) {
  make_folders(client.masters(), 0700);
  const auto path = [&](const std::string& name) { return client.masters() / name; };
  const char* left[] = {"0123456789abcdef.for", "0123456789abcdef.lock", "0123456789abcdef-3.for",
                        "aaaaaaaaaaaaaaaa.lock"};
  const char* used[] = {"1123456789abcdef.for",  "1123456789abcdef.lock", "2123456789abcdef",
                        "2123456789abcdef.for",  "2123456789abcdef.lock", "mine.for",
                        "0123456789abcdef-x.for"};
  for (const char* name : left) {
    write_file_atomic(path(name), "");
  }
  for (const char* name : used) {
    write_file_atomic(path(name), "");
  }
  const FileLock lock(path("1123456789abcdef.lock"));  // as of a process that opens a master
  TestSshd sshd(client.public_key());
  EXPECT_FALSE(over_master(*connect(sshd, config::ConnectBy::automatic)));
  for (const char* name : left) {
    EXPECT_FALSE(std::filesystem::exists(path(name))) << name;
  }
  for (const char* name : used) {
    EXPECT_TRUE(std::filesystem::exists(path(name))) << name;
  }
}

TEST_F(OverMaster, TheUsersOwnMasterIsFoundAndLeftAlone) {
  TestSshd sshd(client.public_key());
  for (const char* name : {"%C", "%r@%h:%p", "%n-%i-%l-%L-%u-%%"}) {
    const pid_t master = open_own(sshd, (own_folder() / name).string());
    ASSERT_GT(master, 1) << name;
    EXPECT_TRUE(over_master(*connect(sshd, config::ConnectBy::automatic))) << name;
    EXPECT_EQ(::kill(master, 0), 0);
    EXPECT_TRUE(ssh::mux::end_master(control_sockets(own_folder())[0]));
  }
}

TEST_F(OverMaster, ASocketThatOthersCouldReplaceIsNotUsed) {
  TestSshd sshd(client.public_key());
  ASSERT_GT(open_own(sshd, (own_folder() / "socket").string()), 1);
  ::chmod(own_folder().c_str(), 0777);
  EXPECT_FALSE(over_master(*connect(sshd, config::ConnectBy::automatic)));
  ::chmod(own_folder().c_str(), 0700);
  EXPECT_TRUE(over_master(*connect(sshd, config::ConnectBy::automatic)));
  ssh::mux::end_master(own_folder() / "socket");
}

TEST_F(OverMaster, AServerThatSleepsIsNoticedInThreeSeconds) {
  TestSshd sshd(client.public_key());
  connect(sshd, config::ConnectBy::openssh).reset();
  const auto stopped = sshd.signal_sessions(SIGSTOP);
  const auto begin = std::chrono::steady_clock::now();
  const auto connection = connect(sshd, config::ConnectBy::automatic);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, test::patience);
  EXPECT_FALSE(over_master(*connection)) << "a new login";
  EXPECT_TRUE(control_sockets(client.masters()).empty()) << "the dead one is given up";
  for (const pid_t pid : stopped) {
    ::kill(pid, SIGCONT);
  }
}

TEST_F(OverMaster, AMasterThatDiesIsALostLinkAndTheNextOneWorks) {
  TestSshd sshd(client.public_key());
  for (int round = 0; round < 20; ++round) {
    auto connection = connect(sshd, config::ConnectBy::openssh);
    const auto sockets = control_sockets(client.masters());
    ASSERT_EQ(sockets.size(), 1U);
    ssh::mux::ControlSocket socket(sockets[0]);
    const auto pid = static_cast<pid_t>(ssh::mux::ask_alive(socket).value_or(0));
    ASSERT_GT(pid, 1);
    std::jthread killer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(round * 3));  // at different moments
      ::kill(pid, SIGKILL);
    });
    try {
      const auto result = run(*connection, "sleep 1; echo done; exit 3");
      ADD_FAILURE() << "round " << round << ": " << result.describe() << result.out;
    } catch (const ssh::Unreachable&) {
    }
    killer.join();
    EXPECT_FALSE(connection->idle());
  }
}

// So that following a job waits for the server, as without a master.
TEST_F(OverMaster, AServerThatIsAwayIsUnreachable) {
  TestSshd sshd(client.public_key());
  connect(sshd, config::ConnectBy::openssh);
  ASSERT_EQ(control_sockets(client.masters()).size(), 1U);
  EXPECT_TRUE(ssh::mux::end_master(control_sockets(client.masters())[0]));
  sshd.stop();
  EXPECT_THROW(connect(sshd, config::ConnectBy::openssh), ssh::Unreachable);
}

TEST_F(OverMaster, WhereTheServerTakesNoMoreOverOneAutoTakesAnother) {
  TestSshd sshd(client.public_key(), {"MaxSessions 2"});
  connect(sshd, config::ConnectBy::openssh).reset();
  const auto connection = connect(sshd, config::ConnectBy::automatic);
  ASSERT_TRUE(over_master(*connection));
  const auto one = connection->open("cat", {});
  const auto two = connection->open("cat", {});
  EXPECT_THROW(connection->open("cat", {}), ssh::TooManyChannels);
  EXPECT_FALSE(over_master(*connect(sshd, config::ConnectBy::automatic)));
  EXPECT_FALSE(one->finished());
}

TEST_F(OverMaster, BeyondMaxSessionsThereIsASecondMasterUnlessItAsksAQuestion) {
  TestSshd sshd(client.public_key(), {"MaxSessions 1"});
  std::vector<std::unique_ptr<ssh::Connection>> connections;
  std::vector<std::unique_ptr<ssh::Channel>> running;
  const auto hold = [&] {
    connections.push_back(connect(sshd, config::ConnectBy::openssh));
    running.push_back(connections.back()->open("cat", {}));
  };
  hold();
  hold();
  hold();
  EXPECT_EQ(control_sockets(client.masters()).size(), 3U);
  EXPECT_FALSE(over_master(*connect(sshd, config::ConnectBy::automatic)));
  running[1].reset();  // a free channel of an open master is reused
  connections[1].reset();
  EXPECT_EQ(run(*connect(sshd, config::ConnectBy::openssh), "echo again").out, "again\n");
  hold();
  EXPECT_EQ(control_sockets(client.masters()).size(), 3U);
  // As if a code were required: another login does not help, and none is suggested.
  write_file_atomic(sshd.folder() / "authorized_keys", "", 0600);
  for (const auto by : {config::ConnectBy::openssh, config::ConnectBy::automatic}) {
    try {
      connect(sshd, by);
      FAIL() << "it logged in";
    } catch (const Error& error) {
      EXPECT_EQ(error.cause(), Cause::refused) << error.message();
      EXPECT_THAT(error.hint(), testing::HasSubstr("MaxSessions"));
    }
  }
  ssh::Target target = ssh::resolve(client.config(), sshd.server(client.key()), client.ssh_config());
  EXPECT_TRUE(ssh::Masters(client.masters(), client.ssh_config()).close(target));
  EXPECT_TRUE(control_sockets(client.masters()).empty()) << "all of them are closed";
}

TEST_F(OverMaster, ATcpConnectionFromTheServer) {
  TestSshd sshd(client.public_key());
  const auto connection = connect(sshd, config::ConnectBy::openssh);
  std::string heard;
  const auto channel = connection->open_tcp("127.0.0.1", sshd.port(),
                                            [&](ssh::Stream, std::string_view data) { heard += data; });
  while (heard.find('\n') == std::string::npos) {
    connection->pump(1s);
  }
  EXPECT_THAT(heard, testing::StartsWith("SSH-2.0-"));
  const auto nobody = connection->open_tcp("127.0.0.1", test::free_port(), {});
  while (nobody->opening()) {
    connection->pump(1s);
  }
  EXPECT_NE(nobody->refusal(), "");
  EXPECT_EQ(run(*connection, "echo still").out, "still\n");
}

TEST_F(OverMaster, APortOfTheServerReachesThisMachineUntilTheConnectionEnds) {
  TestSshd sshd(client.public_key());
  auto connection = connect(sshd, config::ConnectBy::openssh);
  const int port = test::free_port();
  connection->listen_tcp(port);
  // The peer on the server: sends, closes its direction, and reads to the end.
  std::string told;
  const auto program = connection->open(
      fmt::format("python3 -c 'import socket; s = socket.create_connection((\"127.0.0.1\", {})); "
                  "s.sendall(b\"a\" * 300000); "
                  "s.shutdown(1); print(len(b\"\".join(iter(lambda: s.recv(65536), b\"\"))))'",
                  port),
      [&](ssh::Stream, std::string_view data) { told += data; });
  std::unique_ptr<ssh::Channel> come;
  std::string heard;
  while (!come) {
    connection->pump(10s);
    if (const int at = connection->incoming()) {
      EXPECT_EQ(at, port);
      come = connection->accept_tcp([&](ssh::Stream, std::string_view data) { heard += data; });
    }
  }
  while (!come->output_ended()) {
    connection->pump(10s);
  }
  EXPECT_EQ(heard, std::string(300000, 'a'));
  EXPECT_FALSE(come->finished()) << "the other direction is open";
  for (int pieces = 0; pieces < 5; ++pieces) {
    while (come->writable() == 0) {
      connection->pump(1s);
    }
    come->write(std::string(50000, 'b'));
  }
  come->close_input();
  while (!program->finished() || !come->finished()) {
    connection->pump(10s);
  }
  EXPECT_EQ(told, "250000\n");
  EXPECT_THROW(connect(sshd, config::ConnectBy::openssh)->listen_tcp(port), Error) << "it is taken";
  EXPECT_FALSE(connection->idle());
  connection.reset();
  connection = connect(sshd, config::ConnectBy::openssh);
  EXPECT_NE(run(*connection, fmt::format("exec 3<>/dev/tcp/127.0.0.1/{}", port)).status,
            ExitStatus::exited(0));
  EXPECT_NO_THROW(connection->listen_tcp(port)) << "it listens yet";
}

TEST_F(OverMaster, WhoGivesUpWhileASessionOpensDoesNotEndTheMaster) {
  TestSshd sshd(client.public_key());
  auto connection = connect(sshd, config::ConnectBy::openssh);
  const auto stopped = sshd.signal_sessions(SIGSTOP);
  std::jthread later([&] {
    std::this_thread::sleep_for(500ms);  // the client has given up by then
    for (const pid_t pid : stopped) {
      ::kill(pid, SIGCONT);
    }
  });
  connection->open_tcp("127.0.0.1", sshd.port(), {}).reset();
  connection.reset();
  later.join();
  EXPECT_EQ(run(*connect(sshd, config::ConnectBy::openssh), "echo there").out, "there\n");
  EXPECT_EQ(sshd.log().find("Accepted publickey", sshd.log().find("Accepted publickey") + 1),
            std::string::npos)
      << "a second login";
}

TEST_F(OverMaster, BehindAJumpHostBothAreMasters) {
  TestSshd jump(client.public_key());
  TestSshd sshd(client.public_key());
  config::Config config = client.config();
  config.connect_by = config::ConnectBy::openssh;
  config::Server server = sshd.server(client.key());
  server.proxy_jump = fmt::format("{}@127.0.0.1:{}", test::own_user(), jump.port());
  const auto connection = ssh::make_connector(config, client.options())->connect(server, Cancel());
  EXPECT_EQ(run(*connection, "echo behind").out, "behind\n");
  EXPECT_EQ(control_sockets(client.masters()).size(), 2U);
}

TEST_F(OverMaster, TheHintAboutAHostKeyDependsOnWhatIsWrongWithIt) {
  TestSshd sshd(client.public_key(), {}, "rsa");
  config::HostKeys checking = config::HostKeys::accept_new;
  const auto refusal = [&]() -> std::string {
    config::Config config = client.config();
    config.connect_by = config::ConnectBy::openssh;
    config.host_keys = checking;
    try {
      ssh::make_connector(config, client.options())->connect(sshd.server(client.key()), Cancel());
      return "";
    } catch (const Error& error) {
      return error.message() + " | " + error.hint();
    }
  };
  const auto old = testing::HasSubstr("known_hosts has the old one");
  write_file_atomic(client.ssh_config(), "HashKnownHosts no\nHostKeyAlgorithms ssh-ed25519\n");
  EXPECT_THAT(refusal(), testing::AllOf(testing::HasSubstr("no matching host key type found"),
                                        testing::HasSubstr("with HostKeyAlgorithms in ~/.ssh/config"),
                                        testing::Not(old)));
  write_file_atomic(client.ssh_config(), "HashKnownHosts no\n");
  checking = config::HostKeys::strict;
  EXPECT_THAT(refusal(), testing::AllOf(testing::HasSubstr("add it to known_hosts"), testing::Not(old)));
  checking = config::HostKeys::accept_new;
  EXPECT_EQ(refusal(), "");
  ASSERT_EQ(control_sockets(client.masters()).size(), 1U);
  EXPECT_TRUE(ssh::mux::end_master(control_sockets(client.masters())[0]));
  sshd.change_host_key("rsa");
  EXPECT_THAT(refusal(), old);
}

TEST_F(OverMaster, WhatSshCannotDoWithoutAQuestionNamesLogin) {
  TestSshd sshd("");
  try {
    connect(sshd, config::ConnectBy::openssh);
    FAIL() << "the key is not known there";
  } catch (const Error& error) {
    EXPECT_EQ(error.cause(), Cause::auth) << error.message();
    EXPECT_EQ(error.remedy(), Remedy::log_in);
  }
}

}  // namespace
}  // namespace remote
