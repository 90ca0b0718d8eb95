// `authorize` over a password login and over another key's login, and whether its proof is valid.

#include "servers/authorize.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <remote/error.hpp>

#include "ssh/key_files.hpp"
#include "support/password_server.hpp"
#include "support/test_sshd.hpp"

namespace remote {
namespace {

namespace fs = std::filesystem;
using State = wire::KeyState;
using test::PasswordServer;
using test::TestClient;
using test::TestSshd;

class Authorize : public testing::Test {
 protected:
  void SetUp() override {
    ::unsetenv("SSH_AUTH_SOCK");
    ::setenv("HOME", client.folder().c_str(), 1);  // hides the user's own keys
    ssh::generate_key(second(), "ann at home");
  }
  fs::path second() const { return client.folder() / "new keys/second"; }
  servers::PublicKey key() const {
    return servers::parse_public_key(ssh::public_half_of(second()), "second.pub");
  }
  wire::AuthorizeReply put(const config::Server& server) {
    const auto connection = connector->connect(server, Cancel());
    return servers::authorize(*connection, key(), Cancel());
  }
  // Why a login with only the second key fails; "" if it succeeds.
  std::string proof(const config::Server& server) {
    try {
      connector->connect_with_key(server, second(), Cancel());
      return "";
    } catch (const Error& error) {
      return error.message();
    }
  }
  TestClient client;
  std::unique_ptr<ssh::Connector> connector = client.connector();
};

TEST_F(Authorize, OverAPasswordLogin) {
  test::PasswordRules rules;
  rules.password = "open sesame";
  rules.real = true;
  PasswordServer one(rules);
  config::Server server = one.server("one");
  server.password = "open sesame";
  server.private_key = second();  // as in configs.yaml: the key that authorize will install
  EXPECT_NE(proof(server), "");
  const int attempts = one.attempts();
  EXPECT_EQ(attempts, 0) << "the proof tried the password";
  EXPECT_EQ(put(server).state, State::added);
  EXPECT_EQ(one.attempts(), 1);
  EXPECT_EQ(proof(server), "");
  EXPECT_EQ(put(server).state, State::present);
  EXPECT_EQ(one.attempts(), 1) << "the key was not taken";
  EXPECT_EQ(read_file(one.home() / ".ssh/authorized_keys"), key().line() + "\n");
}

TEST_F(Authorize, OverAnotherKeysLogin) {
  TestSshd sshd(client.public_key());
  // authorize writes the file that sshd reads.
  const fs::path file = sshd.folder() / ".ssh/authorized_keys";
  make_folders(file.parent_path());
  fs::rename(sshd.folder() / "authorized_keys", file);
  fs::create_symlink(file, sshd.folder() / "authorized_keys");
  const config::Server server = sshd.server(client.key());
  EXPECT_NE(proof(server), "") << "the first key's login was taken for the second's";
  EXPECT_EQ(put(server).state, State::added);
  EXPECT_EQ(proof(server), "");
  EXPECT_THAT(read_file(file), testing::StartsWith(client.public_key()));
}

TEST_F(Authorize, TheProofNeedsThePrivateHalf) {
  TestSshd sshd(client.public_key());
  const config::Server server = sshd.server(client.key());
  fs::remove(second());
  EXPECT_THAT(proof(server), testing::HasSubstr("no such file"));
}

TEST_F(Authorize, GeneratedKeysAreForTheirOwnerAndNeverReplaced) {
  EXPECT_EQ(fs::status(second()).permissions(), fs::perms(0600));
  EXPECT_THROW(ssh::generate_key(second(), ""), Error);
  fs::remove(second().string() + ".pub");
  EXPECT_EQ(servers::parse_public_key(ssh::public_half_of(second()), "x").type, "ssh-ed25519");
}

}  // namespace
}  // namespace remote
