#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "server/agent_command.hpp"
#include "support/local_connection.hpp"

namespace remote::test {

// One start of the agent.
struct AgentStart {
  std::vector<std::string> lines;  // of its output, without empty lines
  std::size_t empty_lines = 0;
  bool needed = false;  // whether the installation was sent
  bool has_xz = false;  // and whether it was compressed
  std::string place;    // path of the running executable, from /proc; "" if it does not run
  std::vector<std::string> environment;
  std::vector<std::string> open_files;
  bool answered = false;  // whether it answered its first request
  std::string err;
  int status = 0;

  bool runs() const { return answered; }
  // The reasons in its last line; "" if the last line is something else.
  std::string failure() const;
};

// A server without the agent: a home directory, a PATH and one of the shells as /bin/sh.
class AgentServer {
 public:
  explicit AgentServer(ServerShell shell);

  AgentStart start();

  const std::filesystem::path& root() const { return temp_.path(); }
  std::filesystem::path home() const { return root() / "home"; }
  std::filesystem::path cache() const { return home() / ".cache/remote"; }
  std::filesystem::path version() const { return cache() / agent.digest; }
  std::filesystem::path program() const { return version() / "remote-agent"; }
  // Replaces PATH with a folder that has all tools of bootstrap.sh except these.
  void remove_tools(const std::vector<std::string>& names);
  // Runs the login shell in a mount namespace, after these commands.
  void set_mounts(const std::string& commands);

  server::Agent agent = *server::find_agent(own_architecture());
  std::vector<std::string> before;  // prefix of the login shell's command line
  std::vector<std::string> login_shell{"sh"};
  std::map<std::string, std::string> environment;
  std::string folder;  // `agent:` in the configuration
  std::string bin;
  std::function<void(std::string&)> change = [](std::string&) {};  // applied to all data sent

  static std::string own_architecture();

 private:
  TempFolder temp_{"remote-agent-"};
  std::filesystem::path shell_;
};

}  // namespace remote::test
