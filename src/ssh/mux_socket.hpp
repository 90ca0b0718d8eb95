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

// How long a master on this machine may take for an answer that needs no server.
inline constexpr std::chrono::milliseconds local_limit{2000};

// A connection to the control socket of an OpenSSH master. Non-blocking; one thread. It may carry one
// session, or several questions.
class ControlSocket {
 public:
  // Connects and says hello. Throws Error when nobody listens there, and when another user could have made
  // the socket or could replace it.
  explicit ControlSocket(const std::filesystem::path& path);

  // Hands over a message, and the descriptors that belong to it. Throws Error when the master is gone.
  void send(std::string_view message, std::initializer_list<int> descriptors = {});
  // The next message but for hello; nullopt when none has come. Throws Error for what no master says.
  std::optional<Message> receive();
  // The same, and waits for it; nullopt past the limit and at the end. Throws Interrupted.
  std::optional<Message> wait(std::chrono::milliseconds limit, const Cancel& cancel = Cancel());
  // The master has closed it.
  bool ended() const { return ended_; }
  int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
  std::string data_;
  bool greeted_ = false;
  bool ended_ = false;
};

// The pid of the master that answers at the other end; nullopt when none does in time.
std::optional<std::uint32_t> ask_alive(ControlSocket& socket, const Cancel& cancel = Cancel());
// Whether a master answers on this socket, one that this user may trust. Never throws but Interrupted.
bool answers(const std::filesystem::path& path, const Cancel& cancel = Cancel());
// Ends the master with all that runs over it, and waits until it has gone; false where none answers.
bool end_master(const std::filesystem::path& path);
// No further session begins over the master; those that it has go on.
void retire_master(const std::filesystem::path& path);

}  // namespace remote::ssh::mux
