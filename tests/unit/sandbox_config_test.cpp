#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.hpp"
#include "config/config.hpp"
#include "config/init_templates.hpp"
#include "sandbox/config.hpp"
#include "sandbox/node.hpp"

namespace remote::sandbox {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

SandboxServer server(int number, int port) {
  SandboxServer result;
  result.name = "node-" + std::to_string(number);
  result.port = port;
  return result;
}

// A project whose sandbox folder exists, as after up().
struct Project {
  Project() { make_folders(sandbox.folder()); }
  TempFolder temporary;
  Sandbox sandbox{temporary.path()};
  fs::path file = temporary.path() / ".remote/configs.yaml";
};

TEST(SandboxConfig, WordOfSshdConfigIsQuoted) {
  EXPECT_EQ(sshd_word("/a b"), "\"/a b\"");
  EXPECT_EQ(sshd_word("/a\"b\\c"), "\"/a\\\"b\\\\c\"");
  EXPECT_ANY_THROW(sshd_word("/a\nPermitEmptyPasswords yes"));
}

TEST(SandboxConfig, ServersAreWrittenWithEverythingAConnectionNeeds) {
  EXPECT_EQ(sandbox_servers_yaml({server(1, 20001)}, "ann"),
            "servers:\n"
            "  node-1:\n"
            "    hostname: 127.0.0.1\n"
            "    port: 20001\n"
            "    username: ann\n"
            "    private_key: ./.remote/sandbox/id_ed25519\n"
            "    known_hosts: ./.remote/sandbox/known_hosts\n");
  EXPECT_THAT(sandbox_servers_yaml({server(1, 20001)}, "42"), HasSubstr("username: \"42\"\n"));
}

TEST(SandboxConfig, ServerCountsAsNamedByAddressAndPort) {
  config::Config config;
  config::Server entry;
  entry.name = "mine";
  entry.hostname = "localhost";
  entry.port = 20001;
  config.servers = {entry};
  entry.hostname = "10.0.0.1";
  entry.port = 20002;
  config.servers.push_back(entry);
  const auto lacking = not_in_config(config, {server(1, 20001), server(2, 20002)});
  ASSERT_EQ(lacking.size(), 1U);
  EXPECT_EQ(lacking[0].name, "node-2");
}

TEST(SandboxConfig, IsCreatedAndKeptUpToDateUntilSomebodyEditsIt) {
  Project project;
  EXPECT_EQ(settle_config(project.sandbox, {server(1, 20001)}).state, SandboxConfigState::created);
  EXPECT_TRUE(fs::exists(project.temporary.path() / ".remote/exclude.txt"));
  EXPECT_EQ(settle_config(project.sandbox, {server(1, 20001)}).state, SandboxConfigState::names_all);
  EXPECT_EQ(settle_config(project.sandbox, {server(1, 20009)}).state, SandboxConfigState::updated);
  EXPECT_THAT(read_file(project.file), HasSubstr("port: 20009"));

  const std::string edited = read_file(project.file) + "# my note\n";
  write_file_atomic(project.file, edited);
  settle_config(project.sandbox, {server(1, 20010)});
  EXPECT_EQ(read_file(project.file), edited);
}

TEST(SandboxConfig, TakesTheExamplesPlaceInWhatInitWrote) {
  Project project;
  write_file_atomic(project.file, "name: mine\n" + std::string(config::config_server_example) +
                                      std::string(config::config_tail));
  EXPECT_EQ(settle_config(project.sandbox, {server(1, 20001)}).state, SandboxConfigState::updated);
  const config::Config config = config::load(project.temporary.path());
  EXPECT_EQ(config.name, "mine");
  ASSERT_EQ(config.servers.size(), 1U);
  EXPECT_EQ(config.servers[0].port, 20001);
  EXPECT_EQ(config.python.manager, config::PythonManager::venv);
}

TEST(SandboxConfig, WhatInitWroteIsKeptAndComesBack) {
  Project project;
  const std::string former =
      "name: mine\n" + std::string(config::config_server_example) + std::string(config::config_tail);
  write_file_atomic(project.file, former);
  settle_config(project.sandbox, {server(1, 20001)});
  // A later `up` changes only the servers.
  EXPECT_EQ(settle_config(project.sandbox, {server(1, 20001), server(2, 20002)}).state,
            SandboxConfigState::updated);
  const config::Config config = config::load(project.temporary.path());
  EXPECT_EQ(config.name, "mine");
  EXPECT_EQ(config.servers.size(), 2U);
  EXPECT_EQ(undo_config(project.sandbox), UndoneConfig::restored);
  EXPECT_EQ(read_file(project.file), former);
  EXPECT_EQ(undo_config(project.sandbox), UndoneConfig::left) << "it is not the sandbox's any more";
}

TEST(SandboxConfig, WhatInitWroteStaysAsTheUserEditedItSince) {
  Project project;
  write_file_atomic(project.file, std::string(config::config_server_example));
  settle_config(project.sandbox, {server(1, 20001)});
  const std::string edited = read_file(project.file) + "# my note\n";
  write_file_atomic(project.file, edited);
  EXPECT_EQ(undo_config(project.sandbox), UndoneConfig::left);
  EXPECT_EQ(read_file(project.file), edited);
}

TEST(SandboxConfig, AnOldCopyIsNotTakenForWhatANewFileWas) {
  Project project;
  write_file_atomic(project.file, std::string(config::config_server_example));
  settle_config(project.sandbox, {server(1, 20001)});
  fs::remove(project.file);
  settle_config(project.sandbox, {server(1, 20001)});
  EXPECT_EQ(undo_config(project.sandbox), UndoneConfig::removed);
}

TEST(SandboxConfig, NamesThePortsOfPracticeServersAlone) {
  Project project;
  EXPECT_TRUE(ports_in_config(project.sandbox).empty());
  write_file_atomic(project.file, sandbox_servers_yaml({server(1, 20001), server(3, 20003)}, "ann") +
                                      "  real:\n    hostname: 127.0.0.1\n    port: 20004\n");
  const std::map<std::string, int> ports = {{"node-1", 20001}, {"node-3", 20003}};
  EXPECT_EQ(ports_in_config(project.sandbox), ports);
}

TEST(SandboxConfig, ForeignFileIsLeftAlone) {
  Project project;
  write_file_atomic(project.file, "servers: [broken\n");
  const auto result = settle_config(project.sandbox, {server(1, 20001)});
  EXPECT_EQ(result.state, SandboxConfigState::lacks_some);
  EXPECT_EQ(result.lacking.size(), 1U);
  EXPECT_TRUE(result.problem);
  EXPECT_EQ(read_file(project.file), "servers: [broken\n");
  EXPECT_EQ(undo_config(project.sandbox), UndoneConfig::left);
  EXPECT_TRUE(fs::exists(project.file));
}

TEST(SandboxConfig, OwnFileCanBeRemoved) {
  Project project;
  settle_config(project.sandbox, {server(1, 20001)});
  EXPECT_EQ(undo_config(project.sandbox), UndoneConfig::removed);
  EXPECT_FALSE(fs::exists(project.file));
}

}  // namespace
}  // namespace remote::sandbox
