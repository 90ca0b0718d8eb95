#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <libssh/callbacks.h>

#include "ssh/channel_handle.hpp"
#include "ssh/connection.hpp"
#include "ssh/libssh.hpp"

namespace remote::ssh {

// What one libssh channel is doing. Its Session drives it with serve(); the handle that callers hold
// (SessionChannel) may go away at any time, also from within the sink.
//
// libssh hands over data in a callback, from inside whatever call reads the socket. The callback only copies:
// sinks are called from serve(), so that they may use the connection and may throw.
class ChannelState {
 public:
  // A session channel that runs `command`, which may use our SSH agent (see AgentRelay) with `forward_agent`.
  ChannelState(ssh_session session, std::string command, Sink sink, bool forward_agent = false);
  // A channel to a TCP port as the server sees it.
  ChannelState(ssh_session session, std::string host, int port, Sink sink);
  // One that the server has opened.
  ChannelState(ssh_session session, ChannelPtr channel, Sink sink);
  ~ChannelState();
  ChannelState(const ChannelState&) = delete;
  ChannelState& operator=(const ChannelState&) = delete;

  // Opened ahead, for a command that comes later or for one that nobody reads yet: keeps what it gets.
  void keep_as_spare() { spare_ = paused_ = true; }
  bool spare() const { return spare_; }
  // Makes a spare channel one that is used for `command`; false when it is of no use for that.
  bool adopt(const std::string& command, const Sink& sink);
  // Makes it a spare one again, for the next use of its command: see Channel::park().
  bool park();
  bool is_resumed() const { return is_resumed_; }
  // Goes on with what is under way and hands what arrived to the sink; true when something was done.
  bool serve();
  // Opens, or asks for the command; true when that went on.
  bool proceed();
  // Hands over what arrived without touching the link, which is gone.
  bool deliver();
  // The handle is gone: the channel is closed as soon as that is possible.
  void release();

  bool opening() const { return phase_ == Phase::opening; }
  // Why the server refused to open it; empty when it did not.
  const std::string& refusal() const { return refusal_; }
  bool released() const { return released_; }
  // True once after it was closed because it ended, though the handle may live on.
  bool take_closed() { return std::exchange(close_news_, false); }
  bool output_ended() const;
  bool finished() const;
  std::size_t writable() const;
  void write(std::string_view data);
  void close_input();
  void pause(bool paused) { paused_ = paused; }
  const std::optional<ExitStatus>& status() const { return status_; }
  // Bytes that wait in memory because the channel is paused.
  std::size_t held() const { return held_[0] + held_[1]; }
  ssh_channel raw() const { return channel_; }

 private:
  enum class Phase { opening, requesting, open, refused };
  struct Piece {
    Stream stream;
    std::string data;
  };

  void start();
  void listen_to_channel();
  bool request_command();
  void keep(Stream stream, std::string_view data);
  bool send_input();
  bool read_held();
  int take(Stream stream, std::string_view data);

  ssh_session session_;
  ssh_channel channel_ = nullptr;
  ssh_channel_callbacks_struct callbacks_{};
  std::string command_;
  std::string host_;
  int port_ = 0;
  bool forward_agent_ = false;
  Sink sink_;
  Phase phase_ = Phase::opening;
  std::string refusal_;
  std::deque<Piece> arrived_;
  std::size_t arrived_bytes_ = 0;
  std::array<std::size_t, 2> held_{};  // bytes left with libssh, by stream
  std::string outgoing_;               // bytes that libssh did not take yet (it re-keys)
  bool spare_ = false;
  bool is_resumed_ = false;
  bool paused_ = false;
  bool input_closed_ = false;
  bool eof_sent_ = false;
  bool remote_closed_ = false;
  bool closed_ = false;  // by us, after the end
  bool close_news_ = false;
  bool released_ = false;
  std::optional<ExitStatus> status_;
};

using SessionChannel = ChannelHandle<ChannelState>;

}  // namespace remote::ssh
