#include "ssh/mux_connection.hpp"

#include <algorithm>
#include <cerrno>
#include <thread>

#include <fmt/format.h>

#include "base/hashing.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "ssh/key_files.hpp"

namespace remote::ssh {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds session_timeout{30000};
constexpr milliseconds soon_timeout{7000};
// How long a silence may last until we ask for a sign of life, and how long the answer may take. The first
// values are for a master that may not notice a dead connection by itself, the second for commands that
// should answer immediately.
struct Silence {
  milliseconds ask_after;
  milliseconds dead_after;
};
constexpr Silence usual_silence{milliseconds(15000), milliseconds(15000)};
constexpr Silence short_silence{milliseconds(2000), milliseconds(5000)};
// How long a session that was just closed may cause a refusal.
constexpr milliseconds place_time{500};
// A command that runs in every login shell and does nothing.
constexpr const char* no_command = ":";

}  // namespace

MuxConnection::MuxConnection(std::filesystem::path socket, LoginFacts login, std::string peer_address,
                             bool self_watching, const Cancel& cancel)
    : path_(std::move(socket)),
      master_(path_),
      peer_address_(std::move(peer_address)),
      login_(std::move(login)),
      self_watching_(self_watching),
      cancel_(cancel) {
  if (!mux::ask_alive(master_, cancel)) {
    throw Error(fmt::format("cannot use the control socket {}", path_.string()), "its master does not answer",
                "close it with `ssh -O exit`");
  }
}

void MuxConnection::lose(std::string why) {
  if (lost_.empty()) {
    lost_ = std::move(why);
  }
}

void MuxConnection::throw_lost() const {
  log_info(server(), "connection lost: {}", lost_);
  throw Unreachable("connection lost", lost_, "check the network and the server, then run the command again");
}

// Creates a channel. If the master is gone, the connection counts as lost.
MuxConnection::StatePtr MuxConnection::add(const std::function<StatePtr()>& make) {
  try {
    channels_.push_back(make());
    return channels_.back();
  } catch (const Error& error) {
    if (master_lives()) {
      throw;
    }
    lose("the OpenSSH master has ended");
    throw_lost();
  }
}

MuxConnection::StatePtr MuxConnection::begin(const std::string& command, const Sink& sink) {
  StatePtr state;
  const auto ready = std::ranges::find_if(spares_, [&](const StatePtr& one) {
    one->take_news();
    return one->adopt(command, sink);
  });
  if (ready != spares_.end()) {
    state = *ready;
    spares_.erase(ready);
  } else {
    state = add([&] { return std::make_shared<MuxState>(path_, command, sink); });
  }
  for (const std::string& next : std::exchange(expected_, {})) {
    spares_.push_back(add([&] { return std::make_shared<MuxState>(path_, next, Sink()); }));
    spares_.back()->keep_as_spare();
  }
  return state;
}

void MuxConnection::expect(const std::string& command) {
  if (!command.empty()) {  // a session cannot be opened without its command
    expected_.push_back(command);
  }
}

void MuxConnection::prove(const std::string& command, milliseconds limit) {
  const auto state = add([&] { return std::make_shared<MuxState>(path_, command, Sink()); });
  state->keep_as_spare();
  spares_.push_back(state);
  wait_until_open(*state, limit);
  if (state->refused()) {
    drop_spares();
    throw TooManyChannels();
  }
}

std::unique_ptr<Channel> MuxConnection::open(const std::string& command, Sink sink) {
  return open_with([&] { return begin(command, sink); });
}

std::unique_ptr<Channel> MuxConnection::open_tcp(const std::string& host, int port, Sink sink) {
  if (!lost_.empty()) {
    throw_lost();
  }
  return std::make_unique<MuxChannel>(
      add([&] { return std::make_shared<MuxState>(path_, host, port, std::move(sink)); }));
}

void MuxConnection::listen_tcp(int port) {
  if (!lost_.empty()) {
    throw_lost();
  }
  abandoned_ = true;  // the next user of the connection has not asked for connections to this machine
  reverse_.push_back(std::make_unique<MuxReverse>(path_, mux::Listening{port}, session_timeout, cancel_));
}

LoginFacts MuxConnection::login() const {
  LoginFacts login = login_;
  std::erase_if(login.key_files, [&](const std::filesystem::path& file) {
    try {
      const std::vector<std::string> words = split_words(public_half_of(file));
      const auto key = words.size() > 1 ? base64_decode(words[1]) : std::nullopt;
      return !key || !login.keys.insert(*key).second;
    } catch (const Error&) {
      return true;  // there is none
    }
  });
  return login;
}

