#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "config/config.hpp"
#include "sandbox/sandbox.hpp"

namespace remote::test {

// Practice servers for a test, in a temporary project folder whose path has a space. The destructor stops all
// of their processes, and fails the test if it cannot.
class TestSandbox {
 public:
  explicit TestSandbox(int nodes, sandbox::SandboxOptions options = {});
  ~TestSandbox();
  TestSandbox(const TestSandbox&) = delete;
  TestSandbox& operator=(const TestSandbox&) = delete;

  const std::filesystem::path& project() const { return project_; }
  std::filesystem::path masters() const { return temporary_.path() / "m"; }
  sandbox::Sandbox& sandbox() { return sandbox_; }
  const std::vector<sandbox::SandboxServer>& servers() const { return servers_; }
  const std::filesystem::path& home(std::size_t index) const { return servers_.at(index).home; }

  // The servers as they would be in configs.yaml: address, port, user, key, known_hosts; python: system.
  config::Config config() const;
  // Writes the same as configs.yaml in the project, for tests that run the program.
  void write_config() const;

  // The arguments of an ssh(1) command that connects to a server: {"ssh", …, "127.0.0.1"}; add the command.
  std::vector<std::string> ssh_command(std::size_t index) const;
  // Runs a command on the server with ssh(1).
  ExecResult ssh(std::size_t index, const std::string& command, const std::string& input = {}) const;

 private:
  TempFolder temporary_;
  std::filesystem::path project_;
  sandbox::Sandbox sandbox_;
  std::vector<sandbox::SandboxServer> servers_;
};

}  // namespace remote::test
