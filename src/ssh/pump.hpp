#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poll.h>
#include <remote/cancel.hpp>

#include "ssh/connection.hpp"

// The only loop that moves bytes between channels and this process. To run a command, open a Flow, give it
// the input for stdin, and call Pump::wait() until done.

namespace remote::ssh {

class Flow;

// Waits for a connection, its flows and other descriptors. Used only by the connection's thread.
class Pump {
 public:
  Pump(Connection& connection, const Cancel& cancel) : connection_(connection), cancel_(cancel) {}

  // Transfers data, and waits until something has happened, at most for `limit`. `also`: additional
  // descriptors to wait for; their revents are filled in. Throws Interrupted on cancel, ssh::Unreachable if
  // the connection is lost, Error if a first line is overdue (Flow::expect_answer), and the exceptions of
  // sinks.
  void wait(std::chrono::milliseconds limit, std::span<pollfd> also = {});
  Connection& connection() const { return connection_; }

 private:
  friend class Flow;

  Connection& connection_;
  const Cancel& cancel_;
  std::vector<Flow*> flows_;
  std::string buffer_;
};

// A channel with its input and the destination of its output. The pump must outlive it.
class Flow {
 public:
  using Clock = std::chrono::steady_clock;
  using Open = std::function<std::unique_ptr<Channel>(Sink)>;

  // The sink is called within Pump::wait(). It may throw, but must not destroy the flow.
  Flow(Pump& pump, const Open& open, Sink sink);
  Flow(Pump& pump, const std::string& command, Sink sink);
  ~Flow();
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  // Queues bytes for stdin. They are sent as fast as the server accepts them.
  void send(std::string_view data);
  // Sends EOF to stdin, after all queued bytes.
  void end_input();
  // From now on, copies data from this descriptor to stdin, and never reads more than the server accepts. At
  // EOF, or on a read error, calls `at_end` with the last byte read, or '\n' if there was none.
  void send_from(int fd, std::function<void(char)> at_end);
  // Writes output to a non-blocking descriptor. What the descriptor does not accept is queued here; if much
  // is queued, the command has to wait on the server. If the descriptor has no reader any more, the output is
  // dropped.
  void pass_on(std::string_view data);
  void pass_on_to(int fd) { to_ = fd; }
  bool swallows() const { return broken_; }
  bool passed_on() const { return backlog_.empty(); }

  // Sets the function that returns whether the output is complete. Then the output ends with the command (see
  // OutputEnd).
  void complete_when(std::function<bool()> complete) { complete_ = std::move(complete); }
  // For a command that answers immediately: until `answered` returns true, Pump::wait() throws Error if
  // nothing arrived for Connection::answer_time(), or if other output goes on for too long. `installing`: the
  // program is being transferred, which takes longer.
  void expect_answer(std::function<bool()> answered, std::function<bool()> installing = {}) {
    answered_ = std::move(answered);
    installing_ = std::move(installing);
  }
  // Whether the command has ended and all of its output has been handed over, or the connection is lost.
  bool over();
  // The exit status. Throws Error if the server did not report it.
  ExitStatus ended() const;
  // The time of the last output or, before that, of the construction.
  Clock::time_point heard() const { return end_.last(); }
  Channel& channel() { return *channel_; }
  std::size_t sent() const { return sent_; }
  bool has_sent_all() const { return unsent_.empty(); }

 private:
  friend class Pump;

  std::optional<std::chrono::milliseconds> left();
  bool owes_answer() const;
  Clock::time_point answer_due() const;
  void check_answer(Clock::time_point now) const;
  void feed();
  void flush();
  void read(std::string& buffer);
  void write(std::string_view data);

  Pump& pump_;
  std::string unsent_;
  std::size_t sent_ = 0;
  bool input_ends_ = false;
  int from_ = -1;
  std::function<void(char)> at_end_;
  char last_ = '\n';
  int to_ = -1;
  std::string backlog_;
  bool broken_ = false;
  std::function<bool()> complete_;
  std::function<bool()> answered_;
  std::function<bool()> installing_;
  const Clock::time_point opened_ = Clock::now();
  std::string unanswered_;  // output before the answer
  OutputEnd end_;
  std::size_t slots_ = 0;  // the index at which the pump waits for from_ and to_; 0: it does not
  std::unique_ptr<Channel>
      channel_;  // must be the last member, because its sink may be called until it is destroyed
};

// The rest of a limit that began at `begin`; the longest possible time if the limit is 0. Throws Error if no
// time is left, with `what` and the limit, as in "nothing came for 5 s", and the reason if packets are being
// lost.
std::chrono::milliseconds time_left(Connection& connection, Flow::Clock::time_point begin,
                                    std::chrono::milliseconds limit, std::string_view what,
                                    std::string_view hint);

}  // namespace remote::ssh
