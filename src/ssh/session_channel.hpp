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

// The state of one libssh channel. Its Session drives it with serve(). The handle that callers hold
// (SessionChannel) may be destroyed at any time, even from within the sink.
//
// libssh passes data to a callback, from within any call that reads the socket. The callback only copies the
// data. Sinks are called from serve(), so they may use the connection and may throw.
class ChannelState {
 public:
  // A session channel that runs `command`. With `forward_agent`, the command may use our SSH agent (see
  // AgentRelay).
  ChannelState(ssh_session session, std::string command, Sink sink, bool forward_agent = false);
  // A channel to a TCP port, which the server resolves.
  ChannelState(ssh_session session, std::string host, int port, Sink sink);
  // A channel that the server has opened.
  ChannelState(ssh_session session, ChannelPtr channel, Sink sink);
  ~ChannelState();
  ChannelState(const ChannelState&) = delete;
  ChannelState& operator=(const ChannelState&) = delete;

  // Marks a channel that was opened ahead of time, or that nobody reads yet; it keeps its output until it is
  // used.
  void keep_as_spare() { spare_ = paused_ = true; }
  bool spare() const { return spare_; }
  // Starts using a spare channel for `command`. Returns false if it does not fit.
  bool adopt(const std::string& command, const Sink& sink);
  // Makes it a spare channel again, for the next use of its command: see Channel::park().
  bool park();
  bool is_resumed() const { return is_resumed_; }
  // Makes progress and passes received data to the sink. Returns true if anything was done.
  bool serve();
  // Continues to open the channel or to request the command. Returns true on progress.
  bool proceed();
  // Passes on received data without using the connection, which is lost.
  bool deliver();
  // Call this when the handle is destroyed. The channel is closed as soon as possible.
  void release();

  bool opening() const { return phase_ == Phase::opening; }
  // Why the server refused to open it; empty if it did not.
  const std::string& refusal() const { return refusal_; }
  bool released() const { return released_; }
  // Returns true once after the channel was closed at its end, even if the handle still exists.
  bool take_closed() { return std::exchange(close_news_, false); }
  bool output_ended() const;
  bool finished() const;
  std::size_t writable() const;
  void write(std::string_view data);
  void close_input();
  void pause(bool paused) { paused_ = paused; }
  const std::optional<ExitStatus>& status() const { return status_; }
  // The number of bytes kept in memory because the channel is paused.
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
  std::array<std::size_t, 2> held_{};  // bytes still held by libssh, by stream
  std::string outgoing_;               // bytes that libssh has not accepted yet, because it is re-keying
  bool spare_ = false;
  bool is_resumed_ = false;
  bool paused_ = false;
  bool input_closed_ = false;
  bool eof_sent_ = false;
  bool remote_closed_ = false;
  bool closed_ = false;  // by this side, after the end
  bool close_news_ = false;
  bool released_ = false;
  std::optional<ExitStatus> status_;
};

using SessionChannel = ChannelHandle<ChannelState>;

}  // namespace remote::ssh