std::string MuxConnection::forward_agent(const std::filesystem::path& socket,
                                         const std::set<std::string>& keys) {
  agent_.reset();
  if (socket.empty()) {
    return {};
  }
  try {
    agent_ = std::make_unique<MuxAgent>(path_, socket, keys, session_timeout, cancel_);
    return agent_->there();
  } catch (const Error& error) {  // for example, if the server does not allow agent forwarding
    log_info(server(), "no agent is forwarded: {}", error.reason());
    return {};
  }
}

int MuxConnection::incoming() {
  for (const auto& reverse : reverse_) {
    if (UniqueFd fd = reverse->accept()) {
      incoming_ = std::move(fd);
      return reverse->at().port;
    }
  }
  return 0;
}

std::unique_ptr<Channel> MuxConnection::accept_tcp(Sink sink) {
  channels_.push_back(std::make_shared<MuxState>(std::move(incoming_), std::move(sink)));
  return std::make_unique<MuxChannel>(channels_.back());
}

std::unique_ptr<Channel> MuxConnection::open_with(const std::function<StatePtr()>& begin) {
  if (!lost_.empty()) {
    throw_lost();
  }
  drop_released();
  const auto others =
      std::ranges::count_if(channels_, [](const auto& one) { return !one->released() && !one->spare(); });
  auto pause = milliseconds(0);
  const Stopwatch watch;
  for (;;) {
    drop_released();
    const StatePtr state = begin();
    auto channel = std::make_unique<MuxChannel>(state);
    wait_until_open(*state, watchful_ ? soon_timeout : session_timeout);
    if (!state->refused() || state->status()) {
      log_debug(server(), "channel open after {}, {} others", watch.text(), others);
      return channel;
    }
    channel.reset();
    // Sessions that were opened ahead are taking up slots, or ones that were just closed until their commands
    // have ended too.
    if (drop_spares() || clock::now() - closed_at_ < place_time) {
      std::this_thread::sleep_for(std::exchange(pause, milliseconds(5)));
      continue;
    }
    if (others > 0) {
      throw TooManyChannels();
    }
    throw Error("cannot open a channel", state->refusal(),
                "the server allows no more sessions over this control socket: close others, or raise "
                "MaxSessions in its sshd_config")
        .because(Cause::refused);
  }
}

bool MuxConnection::drop_spares() {
  for (const StatePtr& spare : spares_) {
    spare->release();
  }
  const bool any = !std::exchange(spares_, {}).empty();
  drop_released();
  return any;
}

// Waits for the server's answer. Meanwhile, output for other channels stays in their pipes.
void MuxConnection::wait_until_open(MuxState& state, milliseconds limit) {
  const auto deadline = clock::now() + limit;
  for (;;) {
    state.take_news();
    if (!state.opening()) {
      heard_ = clock::now();
      return;
    }
    cancel_.check();
    if (state.socket_ended()) {
      lose("the OpenSSH master has ended");
    } else if (clock::now() >= deadline) {
      lose(fmt::format("the server did not answer for {} s", limit.count() / 1000));
    }
    if (!lost_.empty()) {
      throw_lost();
    }
    const auto left = std::chrono::ceil<milliseconds>(deadline - clock::now()).count();
    pollfd slots[] = {{state.control_fd(), POLLIN, 0}, {cancel_.fd(), POLLIN, 0}};
    ::poll(slots, 2, static_cast<int>(std::clamp<long long>(left, 0, 1000)));
  }
}

// Closes the channels whose handles were destroyed.
void MuxConnection::drop_released() {
  std::erase_if(channels_, [this](const StatePtr& state) {
    if (state->released() && !state->refused()) {
      closed_at_ = clock::now();
      abandoned_ = abandoned_ || (!state->spare() && !state->tcp() && !state->finished() && !state->status());
    }
    return state->released();
  });
}

// Whether the master still answers, after one of its sessions has ended.
bool MuxConnection::master_lives() {
  try {
    return mux::ask_alive(master_).has_value();
  } catch (const Error&) {
    return false;
  }
}

// Handles sessions that were closed without an exit status: either the master has ended, or the command was
// killed by a signal.
void MuxConnection::judge_ends() {
  for (const StatePtr& state : channels_) {
    if (state->ended_untold() && !state->tcp() && !state->spare()) {
      if (state->opening() || !master_lives()) {
        lose("the OpenSSH master has ended");
        return;
      }
      state->set_status(ExitStatus::exited(untold_exit_code));
    }
  }
}

