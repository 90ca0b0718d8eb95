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

// Whose sh and tools a pretended server has: bash is called as sh (its POSIX mode); busybox brings its own
// tools too and nothing of GNU's but what it lacks.
enum class ServerShell { dash, bash, busybox };
std::string to_string(ServerShell shell);

// What shall go wrong. Commands are counted over all servers and connections, from 1; 0 means never. After a
// fault that connection is dead: every further use of it throws ssh::Unreachable.
struct Faults {
  int before = 0;  // this command never reaches the server
  int after = 0;   // this command runs to its end, but its answer never arrives
  int cut = 0;     // this command's link breaks once cut_bytes of its output have arrived
  std::size_t cut_bytes = 0;
  bool lost_packets = false;                  // what breaks the link
  int connect = 0;                            // this call of connect() fails
  std::vector<std::string> unreachable = {};  // calls of connect() to servers of these names fail
  int max_channels = 10;                      // sshd's MaxSessions: more at a time throw ssh::TooManyChannels
};

// Pretended servers on this machine, without ssh: one temporary home folder a name, commands run by a local
// shell as sshd would (a session of its own, pipes, no terminal). What they leave running is ended by the
// destructor. connect() and the counters may be used by several threads; a connection belongs to one, as the
// real one.
class LocalServers : public ssh::Connector {
 public:
  explicit LocalServers(ServerShell shell = ServerShell::dash);
  ~LocalServers() override;

  std::unique_ptr<ssh::Connection> connect(const config::Server& server, const Cancel& cancel,
                                           ssh::ConnectLimit limit = {}) override;
  std::unique_ptr<ssh::Connection> connect(const std::string& name);
  // Looks into the server's ~/.ssh/authorized_keys, as sshd does.
  std::unique_ptr<ssh::Connection> connect_with_key(const config::Server& server,
                                                    const std::filesystem::path& key,
                                                    const Cancel& cancel) override;

  // A server's home folder; made when first named.
  std::filesystem::path home(const std::string& name);
  // Put first into every command's PATH: tests may add programs.
  // A command that begins while there is a file `hang` in it hangs before it answers.
  std::filesystem::path bin() const;
  // A program of this name there, or another in its place: a script without its first line.
  void add_program(const std::string& name, const std::string& body);
  // In the environment of each later login.
  void set_variable(const std::string& name, const std::string& value);
  // A pretended nvidia-smi that answers from the files of this folder (tests/data/gpus), and writes into
  // `log` what it was asked.
  void add_nvidia_smi(const std::filesystem::path& folder, const std::filesystem::path& log = {});
  // The same, with so many GPUs.
  void add_gpus(int count);

  void set_faults(const Faults& faults);
  int commands() const;  // how many have been counted
  // Processes whose HOME is one of these servers', zombies left out.
  std::vector<int> processes() const;
  // How many of them run this program: the first word of their command line.
  std::ptrdiff_t count_running(const std::string& program) const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

// A stand-in for make_connector()'s result that shares `servers`.
std::unique_ptr<ssh::Connector> share(std::shared_ptr<LocalServers> servers);

}  // namespace remote::test
