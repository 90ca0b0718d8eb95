#include "ssh/target.hpp"

#include <cstdlib>

#include <gtest/gtest.h>
#include <remote/error.hpp>

#include "base/files.hpp"

namespace remote::ssh {
namespace {

class TargetTest : public testing::Test {
 protected:
  Target resolved(const std::string& ssh_config) {
    write_file_atomic(folder.path() / "config", ssh_config);
    return resolve(config, server, folder.path() / "config");
  }
  void SetUp() override {
    server.name = "one";
    server.hostname = "alias";
    server.line = 3;
  }
  std::string file() const { return (folder.path() / "config").string(); }
  TempFolder folder;
  config::Config config;
  config::Server server;
};

TEST_F(TargetTest, Defaults) {
  const Target target = resolved("");
  EXPECT_EQ(target.host.value, "alias");
  EXPECT_EQ(target.host.origin, "configs.yaml:3");
  EXPECT_EQ(target.user.value, "ubuntu");
  EXPECT_TRUE(target.user.is_default());
  EXPECT_EQ(target.port.value, 22);
  EXPECT_TRUE(target.port.is_default());
  EXPECT_FALSE(target.identities_given);
  ASSERT_EQ(target.identities.size(), 3U);
  EXPECT_EQ(target.identities[0].value, home_folder() / ".ssh" / "id_ed25519");
  EXPECT_EQ(target.connect_timeout_s.value, 10);
  EXPECT_TRUE(target.jumps.empty());
}

TEST_F(TargetTest, SshConfigOverridesTheDefaults) {
  config.connect_timeout_s = 0;  // not set
  const Target target = resolved(
      "Host alias\n HostName 10.0.0.1\n User me\n Port 77\n IdentityFile ~/k_%r_%h\n ConnectTimeout 4\n"
      " StrictHostKeyChecking yes\n UserKnownHostsFile /a \"/b c\"\n IdentityAgent none\n");
  EXPECT_EQ(target.host.value, "10.0.0.1");
  EXPECT_EQ(target.host.origin, file() + ":2");
  EXPECT_EQ(target.user.value, "me");
  EXPECT_EQ(target.user.origin, file() + ":3");
  EXPECT_EQ(target.port.value, 77);
  ASSERT_EQ(target.identities.size(), 1U);
  EXPECT_EQ(target.identities[0].value, home_folder() / "k_me_10.0.0.1");
  EXPECT_EQ(target.connect_timeout_s.value, 4);
  EXPECT_EQ(target.host_keys.value, config::HostKeys::strict);
  ASSERT_EQ(target.known_hosts.value.size(), 2U);
  EXPECT_EQ(target.known_hosts.value[1], "/b c");
  EXPECT_EQ(target.identity_agent.value, "none");
}

TEST_F(TargetTest, WhoWantsToBeAskedDoesNotAcceptUnseen) {
  EXPECT_EQ(resolved("StrictHostKeyChecking ask\n").host_keys.value, config::HostKeys::strict);
  EXPECT_EQ(resolved("StrictHostKeyChecking no\n").host_keys.value, config::HostKeys::accept_new);
  EXPECT_EQ(resolved("StrictHostKeyChecking accept-new\n").host_keys.value, config::HostKeys::accept_new);
}

TEST_F(TargetTest, ConfigsYamlOverridesSshConfig) {
  server.username = "yaml";
  server.port = 8;
  server.private_key = "/yaml/key";
  server.key_lines = {{"username", 5}, {"port", 6}};
  config.connect_timeout_s = 3;
  const Target target = resolved("User me\nPort 77\nIdentityFile /x\nConnectTimeout 4\n");
  EXPECT_EQ(target.user.value, "yaml");
  EXPECT_EQ(target.user.origin, "configs.yaml:5");
  EXPECT_EQ(target.port.value, 8);
  EXPECT_EQ(target.port.origin, "configs.yaml:6");
  ASSERT_EQ(target.identities.size(), 1U);
  EXPECT_EQ(target.identities[0].value, "/yaml/key");
  EXPECT_EQ(target.connect_timeout_s.value, 3);
  config.connect_timeout_s = 10;  // the default, set explicitly
  EXPECT_EQ(resolved("ConnectTimeout 4\n").connect_timeout_s.value, 10);
}

TEST_F(TargetTest, JumpHostsBecomeAChain) {
  server.proxy_jump = "u@first:2201,[::1]:2202,third";
  const Target target = resolved("Host third\n HostName 3.3.3.3\n User tu\n ProxyJump ignored\n");
  ASSERT_EQ(target.jumps.size(), 3U);
  EXPECT_EQ(target.jumps[0].describe(), "u@first:2201");
  EXPECT_EQ(target.jumps[1].host.value, "::1");
  EXPECT_EQ(target.jumps[1].port.value, 2202);
  EXPECT_EQ(target.jumps[2].describe(), "tu@3.3.3.3:22");
  server.proxy_jump.reset();
  EXPECT_EQ(resolved("Host alias\n ProxyJump ssh://u@gate:2200\n").jumps.at(0).describe(), "u@gate:2200");
}

TEST_F(TargetTest, TheFirstHopMayBeBehindOthers) {
  const Target target =
      resolved("Host alias\n ProxyJump near\nHost near\n ProxyJump far\n User n\nHost far\n User f\n");
  ASSERT_EQ(target.jumps.size(), 2U);
  EXPECT_EQ(target.jumps[0].describe(), "f@far:22");
  EXPECT_EQ(target.jumps[1].describe(), "n@near:22");
}

TEST_F(TargetTest, NoneSwitchesAProxyOff) {
  server.proxy_jump = "none";
  EXPECT_TRUE(resolved("ProxyJump gate\n").jumps.empty());
  server.proxy_jump.reset();
  EXPECT_EQ(resolved("ProxyCommand none\n").proxy_command.value, "");
  EXPECT_EQ(resolved("ProxyCommand nc %h %p\n").proxy_command.value, "nc alias 22");
}

TEST_F(TargetTest, NonsenseIsAUsageError) {
  const auto kind = [&](const std::string& text) {
    try {
      resolved(text);
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::failure;
  };
  EXPECT_EQ(kind("Host alias\n ProxyJump near\nHost near\n ProxyJump alias\n"), ErrorKind::usage);
  EXPECT_EQ(kind("Port 99999\n"), ErrorKind::usage);
  EXPECT_EQ(kind("ProxyJump [::1\n"), ErrorKind::usage);
  EXPECT_EQ(kind("ProxyJump user@\n"), ErrorKind::usage);
}

}  // namespace
}  // namespace remote::ssh
