#include "ssh/session_channel.hpp"

#include <algorithm>

namespace remote::ssh {
namespace {

// More data than this is left in libssh's buffer, so that the peer's window fills instead of our memory.
constexpr std::size_t arrived_limit = std::size_t{4} << 20U;

// If a signal has no name in SSH, sshd sends "SIG@openssh.com", so the number of the signal is unknown.
constexpr int unknown_signal_code = 255;

}  // namespace

ChannelState::ChannelState(ssh_session session, std::string command, Sink sink, bool forward_agent)
    : session_(session), command_(std::move(command)), forward_agent_(forward_agent), sink_(std::move(sink)) {
  start();
}

ChannelState::ChannelState(ssh_session session, std::string host, int port, Sink sink)
    : session_(session), host_(std::move(host)), port_(port), sink_(std::move(sink)) {
  start();
}

ChannelState::ChannelState(ssh_session session, ChannelPtr channel, Sink sink)
    : session_(session), channel_(channel.release()), sink_(std::move(sink)), phase_(Phase::open) {
  held_[0] = 1;  // so that data that has already arrived is requested from libssh
  listen_to_channel();
}

void ChannelState::start() {
  channel_ = ssh_channel_new(session_);
  if (channel_ == nullptr) {
    throw Unreachable("connection lost", last_error(session_, "the session is closed"),
                      "check the network and the server, then run the command again");
  }
  listen_to_channel();
  proceed();
}

void ChannelState::listen_to_channel() {
  callbacks_.userdata = this;
  callbacks_.channel_data_function = [](ssh_session, ssh_channel, void* data, std::uint32_t size,
                                        int is_stderr, void* self) {
    return static_cast<ChannelState*>(self)->take(is_stderr != 0 ? Stream::err : Stream::out,
                                                  {static_cast<const char*>(data), size});
  };
  callbacks_.channel_close_function = [](ssh_session, ssh_channel, void* self) {
    static_cast<ChannelState*>(self)->remote_closed_ = true;
  };
  callbacks_.channel_exit_status_function = [](ssh_session, ssh_channel, int code, void* self) {
    static_cast<ChannelState*>(self)->status_ = ExitStatus::exited(code);
  };
  callbacks_.channel_exit_signal_function = [](ssh_session, ssh_channel, const char* signal, int, const char*,
                                               const char*, void* self) {
    const auto number = signal_number(signal != nullptr ? signal : "");
    static_cast<ChannelState*>(self)->status_ =
        number ? ExitStatus::signalled(*number) : ExitStatus::exited(unknown_signal_code);
  };
  ssh_callbacks_init(&callbacks_);
  ssh_set_channel_callbacks(channel_, &callbacks_);
}

ChannelState::~ChannelState() {
  // libssh keeps the channel until the peer closes it too, and could otherwise call into this object.
  ssh_remove_channel_callbacks(channel_, &callbacks_);
  ssh_channel_free(channel_);
}

// Called by libssh with received data. Returns how much of it was accepted; libssh keeps the rest.
int ChannelState::take(Stream stream, std::string_view data) {
  std::size_t& held = held_[stream == Stream::err ? 1 : 0];
  if (!released_ && (paused_ || arrived_bytes_ + data.size() > arrived_limit)) {
    held = data.size();  // libssh passes everything that it holds
    return 0;
  }
  if (!released_) {
    held = 0;
    keep(stream, data);
  }
  return static_cast<int>(data.size());
}

void ChannelState::keep(Stream stream, std::string_view data) {
  arrived_bytes_ += data.size();
  if (!arrived_.empty() && arrived_.back().stream == stream) {
    arrived_.back().data.append(data);
  } else {
    arrived_.push_back({stream, std::string(data)});
  }
}

bool ChannelState::adopt(const std::string& command, const Sink& sink) {
  if (phase_ == Phase::refused || remote_closed_ || status_ || (!command_.empty() && command_ != command)) {
    return false;
  }
  command_ = command;
  sink_ = sink;
  spare_ = paused_ = false;
  proceed();
  return true;
}

bool ChannelState::park() {
  if (phase_ != Phase::open || remote_closed_ || status_ || input_closed_ || !arrived_.empty() ||
      held() != 0 || !outgoing_.empty()) {
    return false;
  }
  keep_as_spare();
  is_resumed_ = true;
  return true;
}

bool ChannelState::proceed() {
  if (phase_ == Phase::opening) {
    const int rc = host_.empty() ? ssh_channel_open_session(channel_)
                                 : ssh_channel_open_forward(channel_, host_.c_str(), port_, "127.0.0.1", 0);
    if (rc == SSH_AGAIN) {
      return false;
    }
    if (rc != SSH_OK) {
      refusal_ = last_error(session_, "the server refused it");
      // libssh puts "Channel opening failure: channel 43 error (2) " before the server's text. Error 1 is
      // SSH_OPEN_ADMINISTRATIVELY_PROHIBITED.
      if (const std::size_t end = refusal_.find(") "); !host_.empty() && end != std::string::npos) {
        refusal_ = refusal_.find("error (1) ") != std::string::npos ? forwarding_forbidden
                                                                    : refusal_.substr(end + 2);
      }
      phase_ = Phase::refused;
      return true;
    }
    phase_ = host_.empty() ? Phase::requesting : Phase::open;
  }
  if (phase_ == Phase::requesting && !released_ && !command_.empty()) {
    return request_command();
  }
  return false;
}

bool ChannelState::request_command() {
  if (std::exchange(forward_agent_, false)) {
    ssh_channel_request_auth_agent(channel_);  // there is no reply to this
  }
  // Does not wait for the reply, because input may follow immediately, as in OpenSSH's client.
  const int rc = ssh_channel_request_exec(channel_, command_.c_str());
  if (rc == SSH_AGAIN) {
    return false;
  }
  if (rc == SSH_OK) {
    phase_ = Phase::open;
  } else if (link_ended(session_)) {
    return false;  // not a refusal: the connection has ended, which the session will notice
  } else {
    refusal_ = last_error(session_, "it gives no reason");
    phase_ = Phase::refused;
    keep(Stream::err, "the server refused to run the command: " + refusal_ + "\n");
    status_ = ExitStatus::exited(unknown_signal_code);
  }
  return true;
}

bool ChannelState::send_input() {
  if (phase_ == Phase::opening || phase_ == Phase::refused || remote_closed_ || closed_) {
    outgoing_.clear();
    return false;
  }
  bool done = false;
  if (!outgoing_.empty() && ssh_channel_window_size(channel_) > 0) {
    const auto size = std::min<std::size_t>(outgoing_.size(), ssh_channel_window_size(channel_));
    const int count = ssh_channel_write(channel_, outgoing_.data(), static_cast<std::uint32_t>(size));
    if (count > 0) {
      outgoing_.erase(0, static_cast<std::size_t>(count));
      done = true;
    }
  }
  if (input_closed_ && !eof_sent_ && outgoing_.empty()) {
    eof_sent_ = true;
    ssh_channel_send_eof(channel_);
    done = true;
  }
  return done;
}

bool ChannelState::deliver() {
  bool done = false;
  while (!paused_ && !released_ && !arrived_.empty()) {
    const Piece piece = std::move(arrived_.front());
    arrived_.pop_front();
    arrived_bytes_ -= piece.data.size();
    done = true;
    if (sink_) {
      sink_(piece.stream, piece.data);
    }
  }
  return done;
}

bool ChannelState::read_held() {
  bool done = false;
  std::array<char, 65536> buffer{};
  for (const Stream stream : {Stream::out, Stream::err}) {
    std::size_t& held = held_[stream == Stream::err ? 1 : 0];
    while (held > 0 && !paused_ && !released_) {
      const int count =
          ssh_channel_read_nonblocking(channel_, buffer.data(), buffer.size(), stream == Stream::err ? 1 : 0);
      if (count <= 0) {
        held = 0;
        break;
      }
      held -= std::min(held, static_cast<std::size_t>(count));
      done = true;
      if (sink_) {
        sink_(stream, std::string_view(buffer.data(), static_cast<std::size_t>(count)));
      }
    }
  }
  return done;
}

bool ChannelState::serve() {
  bool done = proceed();
  done = send_input() || done;
  done = deliver() || done;
  if (held() > 0 && !paused_ && arrived_.empty()) {
    done = read_held() || done;
  }
  if (!closed_ && phase_ == Phase::open && finished()) {
    close_news_ = true;
    closed_ = true;  // close it immediately, even if the handle still exists, because the server counts open
                     // channels (MaxSessions)
    ssh_channel_close(channel_);
  }
  return done;
}

void ChannelState::release() {
  released_ = true;  // the sink is not called again, but it is not destroyed, because this may be called from
                     // within it
  arrived_.clear();
  arrived_bytes_ = 0;
}

void ChannelState::close_input() {
  input_closed_ = true;
  send_input();
}

bool ChannelState::output_ended() const {
  return arrived_.empty() && held() == 0 &&
         (phase_ == Phase::refused || remote_closed_ || ssh_channel_is_eof(channel_) != 0);
}

bool ChannelState::finished() const {
  return closed_ || (output_ended() && (remote_closed_ || phase_ == Phase::refused || status_.has_value()));
}

std::size_t ChannelState::writable() const {
  if (phase_ == Phase::opening || phase_ == Phase::refused || remote_closed_ || closed_ || input_closed_ ||
      !outgoing_.empty()) {
    return 0;
  }
  return ssh_channel_window_size(channel_);
}

void ChannelState::write(std::string_view data) {
  if (remote_closed_ || closed_ || data.empty()) {
    return;  // the command has ended and does not read this; finished() reports that, with its status
  }
  outgoing_.append(data);
  send_input();
}

}  // namespace remote::ssh
