// What a server can do with the forwarded SSH agent, and which key it can see.

#include <filesystem>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <remote/error.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.hpp"
#include "base/hashing.hpp"
#include "base/strings.hpp"
#include "ssh/agent.hpp"
#include "ssh/connector.hpp"
#include "ssh/local_socket.hpp"
#include "support/test_sshd.hpp"
#include "support/waiting.hpp"

namespace remote {
namespace {

namespace fs = std::filesystem;
using test::TestClient;
using test::TestSshd;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string wire_form(const fs::path& key) {
  return base64_decode(split_words(read_file(key.string() + ".pub")).at(1)).value();
}

// Runs on the server: prints the type of each answer, and the number of keys in the list.
constexpr const char* asker = R"(python3 -c '
import os, socket, struct
def text(data): return struct.pack(">I", len(data)) + data
def ask(body):
    s = socket.socket(socket.AF_UNIX)
    s.connect(os.environ["SSH_AUTH_SOCK"])
    s.sendall(text(body))
    f = s.makefile("rb")
    size = f.read(4)
    return f.read(struct.unpack(">I", size)[0]) if len(size) == 4 else b"\0"
def sign(key, tail=b"", data=None):
    return bytes([13]) + text(key) + text(login(key) if data is None else data) + struct.pack(">I", 0) + tail
def login(key, user=b"ada", host=b"HOST", method=b"publickey-hostbound-v00@openssh.com"):
    return (text(b"session") + bytes([50]) + text(user) + text(b"ssh-connection") + text(method) + bytes([1])
            + text(b"ssh-ed25519") + text(key) + (text(host) if b"hostbound" in method else b""))
own, other = (bytes.fromhex(word) for word in ("OWN", "OTHER"))
listing = ask(bytes([11]))
print("list", listing[0], struct.unpack(">I", listing[1:5])[0], other in listing)
for name, body in (("own", sign(own)), ("other", sign(other)), ("longer", sign(own, b"x")), ("list+", bytes([11, 0])),
                   ("git", sign(own, data=b"SSHSIG" + text(b"git"))), ("user", sign(own, data=login(own, b"root"))),
                   ("host", sign(own, data=login(own, host=b"elsewhere"))),
                   ("unbound", sign(own, data=login(own, method=b"publickey"))),
                   ("more", sign(own, data=login(own) + b"x")), ("mixed", sign(own, data=login(other))),
                   ("add-pkcs11", bytes([20]) + text(b"/tmp/evil.so") + text(b"")), ("lock", bytes([22]) + text(b"pw")),
                   ("remove-all", bytes([19])), ("extension", bytes([27]) + text(b"query"))):
    print(name, ask(body)[0])
s = socket.socket(socket.AF_UNIX)
s.connect(os.environ["SSH_AUTH_SOCK"])
s.settimeout(10)  # for the end, which must come
s.sendall(text(b"x") * 1000)
count = 0
while True:
    piece = s.recv(4096)
    if not piece: break
    count += len(piece)
print("flood", count // 5)
')";

std::string hex(const std::string& data) {
  std::string text;
  for (const char c : data) {
    constexpr const char* digits = "0123456789abcdef";
    text += digits[static_cast<unsigned char>(c) >> 4U];
    text += digits[static_cast<unsigned char>(c) & 15U];
  }
  return text;
}

// An agent with two keys. One of them logs in.
class HostileAgent : public testing::Test {
 protected:
  HostileAgent() : sshd(client.public_key()), other(client.folder() / "other") {
    ::unsetenv("SSH_AUTH_SOCK");
    ::setenv("HOME", client.folder().c_str(), 1);
    test::make_key(other);
    EXPECT_TRUE(agent.add(client.key(), Cancel()));
    EXPECT_TRUE(agent.add(other, Cancel()));
  }
  std::string keys_of_agent() const {
    SubprocessSpec spec;
    spec.argv = {"ssh-add", "-L"};
    spec.set_env["SSH_AUTH_SOCK"] = agent.socket();
    return run_subprocess(std::move(spec)).out;
  }
  std::unique_ptr<ssh::Connection> connect(config::ConnectBy by, const TestSshd& to) const {
    config::Config config = client.config();
    config.connect_by = by;
    return ssh::make_connector(config, client.options())->connect(to.server(client.key()), Cancel());
  }
  std::unique_ptr<ssh::Connection> connect(config::ConnectBy by) const { return connect(by, sshd); }
  void ask_all(config::ConnectBy by) const {
    const auto connection = connect(by);
    const std::string there = connection->forward_agent(
        agent.socket(), {ssh::login_permission(wire_form(client.key()), "ada", "HOST")});
    EXPECT_EQ(there.empty(), by == config::ConnectBy::libssh);
    ssh::ExecRequest request;
    request.command = "sh -s";
    if (!there.empty()) {
      request.input = fmt::format("SSH_AUTH_SOCK={0}; export SSH_AUTH_SOCK; trap 'rm -f {0}' EXIT\n", there);
    }
    request.input += asker;
    for (const auto& [word, key] : {std::pair{"OWN", client.key()}, {"OTHER", other}}) {
      request.input.replace(request.input.find(word), std::string_view(word).size(), hex(wire_form(key)));
    }
    const ExecResult result = connection->exec(request);
    // 12: a list, 14: a signature, 5: rejected
    EXPECT_EQ(result.out,
              "list 12 1 False\nown 14\nother 5\nlonger 5\nlist+ 5\ngit 5\nuser 5\nhost 5\nunbound 5\n"
              "more 5\nmixed 5\nadd-pkcs11 5\nlock 5\nremove-all 5\n"
              "extension 5\nflood 100\n")
        << result.err;
  }

  TestClient client;
  TestSshd sshd;
  fs::path other;
  ssh::KeyAgent agent;
};

TEST_F(HostileAgent, AServerMayListTheOneKeyAndSignALoginAtTheOneServerAndNothingElse) {
  const std::string before = keys_of_agent();
  ASSERT_THAT(before, HasSubstr("\n"));
  for (const auto by : {config::ConnectBy::libssh, config::ConnectBy::openssh}) {
    ask_all(by);
    EXPECT_EQ(keys_of_agent(), before) << "the agent was changed or locked";
  }
}

TEST_F(HostileAgent, OverAMasterTheSocketIsForThisLoginAloneAndEndsWithTheForwarding) {
  const auto connection = connect(config::ConnectBy::openssh);
  const std::string there = connection->forward_agent(
      agent.socket(), {ssh::login_permission(wire_form(client.key()), "ada", "HOST")});
  struct stat info {};
  ASSERT_EQ(::lstat(there.c_str(), &info), 0) << there;
  EXPECT_EQ(info.st_mode & 07777U, 0600U);
  EXPECT_EQ(info.st_uid, ::geteuid());
  EXPECT_TRUE(ssh::connect_local(there));
  connection->forward_agent({}, {});
  // The server closes its socket shortly after the request.
  EXPECT_TRUE(test::eventually([&] { return !ssh::connect_local(there); }));
  fs::remove(there);
}

TEST_F(HostileAgent, WhereTheServerForwardsNoSocketsThereIsNone) {
  TestSshd strict(client.public_key(), {"AllowStreamLocalForwarding no"});
  const auto connection = connect(config::ConnectBy::openssh, strict);
  EXPECT_EQ(connection->forward_agent(agent.socket(), {"x"}), "");
}

TEST_F(HostileAgent, OnlyTheKeyThatLoggedInIsHandedOn) {
  const auto by_file = client.connector()->connect(sshd.server(client.key()), Cancel())->login();
  EXPECT_THAT(by_file.keys, ElementsAre(wire_form(client.key())));
  EXPECT_THAT(by_file.key_files, ElementsAre(client.key()));

  ::setenv("SSH_AUTH_SOCK", agent.socket().c_str(), 1);
  config::Server server = sshd.server(client.key());
  server.private_key.reset();
  const auto by_agent = client.connector()->connect(server, Cancel())->login();
  ::unsetenv("SSH_AUTH_SOCK");
  EXPECT_THAT(by_agent.keys, ElementsAre(wire_form(client.key())));
  EXPECT_THAT(by_agent.key_files, IsEmpty());
  EXPECT_EQ(by_agent.agent, agent.socket());
}

}  // namespace
}  // namespace remote
