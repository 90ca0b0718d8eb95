#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <remote/cancel.hpp>

#include "ssh/connector.hpp"
#include "ssh/mux_connection.hpp"
#include "ssh/target.hpp"

namespace remote::ssh {

// How a master is opened.
struct OpenMaster {
  std::chrono::seconds open_for{600};  // without a command over it
  bool on_terminal = false;            // ssh may ask its questions on this process's terminal
};

// OpenSSH masters: those that are open, the user's own and ours, and ssh processes that open ours. Ours have
// their control sockets in one folder of the user, one for each user, host, port and way there; more where
// one master has as many sessions as the server takes (MaxSessions). Any thread.
class Masters {
 public:
  // Empty paths: the user's own folder, and what ssh reads by itself.
  explicit Masters(std::filesystem::path folder = {}, std::filesystem::path user_config = {})
      : folder_(std::move(folder)), user_config_(std::move(user_config)) {}

  // A connection over a master that is open and whose server has answered; nullptr where there is none, or
  // where the server takes no further session over it (`full` then says so). One of ours whose server does
  // not answer is given up. Throws Interrupted.
  std::unique_ptr<MuxConnection> connect(const Target& target, const Cancel& cancel, ConnectLimit limit,
                                         bool* full = nullptr) const;
  // Opens ours for this server, and before it those of its jump hosts; returns once it answers. Throws Error
  // of Cause::auth where ssh could not log in: a question may help. One process at a time opens one.
  void open(const Target& target, const OpenMaster& how, const Cancel& cancel) const;
  // Opens one more beside those whose server takes no further session. Throws Error where it would have to
  // ask a question, or where there are as many as we open.
  void open_further(const Target& target, const Cancel& cancel) const;
  // Whether ours is open; how long it stays so without a command over it.
  std::optional<std::chrono::seconds> open_for(const Target& target) const;
  // Whether a master answers for it, ours or the user's own.
  bool any_open(const Target& target) const;
  // Ends all of ours; false where none is open.
  bool close(const Target& target) const;

 private:
  std::filesystem::path folder() const;
  void require_folder() const;
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
};

// All sessions of the open masters are taken, and `why` there is no further one.
Error all_taken(const std::string& why);

// The target of a jump host, which is behind those before it.
Target jump_of(const Target& target, std::size_t index);

}  // namespace remote::ssh
