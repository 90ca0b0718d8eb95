#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <poll.h>

#include "agent/host/host.hpp"
#include "agent/run/start_run.hpp"
#include "agent/serve/loop.hpp"
#include "agent/serve/output.hpp"
#include "wire/frame.hpp"
#include "wire/run.hpp"

namespace remote::agent {

// Answers a RunRequest in its own thread. If the client aborts it, the process group gets TERM, and KILL 5
// seconds later; a terminal is hung up instead. After a normal end, background processes that it has started
// continue.
class Foreground final : public Loop {
 public:
  // `has_ended` is called when the answer is complete.
  Foreground(const Host& host, std::uint32_t stream, wire::RunRequest request, Output& output,
             std::function<void()> has_ended);
  ~Foreground() override;  // aborts it
  Foreground(const Foreground&) = delete;
  Foreground& operator=(const Foreground&) = delete;

  // Frames from the client. They throw Malformed.
  void add_input(const wire::Bytes& bytes);
  void end_input();
  void resize(const TerminalSize& size);
  void grant(std::uint32_t bytes);
  void abort();

  // Whether the client has ended or aborted the stream.
  bool has_ended_input() const { return input_ends_; }
  bool is_finished() const { return is_finished_; }

 private:
  using Clock = std::chrono::steady_clock;

  int prepare_more(std::vector<pollfd>& fds) override;
  void do_step() override;
  void start();
  void take_size();
  void write_input();
  void drop_input();
  void copy(Descriptor& from, std::uint8_t selector);
  void check_exit();
  void end_process();
  void finish();
  std::size_t credit() const;
  bool has_output() const { return run_.out || run_.err; }

  const Host& host_;
  const std::uint32_t stream_;
  const wire::RunRequest request_;
  Output& output_;
  const std::function<void()> has_ended_;
  std::atomic<bool> is_aborted_ = false;
  std::atomic<bool> is_finished_ = false;
  std::atomic<bool> input_ends_ = false;

  mutable std::mutex mutex_;
  std::string input_;  // guarded by mutex_, like the next three
  std::optional<TerminalSize> new_size_{};
  wire::ReceiveCredit receive_credit_{};
  wire::SendCredit send_credit_{};

  // Used by the thread.
  bool is_started_ = false;
  StartedRun run_;
  Descriptor exit_;  // a pidfd; none before Linux 5.3
  std::optional<wire::ProcessEnd> end_{};
  Clock::time_point last_output_{};  // or of the process's end, if that is later
};

}  // namespace remote::agent
