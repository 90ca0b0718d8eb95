#include "ssh/session.hpp"

#include <algorithm>
#include <cerrno>
#include <thread>

#include <libssh/server.h>  // for ssh_send_keepalive

#include "base/log.hpp"

namespace remote::ssh {
namespace {

// One step of libssh reads 4 KB. This many steps are made before the received data is passed on.
constexpr int steps_a_round = 64;
// If this much data is held for paused channels, nothing more is read from the connection. libssh's windows
// keep the amount far below this, except if a peer ignores them.
constexpr std::size_t held_limit = std::size_t{16} << 20U;
constexpr std::chrono::seconds open_timeout{30};
// How long a channel that was just closed may cause a refusal.
constexpr std::chrono::milliseconds reuse_time{500};

}  // namespace

Session::Session(SessionPtr session, LoginFacts login, std::string peer_address, std::shared_ptr<void> keep)
    : keep_(std::move(keep)),
      session_(std::move(session)),
      peer_address_(std::move(peer_address)),
      login_(std::move(login)) {
  ssh_set_blocking(session_.get(), 0);
  ssh_set_counters(session_.get(), &traffic_, nullptr);
  event_ = ssh_event_new();
  if (event_ == nullptr || ssh_event_add_session(event_, session_.get()) != SSH_OK) {
    ssh_event_free(event_);
    throw Unreachable("connection lost", last_error(session_.get(), "the session is closed"),
                      "check the network and the server, then run the command again");
  }
}

Session::~Session() {
  channels_.clear();  // closing them sends EOF to the commands
  if (relay_) {
    relay_->close();
  }
  flush_before_end();
  ssh_event_remove_session(event_, session_.get());
  ssh_event_free(event_);
  // Do not call ssh_disconnect(), which forgets a socket set with SSH_OPTIONS_FD without closing it.
  // ssh_free() closes it, and the server treats EOF in the same way.
}

// The last calls may have left data in libssh's buffer.
void Session::flush_before_end() {
  const auto end = clock::now() + std::chrono::milliseconds(500);
  while (lost_.empty() && (ssh_get_poll_flags(session_.get()) & SSH_WRITE_PENDING) != 0 &&
         clock::now() < end) {
    pollfd slot{ssh_get_fd(session_.get()), POLLOUT, 0};
    if (::poll(&slot, 1, 100) > 0 && ssh_event_dopoll(event_, 0) == SSH_ERROR) {
      return;
    }
  }
}

void Session::throw_lost() const {
  log_info(server(), "connection lost: {}", lost_);
  throw Unreachable(
      "connection lost", lost_,
      loses_packets_ ? path_hint : "check the network and the server, then run the command again");
}

void Session::expect(const std::string& command) {
  expected_.push_back(command);
}

std::unique_ptr<Channel> Session::open(const std::string& command, Sink sink) {
  return open_with([&] { return begin(command, sink); });
}

std::unique_ptr<Channel> Session::open_with(const Begin& begin) {
  if (!lost_.empty()) {
    throw_lost();
  }
  drop_released();
  const auto others = std::ranges::count_if(
      channels_, [](const auto& state) { return !state->released() && !state->spare(); });
  auto pause = std::chrono::milliseconds(0);
  const Stopwatch watch;
  for (;;) {
    auto state = begin();
    auto channel = std::make_unique<SessionChannel>(state);
    wait_until_open(*state);
    if (state->refusal().empty() || state->status()) {
      log_debug(server(), "channel open after {}, {} others", watch.text(), others);
      return channel;
    }
    if (drop_spares()) {
      continue;  // their slots are needed
    }
    // sshd frees the slot of a closed channel only when its command has ended too. If that was the only slot,
    // all we can do is wait for a busy server.
    if (clock::now() - closed_at_ < (others > 0 ? reuse_time : open_timeout)) {
      channel.reset();
      std::this_thread::sleep_for(std::exchange(pause, std::chrono::milliseconds(5)));
      continue;
    }
    if (others > 0) {
      throw TooManyChannels();
    }
    throw Error("cannot open a channel", state->refusal(),
                "the server allows no command on this connection: check MaxSessions in its sshd_config")
        .because(Cause::refused);
  }
}

// Returns the channel for a command, either a spare or a new one. Then opens spare ones for the commands that
// are expected next.
std::shared_ptr<ChannelState> Session::begin(const std::string& command, const Sink& sink) {
  const bool with_agent = relay_ && relay_->on();
  const auto ready = std::ranges::find_if(channels_, [&](const auto& one) {
    return one->spare() && !one->released() && !with_agent && one->adopt(command, sink);
  });
  std::shared_ptr<ChannelState> state;
  if (ready != channels_.end()) {
    state = *ready;
  } else {
    state = std::make_shared<ChannelState>(session_.get(), command, sink, with_agent);
    channels_.push_back(state);
  }
  for (const std::string& next : std::exchange(expected_, {})) {
    auto spare = std::make_shared<ChannelState>(session_.get(), next, Sink());
    spare->keep_as_spare();
    channels_.push_back(std::move(spare));
  }
  return state;
}

bool Session::drop_spares() {
  bool had_some = false;
  for (const auto& spare : channels_) {
    if (spare->spare() && !spare->released()) {
      spare->release();
      spare->proceed();  // it may have been opened in the meantime, and only an open channel can be closed
      had_some = true;
    }
  }
  drop_released();
  return had_some;
}

// Waits for the server's answer about a channel.
void Session::wait_until_open(ChannelState& state) {
  wait_for([&] {
    state.proceed();
    return !state.opening();
  });
  // If the connection has ended, libssh itself reports a refusal, with a useless message.
  if (!state.refusal().empty() && link_ended(session_.get())) {
    lost_ = why_closed();
    throw_lost();
  }
}

// Waits until the server has answered. Data that arrives for channels is kept for pump().
void Session::wait_for(const std::function<bool()>& answered) {
  const auto limit = watchful_ ? std::min<std::chrono::milliseconds>(
                                     open_timeout, patience_.ask_after + patience_.dead_after)
                               : open_timeout;
  const auto deadline = clock::now() + limit;
  while (!answered()) {
    const int fd = ssh_get_fd(session_.get());
    std::array<pollfd, 2> slots{{{fd, wanted_events(session_.get()), 0}, {cancel_.fd(), POLLIN, 0}}};
    acknowledge_at_once(fd);
    if (fd < 0 || ::poll(slots.data(), slots.size(), 1000) > 0) {
      take_input();
    }
    cancel_.check();
    if (lost_.empty() && clock::now() > deadline) {
      lost_ = "the server did not answer for " +
              std::to_string(std::chrono::duration_cast<std::chrono::seconds>(limit).count()) + " s";
    }
    if (!lost_.empty()) {
      throw_lost();
    }
  }
}

std::unique_ptr<Channel> Session::open_tcp(const std::string& host, int port, Sink sink) {
  if (!lost_.empty()) {
    throw_lost();
  }
  auto state = std::make_shared<ChannelState>(session_.get(), host, port, std::move(sink));
  channels_.push_back(state);
  return std::make_unique<SessionChannel>(state);
}

void Session::listen_tcp(int port) {
  if (!lost_.empty()) {
    throw_lost();
  }
  abandoned_ = true;  // the next user of the connection has not asked for connections to this machine
  int rc = SSH_AGAIN;
  wait_for([&] {
    // Not "localhost", because sshd is content with ::1 alone, and then another user could take 127.0.0.1.
    rc = ssh_channel_listen_forward(session_.get(), "127.0.0.1", port, nullptr);
    return rc != SSH_AGAIN;
  });
  if (rc != SSH_OK) {
    throw Error("cannot forward a port to this machine",
                "the server does not listen on its port " + std::to_string(port),
                "the port is taken there, or AllowTcpForwarding in its sshd_config forbids it")
        .because(Cause::refused);
  }
  listening_.insert(port);
}

int Session::incoming() {
  while (!listening_.empty()) {
    int port = 0;
    ChannelPtr channel(ssh_channel_open_forward_port(session_.get(), 0, &port, nullptr, nullptr));
    if (!channel) {
      break;
    }
    if (listening_.contains(port)) {  // if the server invents another port, the connection is closed
      incoming_ = std::move(channel);
      return port;
    }
  }
  return 0;
}

std::unique_ptr<Channel> Session::accept_tcp(Sink sink) {
  auto state = std::make_shared<ChannelState>(session_.get(), std::move(incoming_), std::move(sink));
  channels_.push_back(state);
  return std::make_unique<SessionChannel>(state);
}

// Closes the channels whose handles were destroyed.
void Session::drop_released() {
  std::erase_if(channels_, [this](const auto& state) {
    const bool done = state->released() && !state->opening();
    if (done && state->refusal().empty()) {
      closed_at_ = clock::now();
      abandoned_ = abandoned_ || (!state->spare() && !state->finished() && !state->status());
    }
    return done;
  });
}

bool Session::idle() noexcept {
  drop_released();
  return !abandoned_ && lost_.empty() && take_input() &&
         std::ranges::all_of(channels_, [](const auto& state) { return state->spare(); });
}

std::string Session::forward_agent(const std::filesystem::path& socket, const std::set<std::string>& keys) {
  if (!relay_ && !socket.empty()) {
    relay_ = std::make_unique<AgentRelay>(session_.get());
  }
  if (relay_) {
    relay_->use(socket, keys);
  }
  return {};
}

bool Session::serve_channels() {
  drop_released();
  const auto serving = channels_;  // a copy, because sinks open and close channels
  bool done = relay_ && relay_->serve();
  for (const auto& state : serving) {
    done = state->serve() || done;
    if (state->take_closed()) {
      closed_at_ = clock::now();
    }
  }
  return done;
}

bool Session::deliver_rest() {
  const auto serving = channels_;
  return std::ranges::count_if(serving, [](const auto& state) { return state->deliver(); }) > 0;
}

std::string Session::why_closed() const {
  const char* farewell = ssh_get_disconnect_message(session_.get());
  return farewell != nullptr ? std::string("the server closed it: ") + farewell
                             : last_error(session_.get(), "the server closed it");
}

// Lets libssh read and write as much as possible without waiting. Returns false if the connection is lost,
// with the reason in lost_.
bool Session::take_input() {
  // libssh closes its socket when it detects the end of the connection, which may happen within a write.
  const bool closed = ssh_get_fd(session_.get()) < 0;
  for (int step = 0; step < steps_a_round; ++step) {
    const int rc = ssh_event_dopoll(event_, 0);
    const int status = ssh_get_status(session_.get());
    if (closed || rc == SSH_ERROR || (status & (SSH_CLOSED | SSH_CLOSED_ERROR)) != 0) {
      lost_ = why_closed();
      return false;
    }
    if (rc == SSH_AGAIN) {
      break;
    }
  }
  return true;
}

bool Session::overfull() const {
  std::size_t held = 0;
  for (const auto& state : channels_) {
    held += state->held();
  }
  return held > held_limit;
}

void Session::set_keepalive(std::chrono::milliseconds ask_after, std::chrono::milliseconds dead_after) {
  usual_ = patience_ = {ask_after, dead_after};
}

void Session::be_watchful(bool on) {
  constexpr Patience little{std::chrono::milliseconds(2000), std::chrono::milliseconds(5000)};
  watchful_ = on;
  patience_ = on && little.ask_after < usual_.ask_after ? little : usual_;
  if (on) {
    heard_ = clock::now();  // nothing has been read since
  }
}

Session::clock::time_point Session::next_check() const {
  return asked_ ? *asked_ + patience_.dead_after : heard_ + patience_.ask_after;
}

// Returns whether data has arrived since the last call, which proves that the server is alive. libssh reads
// in many places, and poll(2) never reports an answer that one of its own calls has read.
bool Session::note_traffic() {
  if (traffic_.in_bytes == traffic_seen_) {
    return false;
  }
  traffic_seen_ = traffic_.in_bytes;
  heard_ = clock::now();
  asked_.reset();
  return true;
}

void Session::ask_for_a_sign() {
  path_when_asked_ = read_path(ssh_get_fd(session_.get()));
  // Called twice, because libssh's first call may only collect the answer to the previous request.
  ssh_send_keepalive(session_.get());
  ssh_send_keepalive(session_.get());
}

std::string Session::explain_silence() {
  constexpr int time_ms = 1000;
  const int fd = ssh_get_fd(session_.get());
  if (!asked_) {
    ask_for_a_sign();
  }
  if (fd < 0 || note_traffic()) {  // libssh may have read the answer already
    return "";
  }
  std::array<pollfd, 2> slots{{{fd, POLLIN, 0}, {cancel_.fd(), POLLIN, 0}}};
  const bool comes = ::poll(slots.data(), slots.size(), time_ms) > 0;
  return comes ? "" : ssh::explain_silence(path_when_asked_, read_path(fd));
}

// Called after a period of silence: asks the server for a sign of life, or declares the connection lost.
void Session::check_link() {
  if (note_traffic()) {
    return;
  }
  if (asked_) {
    lost_ = "the server has not answered for " +
            std::to_string(std::chrono::duration_cast<std::chrono::seconds>(clock::now() - heard_).count()) +
            " s";
    if (const std::string why = ssh::explain_silence(path_when_asked_, read_path(ssh_get_fd(session_.get())));
        !why.empty()) {
      lost_ += ": " + why;
      loses_packets_ = true;
    }
    throw_lost();
  }
  log_debug(server(), "silent for a while: asking for a sign of life");
  ask_for_a_sign();
  if (!note_traffic()) {
    asked_ = clock::now();
  }
}

void Session::pump(std::chrono::milliseconds timeout, std::span<pollfd> also) {
  if (!lost_.empty()) {
    throw_lost();
  }
  const auto until = clock::now() + timeout;
  bool served = serve_channels();
  // Data that libssh has read within its other calls counts too, although poll(2) does not report it any
  // more.
  served = note_traffic() || served;
  for (;;) {
    const bool stopped = overfull();
    const int fd = ssh_get_fd(session_.get());
    const bool closed = fd < 0 && !stopped;
    fds_.clear();
    fds_.push_back({stopped ? -1 : fd, wanted_events(session_.get()), 0});
    fds_.insert(fds_.end(), also.begin(), also.end());
    if (relay_) {
      relay_->add_to(fds_);
    }
    const auto wake = stopped ? until : std::min(until, next_check());
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(wake - clock::now());
    const int wait_ms =
        served || closed ? 0 : static_cast<int>(std::clamp<long long>(wait.count(), 0, 3600000));
    if (hurried_rounds_ > 0) {
      --hurried_rounds_;
      acknowledge_at_once(fds_[0].fd);
    }
    const int ready = ::poll(fds_.data(), fds_.size(), wait_ms);
    if (ready < 0 && errno != EINTR) {
      throw Error("cannot wait for the server", std::generic_category().message(errno))
          .mended_by(Remedy::report_bug);
    }
    bool others = false;
    for (std::size_t i = 0; i < also.size(); ++i) {
      also[i].revents = ready > 0 ? fds_[i + 1].revents : static_cast<short>(0);
      others = others || also[i].revents != 0;
    }
    if (closed || (ready > 0 && fds_[0].revents != 0)) {
      const bool readable = (fds_[0].revents & ~POLLOUT) != 0;
      if (!take_input()) {
        // Data that arrived before the end still counts, because it may contain the exit status.
        if (deliver_rest() || served) {
          return;
        }
        throw_lost();
      }
      note_traffic();
      served = serve_channels() || served || readable;
    } else if (!stopped && clock::now() >= next_check()) {
      check_link();
    }
    if (ready > 0 && std::any_of(fds_.begin() + 1 + std::ssize(also), fds_.end(),
                                 [](const pollfd& one) { return one.revents != 0; })) {
      served = serve_channels() || served;
    }
    if (served || others || clock::now() >= until) {
      return;
    }
  }
}

}  // namespace remote::ssh
