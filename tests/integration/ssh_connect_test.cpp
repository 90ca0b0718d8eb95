// How connections are made and how they fail: addresses, host keys, many at once.

#include <chrono>
#include <csignal>
#include <thread>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <remote/error.hpp>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/strings.hpp"
#include "ssh/pool.hpp"
#include "support/cut_proxy.hpp"
#include "support/lossy_socket.hpp"
#include "support/test_sshd.hpp"
#include "support/waiting.hpp"

namespace remote {
namespace {

using namespace std::chrono_literals;
using test::TestClient;
using test::TestSshd;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

// Connects; returns "" or the message and hint of the error.
std::string try_connect(ssh::Connector& connector, const config::Server& server,
                        const Cancel& cancel = Cancel()) {
  try {
    connector.connect(server, cancel);
    return "";
  } catch (const Error& error) {
    return error.message() + " | " + error.hint();
  }
}

std::string key_of(const std::filesystem::path& public_key_file) {
  const auto words = split_words(read_file(public_key_file));
  return words.at(0) + " " + words.at(1);
}

std::string fingerprint_of(const std::filesystem::path& public_key_file) {
  SubprocessSpec spec;
  spec.argv = {"ssh-keygen", "-l", "-f", public_key_file.string()};
  return split_words(run_subprocess(std::move(spec)).out).at(1);
}

class SshConnect : public testing::Test {
 protected:
  config::Server somewhere(int port) const {
    config::Server server;
    server.name = "one";
    server.hostname = "127.0.0.1";
    server.port = port;
    server.private_key = client.key();
    return server;
  }
  TestClient client;
};

TEST_F(SshConnect, ARefusedPortNamesAddressAndHint) {
  const int port = test::free_port();
  const auto text = try_connect(*client.connector(), somewhere(port));
  EXPECT_THAT(text, HasSubstr(fmt::format("127.0.0.1:{}: Connection refused", port)));
  EXPECT_THAT(text, HasSubstr("sshd"));
  EXPECT_THROW(client.connector()->connect(somewhere(port), Cancel()), ssh::Unreachable);
}

TEST_F(SshConnect, AnUnknownNameIsSaid) {
  config::Server server = somewhere(22);
  server.hostname = "no-such-host.invalid";
  EXPECT_THAT(try_connect(*client.connector(), server), HasSubstr("'no-such-host.invalid' "));
  EXPECT_THROW(client.connector()->connect(server, Cancel()), ssh::Unreachable);
}

// A port that accepts connections and never sends anything.
class Mute {
 public:
  Mute() : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(fd_.get(), 8), 0);
    ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  int port() const { return port_; }
  int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
  int port_ = 0;
};

TEST_F(SshConnect, AServerThatSaysNothingTimesOut) {
  const Mute mute;
  config::Config config = client.config();
  config.connect_timeout_s = 1;
  const auto connector = ssh::make_connector(config, client.options());
  const auto start = Clock::now();
  EXPECT_THAT(try_connect(*connector, somewhere(mute.port())),
              HasSubstr("no SSH server answered within 1 s"));
  EXPECT_GE(Clock::now() - start, 900ms);
}

// Like a VPN that drops all but small packets.
TEST_F(SshConnect, AServerWhoseKeyExchangeDoesNotComeNamesTheMtu) {
  const Mute mute;
  config::Config config = client.config();
  config.connect_timeout_s = 1;
  UniqueFd link;
  const std::jthread greeting([&] {
    link.reset(::accept(mute.fd(), nullptr, nullptr));
    write_all(link.get(), "SSH-2.0-OpenSSH_9.2p1\r\n");
  });
  const auto connector = ssh::make_connector(config, client.options());
  EXPECT_THAT(try_connect(*connector, somewhere(mute.port())),
              testing::AllOf(HasSubstr("answered 'SSH-2.0-OpenSSH_9.2p1', and then no key exchange came"),
                             HasSubstr("lower the MTU"), testing::Not(HasSubstr("no SSH server answered"))));
}

TEST_F(SshConnect, WhoIsInAHurryGivesUpSooner) {
  const Mute mute;
  try {
    client.connector()->connect(somewhere(mute.port()), Cancel(), 1s);
    FAIL() << "connected to a mute";
  } catch (const ssh::Unreachable& error) {
    EXPECT_THAT(error.message(), HasSubstr("no SSH server answered within 1 s"));
  }
}

TEST_F(SshConnect, ThePoolHandsOutAnIdleConnectionOnlyWhenItCanBeUsed) {
  TestSshd sshd(client.public_key());
  ssh::Pool pool(client.connector());
  const auto take = [&] { return pool.connect(sshd.server(client.key()), Cancel()); };
  const auto hi = [&] { return take()->exec({.command = "echo hi"}).out; };
  EXPECT_EQ(hi(), "hi\n");
  const std::vector<pid_t> first = sshd.session_pids();
  ASSERT_FALSE(first.empty());
  EXPECT_EQ(hi(), "hi\n");
  EXPECT_EQ(sshd.session_pids(), first);
  // The server closes it.
  sshd.kill_sessions();
  EXPECT_EQ(hi(), "hi\n");
  // A command is abandoned while it runs.
  const std::vector<pid_t> second = sshd.session_pids();
  EXPECT_THROW(take()->exec({.command = "sleep 5", .timeout = 50ms}), Error);
  EXPECT_EQ(hi(), "hi\n");
  EXPECT_NE(sshd.session_pids(), second);
}

// Some NATs drop a connection that is silent for 15 s.
TEST_F(SshConnect, ASilentConnectionIsKeptAlive) {
  if (test::over_openssh()) {
    GTEST_SKIP() << "the connection is ssh's";
  }
  TestSshd sshd(client.public_key());
  const auto connection = client.connector()->connect(sshd.server(client.key()), Cancel());
  const int socket = test::find_socket_to(sshd.port());
  int is_on = 0;
  int idle_s = 0;
  socklen_t size = sizeof is_on;
  ASSERT_EQ(::getsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &is_on, &size), 0);
  ASSERT_EQ(::getsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, &size), 0);
  EXPECT_EQ(is_on, 1);
  EXPECT_LE(idle_s, 10);
}

