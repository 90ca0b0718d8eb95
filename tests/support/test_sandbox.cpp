#include "support/test_sandbox.hpp"

#include <fstream>
#include <utility>

#include <gtest/gtest.h>
#include <remote/error.hpp>

#include "sandbox/config.hpp"
#include "support/test_sshd.hpp"

namespace remote::test {
namespace fs = std::filesystem;

TestSandbox::TestSandbox(int nodes, sandbox::SandboxOptions options)
    : temporary_("remote sandbox "), project_(temporary_.path() / "my project"), sandbox_(project_) {
  make_folders(project_ / ".remote");
  options.nodes = nodes;
  try {
    servers_ = sandbox_.up(options);
  } catch (...) {
    sandbox_.down();  // the destructor does not run if the constructor throws
    throw;
  }
}

TestSandbox::~TestSandbox() {
  try {
    sandbox_.down();
  } catch (const Error& error) {
    ADD_FAILURE() << "the sandbox could not be taken down: " << error.message();
  }
}

config::Config TestSandbox::config() const {
  config::Config config;
  config.project = project_;
  config.file = project_ / ".remote/configs.yaml";
  config.name = "my_project";
  config.python.manager = config::PythonManager::system;
  config.python.manager_given = true;
  config.connect_by = over_openssh() ? config::ConnectBy::openssh : config::ConnectBy::automatic;
  for (const sandbox::SandboxServer& server : servers_) {
    config::Server entry;
    entry.name = server.name;
    entry.hostname = "127.0.0.1";
    entry.port = server.port;
    entry.username = local_user();
    entry.private_key = sandbox_.private_key();
    entry.known_hosts = sandbox_.known_hosts();
    config.servers.push_back(std::move(entry));
  }
  return config;
}

void TestSandbox::write_config() const {
  std::ofstream file(project_ / ".remote/configs.yaml");
  const config::Config now = config();
  file << "name: my_project\npython: {manager: system}\nconnection: " << to_string(now.connect_by)
       << "\nservers:\n";
  for (const auto& server : now.servers) {
    file << "  " << server.name << ": {hostname: 127.0.0.1, port: " << *server.port
         << ", username: " << *server.username << ", private_key: .remote/sandbox/id_ed25519, "
         << "known_hosts: .remote/sandbox/known_hosts}\n";
  }
}

std::vector<std::string> TestSandbox::ssh_command(std::size_t index) const {
  return {"ssh",
          "-F",
          "none",
          "-o",
          "BatchMode=yes",
          "-o",
          "IdentitiesOnly=yes",
          "-o",
          "IdentityAgent=none",
          "-o",
          "StrictHostKeyChecking=yes",
          "-o",
          "UserKnownHostsFile=\"" + sandbox_.known_hosts().string() + "\"",
          "-i",
          sandbox_.private_key().string(),
          "-p",
          std::to_string(servers_.at(index).port),
          "127.0.0.1"};
}

ExecResult TestSandbox::ssh(std::size_t index, const std::string& command, const std::string& input) const {
  SubprocessSpec spec;
  spec.argv = ssh_command(index);
  spec.argv.push_back(command);
  return run_subprocess(spec, input);
}

}  // namespace remote::test
