// Servers behind jump hosts and behind a ProxyCommand.

#include <chrono>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <remote/error.hpp>

#include "base/strings.hpp"
#include "support/test_sshd.hpp"
#include "support/waiting.hpp"

namespace remote {
namespace {

using namespace std::chrono_literals;
using test::TestClient;
using test::TestSshd;

std::string say(ssh::Connection& connection, const std::string& word) {
  ssh::ExecRequest request;
  request.command = "cat";
  request.input = word;
  request.timeout = 30s;
  return connection.exec(request).out;
}

std::size_t accepted(const TestSshd& sshd) {
  const std::string log = sshd.log();
  std::size_t count = 0;
  for (std::size_t at = 0; (at = log.find("Accepted publickey", at)) != std::string::npos; ++at) {
    ++count;
  }
  return count;
}

class SshJump : public testing::Test {
 protected:
  std::string hop(const TestSshd& sshd) const {
    return fmt::format("{}@127.0.0.1:{}", test::own_user(), sshd.port());
  }
  config::Server behind(const TestSshd& target, const std::string& jumps) const {
    config::Server server = target.server(client.key());
    server.proxy_jump = jumps;
    return server;
  }
  TestClient client;
};

TEST_F(SshJump, OneConnectionToTheBastionServesManyServers) {
  TestSshd bastion(client.public_key());
  TestSshd target(client.public_key(), {"MaxStartups 100"});
  const auto connector = client.connector();
  const config::Server server = behind(target, hop(bastion));
  std::vector<std::string> heard(8);
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < heard.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        heard[i] = say(*connector->connect(server, Cancel()), std::to_string(i));
      } catch (const std::exception& error) {
        heard[i] = error.what();
      }
    });
  }
  threads.clear();
  for (std::size_t i = 0; i < heard.size(); ++i) {
    EXPECT_EQ(heard[i], std::to_string(i));
  }
  EXPECT_EQ(accepted(bastion), 1U);
  EXPECT_EQ(accepted(target), heard.size());
}

TEST_F(SshJump, GoesThroughAChain) {
  TestSshd first(client.public_key());
  TestSshd second(client.public_key());
  TestSshd target(client.public_key());
  const auto connection =
      client.connector()->connect(behind(target, hop(first) + "," + hop(second)), Cancel());
  const std::string data(3U << 20U, 'x');
  EXPECT_TRUE(say(*connection, data) == data);
  EXPECT_EQ(accepted(first), 1U);
  EXPECT_EQ(accepted(second), 1U);
}

TEST_F(SshJump, SaysWhenTheBastionCannotReachTheServer) {
  TestSshd bastion(client.public_key());
  TestSshd target(client.public_key());
  const config::Server server = behind(target, hop(bastion));
  target.stop();
  config::Config config = client.config();
  config.connect_timeout_s = 300;
  const auto start = std::chrono::steady_clock::now();
  try {
    ssh::make_connector(config, client.options())->connect(server, Cancel());
    FAIL() << "connected to nobody";
  } catch (const ssh::Unreachable& error) {
    EXPECT_NE(error.reason().find("cannot reach it"), std::string::npos) << error.what();
    EXPECT_NE(error.reason().find("refused"), std::string::npos) << error.what();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, test::patience) << "otherwise it is 300 s";
}

TEST_F(SshJump, SaysThatTheBastionForbidsForwarding) {
  TestSshd bastion(client.public_key(), {"AllowTcpForwarding no"});
  TestSshd target(client.public_key());
  try {
    client.connector()->connect(behind(target, hop(bastion)), Cancel());
    FAIL() << "connected through nobody";
  } catch (const ssh::Unreachable& error) {
    EXPECT_NE(error.reason().find("jump host " + hop(bastion)), std::string::npos) << error.what();
    EXPECT_NE(error.reason().find("AllowTcpForwarding"), std::string::npos) << error.what();
  }
}

TEST_F(SshJump, NamesTheBastionThatIsDown) {
  TestSshd bastion(client.public_key());
  TestSshd target(client.public_key());
  const config::Server server = behind(target, hop(bastion));
  bastion.stop();
  try {
    client.connector()->connect(server, Cancel());
    FAIL() << "connected through nobody";
  } catch (const ssh::Unreachable& error) {
    EXPECT_NE(error.what_failed().find("jump host " + hop(bastion)), std::string::npos) << error.what();
  }
}

TEST_F(SshJump, ALostBastionIsALostLinkAndIsConnectedAnew) {
  TestSshd bastion(client.public_key());
  TestSshd target(client.public_key());
  const auto connector = client.connector();
  const config::Server server = behind(target, hop(bastion));
  const auto connection = connector->connect(server, Cancel());
  ASSERT_EQ(say(*connection, "a"), "a");
  bastion.signal_sessions(SIGKILL);
  EXPECT_THROW(test::pump_until_broken(*connection), ssh::Unreachable);
  EXPECT_EQ(say(*connector->connect(server, Cancel()), "b"), "b");
}

TEST_F(SshJump, ReadsProxyJumpFromTheUsersConfiguration) {
  TestSshd bastion(client.public_key());
  TestSshd target(client.public_key());
  write_file_atomic(
      client.ssh_config(),
      fmt::format("Host inner\n  HostName 127.0.0.1\n  Port {}\n  User {}\n  ProxyJump gate\n"
                  "Host gate\n  HostName 127.0.0.1\n  Port {}\n  User {}\n"
                  "Host *\n  IdentityFile {}\n",
                  target.port(), test::own_user(), bastion.port(), test::own_user(), client.key().string()));
  config::Server server;
  server.name = "inner-server";
  server.hostname = "inner";
  EXPECT_EQ(say(*client.connector()->connect(server, Cancel()), "hi"), "hi");
  EXPECT_EQ(accepted(bastion), 1U);
}

TEST_F(SshJump, RunsAProxyCommand) {
  TestSshd target(client.public_key());
  write_file_atomic(client.folder() / "relay.py",
                    "import os, socket, sys, threading\n"
                    "s = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
                    "def up():\n"
                    "    while True:\n"
                    "        d = os.read(0, 65536)\n"
                    "        if not d: break\n"
                    "        s.sendall(d)\n"
                    "    s.shutdown(socket.SHUT_WR)\n"
                    "threading.Thread(target=up, daemon=True).start()\n"
                    "while True:\n"
                    "    d = s.recv(65536)\n"
                    "    if not d: break\n"
                    "    os.write(1, d)\n");
  write_file_atomic(client.ssh_config(), fmt::format("Host inner\n  HostName 127.0.0.1\n  Port {}\n"
                                                     "  ProxyCommand /usr/bin/python3 {}/relay.py %h %p\n",
                                                     target.port(), client.folder().string()));
  config::Server server = target.server(client.key());
  server.hostname = "inner";
  server.port.reset();
  EXPECT_EQ(say(*client.connector()->connect(server, Cancel()), "hi"), "hi");
}

TEST_F(SshJump, TellsWhatAFailedProxyCommandSaid) {
  write_file_atomic(client.ssh_config(),
                    "Host inner\n  ProxyCommand sh -c 'echo no way to %h >&2; exit 1'\n");
  config::Server server;
  server.name = "one";
  server.hostname = "inner";
  server.private_key = client.key();
  try {
    client.connector()->connect(server, Cancel());
    FAIL() << "connected to nobody";
  } catch (const ssh::Unreachable& error) {
    EXPECT_NE(error.reason().find("no way to inner"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace remote