TEST_F(SshConnect, CancelEndsAConnectionAttempt) {
  const Mute mute;
  config::Config config = client.config();
  config.connect_timeout_s = 300;
  Cancel cancel;
  std::jthread killer([&] {
    std::this_thread::sleep_for(100ms);  // while it connects
    cancel.cancel();
  });
  const auto start = Clock::now();
  try {
    ssh::make_connector(config, client.options())->connect(somewhere(mute.port()), cancel);
    FAIL() << "connected to a mute";
  } catch (const Interrupted&) {
    SUCCEED();
  }
  EXPECT_LT(Clock::now() - start, test::patience) << "otherwise it is 300 s";
}

TEST_F(SshConnect, SixtyFourFirstConnectionsLeaveAWellFormedFile) {
  TestSshd sshd(client.public_key(), {"MaxStartups 200"});
  std::string aliases;
  for (int i = 0; i < 32; ++i) {
    // Unique names, so that each is a first connection.
    aliases += fmt::format("Host s{0}\n  HostName 127.0.0.1\n  HostKeyAlias alias{0}\n", i);
  }
  write_file_atomic(client.ssh_config(), aliases + "Host *\n  HashKnownHosts no\n");
  // Half of them from another process, with its own connector and the same file.
  constexpr int each = 32;
  const auto connect_all = [&] {
    const auto connector = client.connector();
    std::vector<std::string> errors(each);
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < each; ++i) {
      threads.emplace_back([&, i] {
        config::Server server = sshd.server(client.key(), fmt::format("s{}", i));
        server.hostname = fmt::format("s{}", i);
        errors[i] = try_connect(*connector, server);
      });
    }
    threads.clear();
    int failed = 0;
    for (const std::string& error : errors) {
      if (!error.empty()) {
        ++failed;
        fmt::print(stderr, "{}\n", error);
      }
    }
    return failed;
  };
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(connect_all() == 0 ? 0 : 1);
  }
  EXPECT_EQ(connect_all(), 0);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  const std::string key = key_of(sshd.folder() / "host_key.pub");
  const std::string text = read_file(client.known_hosts());
  EXPECT_TRUE(text.ends_with('\n'));
  const auto lines = split(text.substr(0, text.size() - 1), '\n');
  EXPECT_EQ(lines.size(), static_cast<std::size_t>(each)) << text;
  for (const std::string& line : lines) {
    EXPECT_TRUE(line.starts_with("alias")) << line;
    EXPECT_TRUE(line.ends_with(key)) << line;
  }
}

