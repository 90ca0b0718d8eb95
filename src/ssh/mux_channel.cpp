#include "ssh/mux_channel.hpp"

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace remote::ssh {
namespace {

constexpr std::uint32_t request_id = 2;
// How much input for a command is accepted before the master has read the input so far.
constexpr std::size_t taken_at_once = std::size_t{64} << 10U;
// How many pieces of one output are read before the others are served.
constexpr int pieces_a_round = 16;

void set_nonblocking(const UniqueFd& fd) {
  ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
}

}  // namespace

MuxState::MuxState(const std::filesystem::path& socket, std::string command, Sink sink)
    : socket_(std::in_place, socket), command_(std::move(command)), sink_(std::move(sink)) {
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
  set_nonblocking(out_);  // both have the same flags
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
      given_.clear();
    } else if (message->kind == mux::Kind::refused && opening() && message->about == request_id) {
      refuse(message->text);
    } else if (message->kind == mux::Kind::exited && message->about == session_ && !opening()) {
      status_ = ExitStatus::exited(static_cast<int>(message->number & 0xffU));
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
      outgoing_.clear();  // the command reads no more, or has ended; finished() reports that, with its status
      input_closed_ = input_closed_ || came_;
    }
  }
  if (input_closed_ && in_) {
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
      if (count == 0 || !would_block()) {
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
    return false;  // the master does not have the other ends yet, so reading these would hang
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

}  // namespace remote::ssh
