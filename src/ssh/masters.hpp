#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <remote/cancel.hpp>

#include "ssh/connector.hpp"
#include "ssh/mux_connection.hpp"
#include "ssh/target.hpp"

namespace remote::ssh {

struct OpenMaster {
  std::chrono::seconds open_for{600};  // how long it stays open without a command
  bool on_terminal = false;            // ssh may ask questions on this process's terminal
};

// Finds open OpenSSH masters, both the user's own and ours, and starts ssh processes that open ours. The
// control sockets of ours are in one folder of the user, one for each combination of user, host, port and
// transport; there are several if one master reaches the server's limit of sessions (MaxSessions). Any
// thread.
class Masters {
 public:
  // Empty paths stand for the user's own folder, and for the configuration that ssh reads by default.
  explicit Masters(std::filesystem::path folder = {}, std::filesystem::path user_config = {})
      : folder_(std::move(folder)), user_config_(std::move(user_config)) {}

  // A connection over an open master whose server has answered. Returns nullptr if there is none, or if the
  // server allows no further session over it, in which case `full` is set. If the server does not answer over
  // one of our masters, that master is given up. Throws Interrupted.
  std::unique_ptr<MuxConnection> connect(const Target& target, const Cancel& cancel, ConnectLimit limit,
                                         bool* full = nullptr) const;
  // Opens our master for this server, after those of its jump hosts, and returns once it answers. Throws
  // Error with Cause::auth if ssh could not log in, in which case asking the user may help. Only one process
  // at a time opens one.
  void open(const Target& target, const OpenMaster& how, const Cancel& cancel) const;
  // Opens another master in addition to those whose server allows no further session. Throws Error if it
  // would have to ask a question, or if the maximum number is open.
  void open_further(const Target& target, const Cancel& cancel) const;
  // How long our master stays open without a command; nullopt if it is not open.
  std::optional<std::chrono::seconds> open_for(const Target& target) const;
  // Whether a master, ours or the user's own, answers for this server.
  bool any_open(const Target& target) const;
  // Stops all of our masters for this server. Returns false if none is open.
  bool close(const Target& target) const;

 private:
  std::filesystem::path folder() const;
  void require_folder() const;
  // Removes what masters that have ended, or processes that were killed while they opened one, left beside
  // their sockets. Does so once.
  void remove_leftovers() const;
  std::filesystem::path socket_of(const Target& target) const;
  static std::unique_ptr<MuxConnection> connect_over(const std::filesystem::path& path, bool ours,
                                                     const Target& target, const Cancel& cancel,
                                                     std::chrono::milliseconds limit, bool& full);
  std::vector<std::filesystem::path> sockets_of(const Target& target) const;
  std::vector<std::string> command(const Target& target, const OpenMaster& how,
                                   const std::filesystem::path& socket) const;
  void start(const Target& target, const OpenMaster& how, const Cancel& cancel,
             const std::filesystem::path& socket) const;

  std::filesystem::path folder_;
  std::filesystem::path user_config_;
  mutable std::once_flag leftovers_removed_;
};

// The error if all sessions of the open masters are taken. `why`: the reason why no other one can be opened.
Error all_taken(const std::string& why);

// The target of a jump host, which is reached through the jump hosts before it.
Target jump_of(const Target& target, std::size_t index);

}  // namespace remote::ssh