TEST_F(SshConnect, ADroppedConnectionIsTriedAgain) {
  // Starting with the second unauthenticated connection, every one is dropped.
  TestSshd sshd(client.public_key(), {"MaxStartups 2:100:2"});
  const auto connector = client.connector();
  ASSERT_EQ(try_connect(*connector, sshd.server(client.key())), "");
  std::vector<std::string> errors(12);
  std::vector<std::jthread> threads;
  for (std::string& error : errors) {
    threads.emplace_back([&] { error = try_connect(*connector, sshd.server(client.key())); });
  }
  threads.clear();
  for (const std::string& error : errors) {
    EXPECT_EQ(error, "");
  }
  // Some were dropped; OpenSSH 10 spells it with a small s.
  EXPECT_THAT(sshd.log(), ::testing::AnyOf(HasSubstr("MaxStartups"), HasSubstr("Maxstartups")));
}

TEST_F(SshConnect, ANewKeyIsToldOnceAndThenKnown) {
  TestSshd sshd(client.public_key());
  const auto connector = client.connector();
  ASSERT_EQ(try_connect(*connector, sshd.server(client.key())), "");
  const auto fresh = client.take_new_host_keys();
  ASSERT_EQ(fresh.size(), 1U);
  EXPECT_EQ(fresh[0].server, "one");
  EXPECT_EQ(fresh[0].host, fmt::format("[127.0.0.1]:{}", sshd.port()));
  EXPECT_EQ(fresh[0].type, "ssh-ed25519");
  EXPECT_EQ(fresh[0].fingerprint, fingerprint_of(sshd.folder() / "host_key.pub"));
  EXPECT_EQ(fresh[0].warning, "");
  ASSERT_EQ(try_connect(*connector, sshd.server(client.key())), "");
  EXPECT_TRUE(client.take_new_host_keys().empty());
}

TEST_F(SshConnect, AChangedKeyIsRefusedWithBothFingerprintsAndTheFix) {
  TestSshd sshd(client.public_key());
  write_file_atomic(client.known_hosts(), "# a comment\n");
  const auto connector = client.connector();
  ASSERT_EQ(try_connect(*connector, sshd.server(client.key())), "");
  const std::string before = fingerprint_of(sshd.folder() / "host_key.pub");
  sshd.change_host_key();
  const std::string text = try_connect(*connector, sshd.server(client.key()));
  EXPECT_THAT(text, HasSubstr("changed"));
  EXPECT_THAT(text, HasSubstr(before));
  EXPECT_THAT(text, HasSubstr(fingerprint_of(sshd.folder() / "host_key.pub")));
  EXPECT_THAT(text, HasSubstr(client.known_hosts().string() + ":2"));
  EXPECT_THAT(text, HasSubstr("ssh-keygen -R "));
  EXPECT_EQ(sshd.log().find("Accepted"), std::string::npos);
  // The command in the hint fixes it.
  SubprocessSpec spec;
  spec.argv = {"sh", "-c", text.substr(text.find("ssh-keygen -R"))};
  EXPECT_TRUE(run_subprocess(std::move(spec)).status.success());
  EXPECT_EQ(try_connect(*connector, sshd.server(client.key())), "");
}

