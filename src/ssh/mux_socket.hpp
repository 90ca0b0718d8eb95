#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include <remote/cancel.hpp>

#include "base/files.hpp"
#include "ssh/mux_protocol.hpp"

namespace remote::ssh::mux {

// The time limit for a master on this machine to give an answer that does not involve the server.
inline constexpr std::chrono::milliseconds local_limit{2000};

// A connection to the control socket of an OpenSSH master. It is non-blocking and not thread-safe. It can
// carry one session, or several requests.
class ControlSocket {
 public:
  // Connects and sends hello. Throws Error if no process listens there, or if another user could have created
  // or could replace the socket.
  explicit ControlSocket(const std::filesystem::path& path);

  // Sends a message, and the descriptors that belong to it. Throws Error if the master is gone.
  void send(std::string_view message, std::initializer_list<int> descriptors = {});
  // The next message except hello; nullopt if none has arrived. Throws Error if no master could have sent it.
  std::optional<Message> receive();
  // Like receive(), but waits for the message; nullopt after the limit and at EOF. Throws Interrupted.
  std::optional<Message> wait(std::chrono::milliseconds limit, const Cancel& cancel = Cancel());
  // Whether the master has closed the connection.
  bool ended() const { return ended_; }
  int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
  std::string data_;
  bool greeted_ = false;
  bool ended_ = false;
};

// The pid of the master that answers on this socket; nullopt if none does in time.
std::optional<std::uint32_t> ask_alive(ControlSocket& socket, const Cancel& cancel = Cancel());
// Whether a master that this user can trust answers on this socket. Throws nothing except Interrupted.
bool answers(const std::filesystem::path& path, const Cancel& cancel = Cancel());
// Stops the master with everything that runs over it, and waits until it has exited. Returns false if none
// answers.
bool end_master(const std::filesystem::path& path);
// Lets no further session start over the master. Its existing sessions continue.
void retire_master(const std::filesystem::path& path);

}  // namespace remote::ssh::mux
