// Keys, passwords and ssh settings that other users on this machine can read or change, and secrets on
// command lines.

#include <gtest/gtest.h>

#include "base/files.hpp"
#include "ssh/connection.hpp"
#include "support/command_world.hpp"
#include "support/test_sshd.hpp"

namespace remote::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(HostileSecrets, AKeyThatOthersMayReadIsNotUsed) {
  TestClient client;
  const TestSshd sshd(client.public_key());
  const config::Server server = sshd.server(client.key());
  EXPECT_NO_THROW(client.connector()->connect(server, Cancel()));
  for (const int mode : {0666, 0640, 0604}) {
    fs::permissions(client.key(), fs::perms(mode));
    try {
      client.connector()->connect(server, Cancel());
      ADD_FAILURE() << mode;
    } catch (const Error& error) {
      EXPECT_THAT(error.message() + error.hint(), HasSubstr("others may read it")) << mode;
    }
  }
}

TEST(HostileSecrets, AConfigurationOfSshThatOthersMayWriteIsRefused) {
  TestClient client;
  const TestSshd sshd(client.public_key());
  write_file_atomic(client.ssh_config(), "Host *\n  ProxyCommand false\n", 0666);
  fs::permissions(client.ssh_config(), fs::perms(0666));
  try {
    client.connector()->connect(sshd.server(client.key()), Cancel());
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("everyone may write to it"));
  }
}

TEST(HostileSecrets, APasswordThatOthersMayReadIsWarnedOf) {
  CommandWorld world;
  world.configure("name: proj\npython: {manager: system}\nservers: {a: {hostname: a, password: hunter2}}\n");
  const auto warnings = [&] { return world.run({"run", "--cmd", "true"}).err; };
  fs::permissions(world.project() / ".remote/configs.yaml", fs::perms(0644));
  EXPECT_THAT(warnings(), HasSubstr("others on this machine may read it"));
  fs::permissions(world.project() / ".remote/configs.yaml", fs::perms(0600));
  EXPECT_THAT(warnings(), Not(HasSubstr("may read it")));
}

TEST(HostileSecrets, SecretsAreMaskedInEveryRecordAndRecordsAreForTheUserAlone) {
  CommandWorld world;
  const Job job = world.job("a",
                            "true --token T0 -p hunter1 postgres://u:hunter2@h/db -H 'Authorization: Bearer "
                            "hunter3' SSHPASS=hunter4",
                            {"-e", "HOME_OF_TEST=x"});
  const fs::path record = world.brought(job, "job.json");
  EXPECT_EQ(fs::status(record).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_THAT(read_file(record), Not(HasSubstr("hunter")));
  EXPECT_THAT(world.run({"job-list", "--stopped", "--json"}).out, Not(HasSubstr("hunter")));
}

TEST(HostileSecrets, AVariablesValueNeedNotStandOnTheCommandLine) {
  CommandWorld world;
  const Variable secret("MY_TOKEN", "from the environment");
  EXPECT_THAT(world.run({"run", "--server", "a", "-e", "MY_TOKEN", "--cmd", "echo \"<$MY_TOKEN>\""}).out,
              HasSubstr("<from the environment>"));
  EXPECT_THAT(world.run({"run", "-e", "NOT_SET_ANYWHERE", "--cmd", "true"}), Refused("no such variable"));
}

}  // namespace
}  // namespace remote::test