TEST_F(SshConnect, AKeyOfAnotherTypeIsRefused) {
  TestSshd sshd(client.public_key());
  const auto connector = client.connector();
  ASSERT_EQ(try_connect(*connector, sshd.server(client.key())), "");
  sshd.change_host_key("ecdsa");
  const std::string text = try_connect(*connector, sshd.server(client.key()));
  EXPECT_THAT(text, HasSubstr("another type"));
  EXPECT_THAT(text, HasSubstr("ssh-keygen -R "));
}

TEST_F(SshConnect, TheKnownTypeIsAskedForFirst) {
  TestSshd sshd(client.public_key(), {}, "rsa");
  ASSERT_EQ(try_connect(*client.connector(), sshd.server(client.key())), "");
  // The server gets a second key, of a type that would normally be preferred.
  sshd.stop();
  test::make_key(sshd.folder() / "second_key", "ed25519");
  TestSshd both(client.public_key(), {"HostKey " + (sshd.folder() / "host_key").string(),
                                      "HostKey " + (sshd.folder() / "second_key").string()});
  std::string text = read_file(client.known_hosts());
  const std::string name = fmt::format("[127.0.0.1]:{}", sshd.port());
  text.replace(text.find(name), name.size(), fmt::format("[127.0.0.1]:{}", both.port()));
  write_file_atomic(client.known_hosts(), text);
  EXPECT_EQ(try_connect(*client.connector(), both.server(client.key())), "");
}

TEST_F(SshConnect, HashedEntriesAreReadAndWritten) {
  TestSshd sshd(client.public_key());
  write_file_atomic(client.ssh_config(), "HashKnownHosts yes\n");
  const auto connector = client.connector();
  ASSERT_EQ(try_connect(*connector, sshd.server(client.key())), "");
  EXPECT_TRUE(read_file(client.known_hosts()).starts_with("|1|"));
  EXPECT_EQ(client.take_new_host_keys().size(), 1U);
  ASSERT_EQ(try_connect(*connector, sshd.server(client.key())), "");
  EXPECT_TRUE(client.take_new_host_keys().empty());
  // OpenSSH reads it the same way.
  SubprocessSpec spec;
  spec.argv = {"ssh-keygen", "-F", fmt::format("[127.0.0.1]:{}", sshd.port()), "-f",
               client.known_hosts().string()};
  EXPECT_TRUE(run_subprocess(std::move(spec)).status.success());
  sshd.change_host_key();
  EXPECT_THAT(try_connect(*connector, sshd.server(client.key())), HasSubstr("changed"));
}

TEST_F(SshConnect, CompressesWhereSshConfigAsksForIt) {
  constexpr std::size_t size = 300'000;
  const TestSshd willing(client.public_key());
  const TestSshd unwilling(client.public_key(), {"Compression no"});
  const auto bytes = [&](const TestSshd& sshd, const std::string& setting) {
    write_file_atomic(client.ssh_config(), "HashKnownHosts no\n" + setting);
    const test::CutProxy proxy(sshd.port());
    config::Server server = sshd.server(client.key());
    server.port = proxy.port();
    const auto connection = client.connector()->connect(server, Cancel());
    ssh::ExecRequest request;
    request.command = "head -c " + std::to_string(size) + " /dev/zero | tr '\\000' x";
    EXPECT_EQ(connection->exec(request).out.size(), size);
    return proxy.from_target();
  };
  EXPECT_GT(bytes(willing, ""), size);
  EXPECT_GT(bytes(willing, "Compression no\n"), size);
  EXPECT_LT(bytes(willing, "Compression yes\n"), size / 4);
  EXPECT_GT(bytes(unwilling, "Compression yes\n"), size) << "a server that refuses it";
}