bool MuxConnection::serve_channels() {
  drop_released();
  const auto serving = channels_;  // a copy, because sinks open and close channels
  bool done = agent_ && agent_->serve();
  for (const StatePtr& state : serving) {
    const bool was_over = state->finished();
    done = state->serve() || done;
    if (!was_over && state->finished()) {
      closed_at_ = clock::now();
    }
  }
  judge_ends();
  return done;
}

bool MuxConnection::idle() noexcept {
  try {
    drop_released();
    if (master_.receive() || master_.ended()) {
      return false;
    }
  } catch (const Error&) {
    return false;
  }
  return !abandoned_ && lost_.empty() &&
         std::ranges::all_of(channels_, [](const auto& state) { return state->spare(); });
}

void MuxConnection::be_watchful(bool on) {
  watchful_ = on;
  heard_ = clock::now();  // nothing has been read since
}

std::optional<MuxConnection::clock::time_point> MuxConnection::next_check() const {
  const Silence& silence = watchful_ ? short_silence : usual_silence;
  if (sign_of_life_) {
    return asked_ + silence.dead_after;
  }
  const bool waits = !reverse_.empty() || std::ranges::any_of(channels_, [](const auto& one) {
    return !one->spare() && !one->released();
  });
  return waits && (watchful_ || !self_watching_) ? std::optional(heard_ + silence.ask_after) : std::nullopt;
}

// Called after a period of silence: opens a session to get an answer from the server, or declares the
// connection lost.
void MuxConnection::check_link() {
  if (sign_of_life_) {
    lose(fmt::format("the server has not answered for {} s",
                     std::chrono::duration_cast<std::chrono::seconds>(clock::now() - heard_).count()));
    throw_lost();
  }
  log_debug(server(), "silent for a while: asking for a sign of life");
  sign_of_life_ = add([&] { return std::make_shared<MuxState>(path_, no_command, Sink()); });
  sign_of_life_->keep_as_spare();
  asked_ = clock::now();
}

// Adds all descriptors that may become ready. Returns the index where those of reverse_ begin.
std::ptrdiff_t MuxConnection::add_to(std::vector<pollfd>& fds) const {
  fds.push_back({master_.fd(), POLLIN, 0});
  const std::ptrdiff_t incoming = std::ssize(fds);
  for (const auto& reverse : reverse_) {
    fds.push_back({reverse->fd(), POLLIN, 0});
  }
  if (agent_) {
    agent_->add_to(fds);
  }
  for (const StatePtr& state : channels_) {
    state->add_to(fds);
  }
  return incoming;
}

void MuxConnection::pump(milliseconds timeout, std::span<pollfd> also) {
  const auto until = clock::now() + timeout;
  bool served = serve_channels();
  if (!lost_.empty() && !served) {
    throw_lost();
  }
  std::vector<pollfd> fds;
  for (;;) {
    fds.assign(also.begin(), also.end());
    const std::ptrdiff_t incoming = add_to(fds);
    const auto check = next_check();
    const auto wait =
        std::chrono::ceil<milliseconds>((check ? std::min(until, *check) : until) - clock::now());
    const bool at_once = served || !lost_.empty();
    const int ready = ::poll(fds.data(), fds.size(),
                             at_once ? 0 : static_cast<int>(std::clamp<long long>(wait.count(), 0, 3600000)));
    if (ready < 0 && errno != EINTR) {
      throw Error("cannot wait for the server", std::generic_category().message(errno))
          .mended_by(Remedy::report_bug);
    }
    bool others = false;
    for (std::size_t i = 0; i < also.size(); ++i) {
      also[i].revents = ready > 0 ? fds[i].revents : static_cast<short>(0);
      others = others || also[i].revents != 0;
    }
    const bool news = ready > 0 && std::any_of(fds.begin() + std::ssize(also), fds.end(),
                                               [](const pollfd& one) { return one.revents != 0; });
    if (news) {
      served = serve_channels() || served ||
               std::any_of(fds.begin() + incoming, fds.begin() + incoming + std::ssize(reverse_),
                           [](const pollfd& one) { return one.revents != 0; });
      master_.receive();
      if (master_.ended()) {
        lose("the OpenSSH master has ended");
      }
    } else if (check && clock::now() >= *check) {
      check_link();
    }
    if (served) {
      heard_ = clock::now();
    }
    if (sign_of_life_ && (!sign_of_life_->opening() || served)) {
      heard_ = clock::now();
      sign_of_life_->release();
      sign_of_life_.reset();
    }
    // Data that arrived before the end still counts, because it may contain the exit status.
    if (!lost_.empty() && !served) {
      throw_lost();
    }
    if (served || others || clock::now() >= until) {
      return;
    }
  }
}

}  // namespace remote::ssh
