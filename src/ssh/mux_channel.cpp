#include "ssh/mux_channel.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

namespace remote::ssh {
namespace {

constexpr std::uint32_t request_id = 2;
// What is taken for a command's input before the master has taken what was there.
constexpr std::size_t taken_at_once = std::size_t{64} << 10U;
// How often one output is read before the others get their turn.
constexpr int pieces_a_round = 16;

void set_nonblocking(const UniqueFd& fd) {
  ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
}

// Both ends of a new terminal: ours, and that of the program on it.
std::pair<UniqueFd, UniqueFd> make_terminal() {
  static std::mutex names;  // ptsname(3) has one buffer
  UniqueFd ours(::posix_openpt(O_RDWR | O_NOCTTY));
  ::fcntl(ours.get(), F_SETFD, FD_CLOEXEC);
  UniqueFd theirs;
  if (ours && ::grantpt(ours.get()) == 0 && ::unlockpt(ours.get()) == 0) {
    const std::lock_guard lock(names);
    if (const char* name = ::ptsname(ours.get())) {
      theirs = UniqueFd(::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
    }
  }
  if (!theirs) {
    throw Error("cannot open a terminal",
                "this machine gives no further one: " + std::string(std::strerror(errno)),
                "end programs on terminals, or run the command without one");
  }
  return {std::move(ours), std::move(theirs)};
}

void set_size(int fd, const TerminalSize& size) {
  winsize window{};
  window.ws_col = static_cast<unsigned short>(size.columns);
  window.ws_row = static_cast<unsigned short>(size.rows);
  ::ioctl(fd, TIOCSWINSZ, &window);
}

}  // namespace

MuxState::MuxState(const std::filesystem::path& socket, std::string command,
                   std::optional<TerminalRequest> terminal, Sink sink)
    : socket_(std::in_place, socket), command_(std::move(command)), sink_(std::move(sink)) {
  if (terminal) {
    open_terminal(*terminal);
    return;
  }
  Pipe in = make_pipe();
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  in_ = std::move(in.write);
  out_ = std::move(out.read);
  err_ = std::move(err.read);
  for (UniqueFd* theirs : {&in.read, &out.write, &err.write}) {
    given_.push_back(std::move(*theirs));
  }
  for (const UniqueFd* ours : {&in_, &out_, &err_}) {
    set_nonblocking(*ours);
  }
  socket_->send(mux::new_session(request_id, command_), {given_[0].get(), given_[1].get(), given_[2].get()});
}

void MuxState::open_terminal(const TerminalRequest& terminal) {
  master_ = mux::ask_alive(*socket_);
  auto [ours, theirs] = make_terminal();
  set_size(ours.get(), terminal.size);
  in_ = UniqueFd(::fcntl(ours.get(), F_DUPFD_CLOEXEC, 0));
  out_ = std::move(ours);
  set_nonblocking(out_);  // of both: they are one
  terminal_fd_ = out_.get();
  const int fd = theirs.get();
  given_.push_back(std::move(theirs));
  socket_->send(mux::new_session(request_id, command_, terminal.type), {fd, fd, fd});
}

// The master has read the settings that the server's terminal begins with; here nothing may change a byte.
void MuxState::begin_terminal() {
  termios settings{};
  if (::tcgetattr(given_.front().get(), &settings) == 0) {
    ::cfmakeraw(&settings);
    ::tcsetattr(given_.front().get(), TCSANOW, &settings);  // a terminal of its own
  }
}

MuxState::MuxState(const std::filesystem::path& socket, const std::string& host, int port, Sink sink)
    : socket_(std::in_place, socket), tcp_(true), sink_(std::move(sink)) {
  Pipe in = make_pipe();
  Pipe out = make_pipe();
  in_ = std::move(in.write);
  out_ = std::move(out.read);
  set_nonblocking(in_);
  set_nonblocking(out_);
  given_.push_back(std::move(in.read));
  given_.push_back(std::move(out.write));
  socket_->send(mux::new_stdio_forward(request_id, host, port), {given_[0].get(), given_[1].get()});
}

MuxState::MuxState(UniqueFd connection, Sink sink) : tcp_(true), came_(true), sink_(std::move(sink)) {
  in_ = UniqueFd(::fcntl(connection.get(), F_DUPFD_CLOEXEC, 0));
  out_ = std::move(connection);
  set_nonblocking(out_);  // of both
  phase_ = Phase::open;
}

void MuxState::refuse(std::string why) {
  phase_ = Phase::refused;
  refusal_ = std::move(why);
  given_.clear();
  in_.reset();
  out_.reset();
  err_.reset();
  outgoing_.clear();
}

bool MuxState::take_news() {
  bool done = false;
  while (!socket_ended()) {
    const auto message = socket_->receive();
    if (!message) {
      done = done || socket_ended();
      break;
    }
    done = true;
    if (message->kind == mux::Kind::opened && opening() && message->about == request_id) {
      phase_ = Phase::open;
      session_ = message->number;
      if (terminal_fd_ >= 0) {
        begin_terminal();
      }
      given_.clear();
    } else if (message->kind == mux::Kind::refused && opening() && message->about == request_id) {
      refuse(message->text);
    } else if (message->kind == mux::Kind::exited && message->about == session_ && !opening()) {
      status_ = ExitStatus::exited(static_cast<int>(message->number & 0xffU));
    } else if (message->kind == mux::Kind::no_terminal && message->about == session_ && !opening()) {
      const std::string text = "the server gives no terminal\n";
      status_ = ExitStatus::exited(untold_exit_code);
      refuse("no terminal");
      if (sink_ && !released_) {
        sink_(Stream::err, text);
      }
    }
  }
  return done;
}

bool MuxState::adopt(const std::string& command, const Sink& sink) {
  if (refused() || status_ || socket_ended() || command_ != command) {
    return false;
  }
  sink_ = sink;
  spare_ = paused_ = false;
  return true;
}

bool MuxState::send_input() {
  bool done = false;
  while (in_ && !outgoing_.empty()) {
    const ssize_t count =
        uninterrupted([&] { return ::write(in_.get(), outgoing_.data(), outgoing_.size()); });
    if (count > 0) {
      outgoing_.erase(0, static_cast<std::size_t>(count));
      done = true;
    } else if (would_block()) {
      return done;
    } else {
      outgoing_.clear();  // the command reads no more, or is gone: finished() tells, with its status
      input_closed_ = input_closed_ || came_;
    }
  }
  if (input_closed_ && in_ && terminal_fd_ < 0) {
    if (came_) {
      ::shutdown(in_.get(), SHUT_WR);
    }
    in_.reset();
    done = true;
  }
  return done;
}

bool MuxState::read_output(UniqueFd& fd, Stream stream) {
  bool done = false;
  std::array<char, taken_at_once> buffer;
  for (int round = 0; round < pieces_a_round && fd && !paused_ && !released_; ++round) {
    const ssize_t count = uninterrupted([&] { return ::read(fd.get(), buffer.data(), buffer.size()); });
    if (count <= 0) {
      if (count == 0 || !would_block()) {  // of a terminal, the end is EIO
        fd.reset();
        done = true;
      }
      break;
    }
    done = true;
    if (sink_) {
      sink_(stream, std::string_view(buffer.data(), static_cast<std::size_t>(count)));
    }
  }
  return done;
}

bool MuxState::deliver() {
  if (opening()) {
    return false;  // the master does not have the other ends yet, and these would hang
  }
  const bool out = read_output(out_, Stream::out);
  return read_output(err_, Stream::err) || out;
}

bool MuxState::serve() {
  bool done = take_news();
  done = send_input() || done;
  return deliver() || done;
}

void MuxState::add_to(std::vector<pollfd>& fds) const {
  const auto add = [&](int fd, short events, bool wanted) {
    if (wanted && fd >= 0) {
      fds.push_back({fd, events, 0});
    }
  };
  add(control_fd(), POLLIN, !socket_ended());
  add(in_.get(), POLLOUT, !outgoing_.empty());
  add(out_.get(), POLLIN, !paused_ && !released_ && !opening());
  add(err_.get(), POLLIN, !paused_ && !released_ && !opening());
}

std::size_t MuxState::writable() const {
  return phase_ != Phase::open || !in_ || input_closed_ || !outgoing_.empty() || status_ ? 0 : taken_at_once;
}

void MuxState::write(std::string_view data) {
  if (in_ && !input_closed_ && !status_) {
    outgoing_.append(data);
    send_input();
  }
}

void MuxState::close_input() {
  input_closed_ = true;
  send_input();
}

void MuxState::resize(const TerminalSize& size) {
  if (phase_ == Phase::open && terminal_fd_ >= 0 && out_ && master_ && *master_ > 1 && !socket_ended()) {
    set_size(terminal_fd_, size);
    ::kill(static_cast<pid_t>(*master_),
           SIGWINCH);  // it looks at all of its terminals, as its own client asks it to
  }
}

}  // namespace remote::ssh