TEST_F(SshConnect, StrictRefusesANewKey) {
  TestSshd sshd(client.public_key());
  config::Config config = client.config();
  config.host_keys = config::HostKeys::strict;
  const auto connector = ssh::make_connector(config, client.options());
  const std::string text = try_connect(*connector, sshd.server(client.key()));
  EXPECT_THAT(text, HasSubstr("not known"));
  EXPECT_THAT(text, HasSubstr(fingerprint_of(sshd.folder() / "host_key.pub")));
  EXPECT_FALSE(std::filesystem::exists(client.known_hosts()));
}

TEST_F(SshConnect, AHostNameThatLibsshRefuses) {
  TestSshd sshd(client.public_key());
  config::Server server = sshd.server(client.key());
  for (const char* name : {"gpu_box_1", "a@b", "_x"}) {
    server.hostname = name;
    write_file_atomic(
        client.ssh_config(),
        fmt::format("ProxyCommand python3 {} {}\n", (client.folder() / "connect.py").string(), sshd.port()));
    write_file_atomic(client.folder() / "connect.py", R"py(
import os, socket, sys, threading
link = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
def there():
    while data := os.read(0, 65536):
        link.sendall(data)
    link.shutdown(socket.SHUT_WR)
threading.Thread(target=there, daemon=True).start()
while data := link.recv(65536):
    os.write(1, data)
)py");
    EXPECT_EQ(try_connect(*client.connector(), server), "") << name;
  }
}

TEST_F(SshConnect, NoAlgorithmInCommonNamesOpenssh) {
  TestSshd sshd(client.public_key(), {"KexAlgorithms sntrup761x25519-sha512@openssh.com"});
  EXPECT_THAT(try_connect(*client.connector(), sshd.server(client.key())),
              testing::AllOf(HasSubstr("no algorithm in common"), HasSubstr("connection: openssh")));
}

TEST_F(SshConnect, AForeignLineRefusesNewHostsOnlyInAFileOfTheProject) {
  TestSshd sshd(client.public_key());
  const std::string foreign = "old.example 1024 35 1234567890\ncut.example ssh-ed25519\n";
  ssh::ConnectorOptions options = client.options();
  options.known_hosts.clear();
  write_file_atomic(client.ssh_config(),
                    "HashKnownHosts no\nUserKnownHostsFile " + client.known_hosts().string() + "\n");
  write_file_atomic(client.known_hosts(), foreign);
  EXPECT_EQ(try_connect(*ssh::make_connector(client.config(), options), sshd.server(client.key())), "");
  EXPECT_TRUE(read_file(client.known_hosts()).starts_with(foreign + "[127.0.0.1]:"));
  config::Server server = sshd.server(client.key());
  server.known_hosts = client.folder() / "of the project";
  write_file_atomic(*server.known_hosts, foreign);
  EXPECT_THAT(try_connect(*ssh::make_connector(client.config(), options), server), HasSubstr("line 2"));
}

class SshAuthority : public SshConnect {
 protected:
  static void run(std::vector<std::string> argv) {
    SubprocessSpec spec;
    spec.argv = std::move(argv);
    ASSERT_TRUE(run_subprocess(std::move(spec)).status.success());
  }
  SshAuthority() {
    test::make_key(ca);
    test::make_key(host, "ecdsa");
    run({"ssh-keygen", "-q", "-s", ca.string(), "-I", "id", "-h", "-n", "127.0.0.1", host.string() + ".pub"});
  }
  std::string connect(config::ConnectBy by, const config::Server& server) {
    config::Config config = client.config();
    config.connect_by = by;
    return try_connect(*ssh::make_connector(config, client.options()), server);
  }
  std::filesystem::path ca = client.folder() / "ca";
  std::filesystem::path host = client.folder() / "host";
};

