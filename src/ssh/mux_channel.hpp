#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>

#include "ssh/channel_handle.hpp"
#include "ssh/connection.hpp"
#include "ssh/mux_socket.hpp"

namespace remote::ssh {

// A master has no word for a signal that ended a command; OpenSSH's own client says this.
inline constexpr int untold_exit_code = 255;

// What one session or TCP connection over a master is doing: a control socket of its own, and the descriptors
// that the master reads from and writes to. MuxConnection drives it; the handle that callers hold
// (MuxChannel) may go away at any time, also from within the sink.
class MuxState {
 public:
  // A session that runs `command`. These throw Error when the master is gone.
  MuxState(const std::filesystem::path& socket, std::string command, Sink sink);
  // A TCP connection from the server.
  MuxState(const std::filesystem::path& socket, const std::string& host, int port, Sink sink);
  // One that has come to this machine (MuxReverse), and stands.
  MuxState(UniqueFd connection, Sink sink);
  MuxState(const MuxState&) = delete;
  MuxState& operator=(const MuxState&) = delete;

  // Opened ahead: keeps what it gets.
  void keep_as_spare() { spare_ = paused_ = true; }
  bool spare() const { return spare_; }
  // Makes a spare one that is used; false when it is of no use for this command.
  bool adopt(const std::string& command, const Sink& sink);
  // Takes what the master says of it; true when it said something.
  bool take_news();
  // Moves what can be moved; true when something was.
  bool serve();
  // Hands over all that has arrived.
  bool deliver();
  void add_to(std::vector<pollfd>& fds) const;
  // Nobody reads it any more.
  void release() { released_ = true; }
  // The master has closed it without a word of how it ended.
  bool ended_untold() const { return socket_ended() && !status_ && !refused(); }
  void set_status(ExitStatus status) { status_ = status; }

  bool opening() const { return phase_ == Phase::opening; }
  bool refused() const { return phase_ == Phase::refused; }
  const std::string& refusal() const { return refusal_; }
  bool released() const { return released_; }
  bool tcp() const { return tcp_; }
  bool output_ended() const { return !out_ && !err_; }
  bool finished() const {
    return refused() ||
           (output_ended() && (status_.has_value() || (tcp_ && socket_ended() && !(came_ && in_))));
  }
  const std::optional<ExitStatus>& status() const { return status_; }
  int control_fd() const { return socket_ ? socket_->fd() : -1; }
  bool socket_ended() const { return !socket_ || socket_->ended(); }

  std::size_t writable() const;
  void write(std::string_view data);
  void close_input();
  void pause(bool paused) { paused_ = paused; }

 private:
  enum class Phase { opening, open, refused };

  bool send_input();
  bool read_output(UniqueFd& fd, Stream stream);
  void refuse(std::string why);

  std::optional<mux::ControlSocket> socket_;
  std::string command_;
  bool tcp_ = false;
  bool came_ = false;  // from the server's side: in_ and out_ are one socket, and socket_ there is none
  Sink sink_;
  UniqueFd in_;   // what we write is the command's input
  UniqueFd out_;  // the command's output
  UniqueFd err_;
  std::vector<UniqueFd> given_;  // the master's ends, until it has them
  std::uint32_t session_ = 0;
  Phase phase_ = Phase::opening;
  std::string refusal_;
  std::string outgoing_;
  bool spare_ = false;
  bool paused_ = false;
  bool released_ = false;
  bool input_closed_ = false;
  std::optional<ExitStatus> status_;
};

using MuxChannel = ChannelHandle<MuxState>;

}  // namespace remote::ssh
