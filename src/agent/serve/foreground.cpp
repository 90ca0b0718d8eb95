#include "agent/serve/foreground.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <exception>
#include <utility>

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire/request.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t run_piece = 32768;
constexpr int run_pieces_in_turn = 16;
constexpr milliseconds grace{5000};  // between TERM and KILL
// A process in the background may keep the output open after the command has ended.
constexpr milliseconds quiet_time{1000};
constexpr int exit_poll_ms = 20;

}  // namespace

Foreground::Foreground(const Host& host, std::uint32_t stream, wire::RunRequest request, Output& output,
                       std::function<void()> has_ended)
    : host_(host),
      stream_(stream),
      request_(std::move(request)),
      output_(output),
      has_ended_(std::move(has_ended)) {}

Foreground::~Foreground() {
  stop();
  end_process();
}

void Foreground::add_input(const wire::Bytes& bytes) {
  {
    const std::lock_guard lock(mutex_);
    receive_credit_.receive(bytes.size());
    input_.append(bytes.begin(), bytes.end());
  }
  wake();
}

void Foreground::end_input() {
  input_ends_ = true;
  wake();
}

void Foreground::resize(const TerminalSize& size) {
  {
    const std::lock_guard lock(mutex_);
    new_size_ = size;
  }
  wake();
}

void Foreground::grant(std::uint32_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    send_credit_.grant(bytes);
  }
  wake();
}

void Foreground::abort() {
  input_ends_ = true;
  is_aborted_ = true;
  wake();
}

std::size_t Foreground::credit() const {
  const std::lock_guard lock(mutex_);
  return send_credit_.available();
}

int Foreground::prepare_more(std::vector<pollfd>& fds) {
  if (is_finished_) {
    return -1;
  }
  if (!is_started_ || is_aborted_) {
    return 0;
  }
  const bool can_send = credit() > 1;
  if (can_send && run_.out) {
    fds.push_back({run_.out.get(), POLLIN, 0});
  }
  if (can_send && run_.err) {
    fds.push_back({run_.err.get(), POLLIN, 0});
  }
  {
    const std::lock_guard lock(mutex_);
    if (run_.in && !input_.empty()) {
      fds.push_back({run_.in.get(), POLLOUT, 0});
    }
  }
  if (end_) {
    const auto left = std::chrono::ceil<milliseconds>(last_output_ + quiet_time - Clock::now());
    return can_send ? static_cast<int>(std::max(left, milliseconds(0)).count()) : -1;
  }
  if (!exit_) {
    return exit_poll_ms;
  }
  fds.push_back({exit_.get(), POLLIN, 0});
  return -1;
}

void Foreground::do_step() {
  if (is_finished_) {
    drop_input();
    return;
  }
  if (is_aborted_) {
    end_process();
    finish();
    return;
  }
  if (!is_started_) {
    try {
      start();
    } catch (const std::exception& error) {
      output_.send_message(stream_, wire::Reply(wire::Refusal{wire::to_line(error.what(), 1000)}));
      finish();
      return;
    }
  }
  take_size();
  write_input();
  check_exit();  // check before reading the output, so that all of the output is read
  copy(run_.out, 1);
  copy(run_.err, 2);
  if (end_ && (!has_output() || (credit() > 1 && Clock::now() >= last_output_ + quiet_time))) {
    output_.send_message(stream_, wire::Reply(wire::RunEnds{*end_}));
    finish();
  }
}

void Foreground::start() {
  is_started_ = true;
  run_ = start_run(host_, request_);
  constexpr long pidfd_open = 434;
  exit_ = Descriptor(static_cast<int>(::syscall(pidfd_open, run_.pid, 0U)));
  output_.send_message(stream_, wire::Reply(wire::RunBegins{}));
}

void Foreground::take_size() {
  std::optional<TerminalSize> size;
  {
    const std::lock_guard lock(mutex_);
    size = std::exchange(new_size_, std::nullopt);
  }
  if (size && request_.terminal && run_.out) {
    resize_terminal(run_.out.get(), *size);
  }
}