TEST_F(SshAuthority, OpensshChecksTheHostCertificate) {
  TestSshd sshd(client.public_key(),
                {"HostKey " + host.string(), "HostCertificate " + host.string() + "-cert.pub"});
  const config::Server server = sshd.server(client.key());
  const std::string line = "@cert-authority 127.0.0.1 " + key_of(ca.string() + ".pub") + "\n";
  write_file_atomic(client.known_hosts(), line);
  EXPECT_THAT(connect(config::ConnectBy::libssh, server),
              testing::AllOf(HasSubstr("certificate authority"), HasSubstr("connection: openssh")));
  EXPECT_EQ(connect(config::ConnectBy::automatic, server), "");
  EXPECT_EQ(read_file(client.known_hosts()), line) << "the key was taken without the authority";
  // A known key needs no certificate authority.
  write_file_atomic(client.known_hosts(), line + fmt::format("[127.0.0.1]:{} ", sshd.port()) +
                                              key_of(sshd.folder() / "host_key.pub") + "\n");
  EXPECT_EQ(connect(config::ConnectBy::libssh, server), "");
}

TEST_F(SshAuthority, OpensshChecksTheHostCertificateOfAJumpHost) {
  TestSshd jump(client.public_key(),
                {"HostKey " + host.string(), "HostCertificate " + host.string() + "-cert.pub"});
  TestSshd sshd(client.public_key());
  config::Server server = sshd.server(client.key());
  server.proxy_jump = fmt::format("{}@127.0.0.1:{}", test::own_user(), jump.port());
  const std::string text = "@cert-authority 127.0.0.1 " + key_of(ca.string() + ".pub") + "\n" +
                           fmt::format("[127.0.0.1]:{} ", sshd.port()) +
                           key_of(sshd.folder() / "host_key.pub") + "\n";
  write_file_atomic(client.known_hosts(), text);
  EXPECT_THAT(connect(config::ConnectBy::libssh, server),
              testing::AllOf(HasSubstr("jump host"), HasSubstr("certificate authority"),
                             HasSubstr("connection: openssh")));
  EXPECT_EQ(connect(config::ConnectBy::automatic, server), "");
  EXPECT_EQ(read_file(client.known_hosts()), text) << "a key was taken without the authority";
}

TEST_F(SshConnect, ARevokedKeyIsRefusedWhateverElseIsListed) {
  TestSshd sshd(client.public_key());
  const std::string key = key_of(sshd.folder() / "host_key.pub");
  write_file_atomic(client.known_hosts(),
                    fmt::format("[127.0.0.1]:{} {}\n@revoked * {}\n", sshd.port(), key, key));
  EXPECT_THAT(try_connect(*client.connector(), sshd.server(client.key())), HasSubstr("revoked"));
}

TEST_F(SshConnect, AFileThatCannotBeWrittenIsAWarning) {
  TestSshd sshd(client.public_key());
  ssh::ConnectorOptions options = client.options();
  options.known_hosts = client.key() / "known_hosts";  // below a regular file: not even root can write there
  const auto connector = ssh::make_connector(client.config(), options);
  ASSERT_EQ(try_connect(*connector, sshd.server(client.key())), "");
  const auto fresh = client.take_new_host_keys();
  ASSERT_EQ(fresh.size(), 1U);
  EXPECT_THAT(fresh[0].warning, HasSubstr("could not be saved"));
}

TEST_F(SshConnect, AnUnfinishedLastLineIsNotSpoilt) {
  TestSshd sshd(client.public_key());
  write_file_atomic(client.known_hosts(), "other.example ssh-ed25519 AAAA");
  ASSERT_EQ(try_connect(*client.connector(), sshd.server(client.key())), "");
  EXPECT_TRUE(read_file(client.known_hosts()).starts_with("other.example ssh-ed25519 AAAA\n[127.0.0.1]:"));
}

}  // namespace
}  // namespace remote
