#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "ssh/connection.hpp"
#include "ssh/connector.hpp"

namespace remote::test {

// The sh and tools of a simulated server. bash is called as sh (POSIX mode). busybox also uses its own tools,
// and GNU tools only for what it lacks.
enum class ServerShell { dash, bash, busybox };
std::string to_string(ServerShell shell);

// The faults to inject. Commands are counted over all servers and connections, from 1; 0 means never. After a
// fault the connection is dead: every further use of it throws ssh::Unreachable.
struct Faults {
  int before = 0;  // this command never reaches the server
  int after = 0;   // this command runs to completion, but its answer never arrives
  int cut = 0;     // the link breaks after cut_bytes of this command's output
  std::size_t cut_bytes = 0;
  bool lost_packets = false;                  // the cause of the broken link
  int connect = 0;                            // this call of connect() fails
  std::vector<std::string> unreachable = {};  // connect() to these servers fails
  int max_channels = 10;                      // sshd's MaxSessions: more at a time throw ssh::TooManyChannels
};

// Simulated servers on this machine, without ssh. Each name has a temporary home folder. A local shell runs
// the commands as sshd would (own session, pipes, no terminal). The destructor kills the processes they leave
// behind. connect() and the counters are thread-safe; a connection belongs to one thread, like a real one.
class LocalServers : public ssh::Connector {
 public:
  explicit LocalServers(ServerShell shell = ServerShell::dash);
  ~LocalServers() override;

  std::unique_ptr<ssh::Connection> connect(const config::Server& server, const Cancel& cancel,
                                           ssh::ConnectLimit limit = {}) override;
  std::unique_ptr<ssh::Connection> connect(const std::string& name);
  // Checks the server's ~/.ssh/authorized_keys, like sshd.
  std::unique_ptr<ssh::Connection> connect_with_key(const config::Server& server,
                                                    const std::filesystem::path& key,
                                                    const Cancel& cancel) override;

  // A server's home folder; created on first use.
  std::filesystem::path home(const std::string& name);
  // The first folder in the PATH of every command: tests may add programs. If it has a file `hang`, a new
  // command hangs before it answers.
  std::filesystem::path bin() const;
  // Adds or replaces a program in bin(): a shell script without its first line.
  void add_program(const std::string& name, const std::string& body);
  // Sets a variable in the environment of later logins.
  void set_variable(const std::string& name, const std::string& value);
  // A simulated nvidia-smi that answers from the files in this folder (tests/data/gpus) and logs its
  // arguments to `log`.
  void add_nvidia_smi(const std::filesystem::path& folder, const std::filesystem::path& log = {});
  // Like add_nvidia_smi, with this many GPUs.
  void add_gpus(int count);

  void set_faults(const Faults& faults);
  int commands() const;  // the number of commands counted so far
  // Processes whose HOME is on one of these servers, without zombies.
  std::vector<int> processes() const;
  // How many of them run this program: the first word of their command line.
  std::ptrdiff_t count_running(const std::string& program) const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

// Replaces the result of make_connector(); shares `servers`.
std::unique_ptr<ssh::Connector> share(std::shared_ptr<LocalServers> servers);

}  // namespace remote::test