void Foreground::write_input() {
  if (!run_.in) {
    drop_input();
    return;
  }
  std::uint32_t credit = 0;
  bool is_empty = false;
  {
    const std::lock_guard lock(mutex_);
    const ssize_t count = input_.empty() ? 0 : ::write(run_.in.get(), input_.data(), input_.size());
    const bool is_broken = count < 0 && errno != EAGAIN && errno != EINTR;
    const std::size_t taken =
        is_broken ? input_.size() : static_cast<std::size_t>(std::max<ssize_t>(count, 0));
    input_.erase(0, taken);
    credit = taken > 0 ? receive_credit_.consume(taken) : 0;
    is_empty = input_.empty();
  }
  if (is_empty && input_ends_ && !request_.terminal) {
    run_.in.reset();
  }
  if (credit > 0) {
    wire::Bytes frames;
    wire::append_credit(frames, stream_, credit);
    output_.send(frames);
  }
}

// Drops input that no process reads.
void Foreground::drop_input() {
  std::uint32_t credit = 0;
  {
    const std::lock_guard lock(mutex_);
    credit = input_.empty() ? 0 : receive_credit_.consume(input_.size());
    input_.clear();
  }
  if (credit > 0 && !is_finished_) {
    wire::Bytes frames;
    wire::append_credit(frames, stream_, credit);
    output_.send(frames);
  }
}

void Foreground::copy(Descriptor& from, std::uint8_t selector) {
  wire::Bytes payload;
  for (int i = 0; i < run_pieces_in_turn && from; ++i) {
    const std::size_t most = std::min(run_piece, credit());
    if (most < 2) {
      return;
    }
    payload.resize(most);
    payload[0] = selector;
    const ssize_t count = ::read(from.get(), payload.data() + 1, most - 1);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0 && errno == EAGAIN) {
      return;
    }
    if (count <= 0) {  // EIO: the terminal has no processes any more
      from.reset();
      return;
    }
    payload.resize(static_cast<std::size_t>(count) + 1);
    last_output_ = Clock::now();
    {
      const std::lock_guard lock(mutex_);
      send_credit_.consume(payload.size());
    }
    output_.send(wire::FrameKind::data, stream_, payload);
  }
}

void Foreground::check_exit() {
  siginfo_t info{};
  if (end_ || ::waitid(P_PID, static_cast<id_t>(run_.pid), &info, WEXITED | WNOHANG) != 0 ||
      info.si_pid != run_.pid) {
    return;
  }
  end_ = info.si_code == CLD_EXITED ? wire::ProcessEnd::exited(info.si_status)
                                    : wire::ProcessEnd::signalled(info.si_status);
  exit_.reset();
  last_output_ = Clock::now();
}

// Stops the process and waits until it has exited.
void Foreground::end_process() {
  run_.in.reset();
  run_.out.reset();
  run_.err.reset();
  if (end_ || run_.pid < 0) {
    return;
  }
  const auto signal_group = [this](int signal) {
    if (::kill(-run_.pid, signal) != 0 && !end_) {
      ::kill(run_.pid, signal);  // it has not created its session yet
    }
  };
  const bool is_on_terminal = request_.terminal.has_value();
  if (!is_on_terminal) {
    signal_group(SIGTERM);
  }
  const auto is_left = [&] {
    check_exit();
    return !end_ || (!is_on_terminal && ::kill(-run_.pid, 0) == 0);
  };
  for (const auto limit = Clock::now() + grace; is_left() && Clock::now() < limit;) {
    ::usleep(10'000);
  }
  if (!is_on_terminal && is_left()) {
    signal_group(SIGKILL);
    // A process that hangs in the kernel does not exit, so the wait is limited.
    for (const auto limit = Clock::now() + quiet_time; is_left() && Clock::now() < limit;) {
      ::usleep(10'000);
    }
  }
}

void Foreground::finish() {
  is_finished_ = true;
  output_.send(wire::FrameKind::end, stream_);
  has_ended_();
}

}  // namespace remote::agent
