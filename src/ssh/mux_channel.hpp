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

// A master cannot report the signal that ended a command. OpenSSH's own client returns this code then.
inline constexpr int untold_exit_code = 255;

// The state of one session or TCP connection over a master: its control socket, and the descriptors that the
// master reads from and writes to. MuxConnection drives it. The handle that callers hold (MuxChannel) may be
// destroyed at any time, even from within the sink.
class MuxState {
 public:
  // A session that runs `command`. This and the next constructor throw Error if the master is gone.
  MuxState(const std::filesystem::path& socket, std::string command, Sink sink);
  // A TCP connection that the server opens.
  MuxState(const std::filesystem::path& socket, const std::string& host, int port, Sink sink);
  // An established connection that was forwarded to this machine (MuxReverse).
  MuxState(UniqueFd connection, Sink sink);
  MuxState(const MuxState&) = delete;
  MuxState& operator=(const MuxState&) = delete;

  // Marks a session that was opened ahead of time; it keeps its output until it is used.
  void keep_as_spare() { spare_ = paused_ = true; }
  bool spare() const { return spare_; }
  // Starts using a spare session. Returns false if it does not fit this command.
  bool adopt(const std::string& command, const Sink& sink);
  // Reads the master's messages about it. Returns true if there were any.
  bool take_news();
  // Transfers data. Returns true if any was transferred.
  bool serve();
  // Passes all received output to the sink.
  bool deliver();
  void add_to(std::vector<pollfd>& fds) const;
  // Call this when no caller reads it any more.
  void release() { released_ = true; }
  // Whether the master has closed it without reporting how it ended.
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
  bool came_ = false;  // the connection was opened from the server's side: in_ and out_ are the same socket,
                       // and socket_ is empty
  Sink sink_;
  UniqueFd in_;   // we write the command's input to it
  UniqueFd out_;  // the command's output
  UniqueFd err_;
  std::vector<UniqueFd> given_;  // the master's ends, kept until the master has them
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
