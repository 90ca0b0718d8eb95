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

// The one loop that moves bytes between channels and what is here. Whoever runs a command opens a Flow, says
// what goes to its stdin, and calls Pump::wait() until it has what it wants.

namespace remote::ssh {

class Flow;

// Waits for a connection, its flows and other descriptors. One thread, the connection's.
class Pump {
 public:
  Pump(Connection& connection, const Cancel& cancel) : connection_(connection), cancel_(cancel) {}

  // Moves what can be moved, and waits until something has happened, `limit` at most. `also`: further
  // descriptors to wait for; their revents are filled in. Throws Interrupted on cancel, ssh::Unreachable when
  // the link is dead, Error when a first line is overdue (Flow::expect_answer), and what a sink throws.
  void wait(std::chrono::milliseconds limit, std::span<pollfd> also = {});
  Connection& connection() const { return connection_; }

 private:
  friend class Flow;

  Connection& connection_;
  const Cancel& cancel_;
  std::vector<Flow*> flows_;
  std::string buffer_;
};

// A channel with what goes to its stdin and what becomes of its output. Its pump outlives it.
class Flow {
 public:
  using Clock = std::chrono::steady_clock;
  using Open = std::function<std::unique_ptr<Channel>(Sink)>;

  // The sink gets the output within Pump::wait(); it may throw, and may not destroy the flow.
  Flow(Pump& pump, const Open& open, Sink sink);
  Flow(Pump& pump, const std::string& command, Sink sink);
  ~Flow();
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  // Bytes for stdin. They go out as the server takes them.
  void send(std::string_view data);
  // End of file on stdin, behind all that was sent.
  void end_input();
  // From now on stdin gets what is read from this descriptor, never more than the server takes. At its end,
  // or when it cannot be read, `at_end` is called with the last byte that was read, '\n' before the first.
  void send_from(int fd, std::function<void(char)> at_end);
  // Output for a descriptor that does not block. What it does not take at once waits here; when that is much,
  // the command waits on the server. A descriptor that nobody reads any more swallows everything.
  void pass_on(std::string_view data);
  void pass_on_to(int fd) { to_ = fd; }
  bool swallows() const { return broken_; }
  bool passed_on() const { return backlog_.empty(); }

  // Says that nothing is missing from the output: then it ends with the command (see OutputEnd).
  void complete_when(std::function<bool()> complete) { complete_ = std::move(complete); }
  // For a command that answers at once: until `answered`, Pump::wait() throws Error if nothing came for
  // Connection::answer_time(), or if something else comes without end. `installing`: the program is on its
  // way, which takes longer.
  void expect_answer(std::function<bool()> answered, std::function<bool()> installing = {}) {
    answered_ = std::move(answered);
    installing_ = std::move(installing);
  }
  // The command has ended and all of its output has been handed over, or the link is gone.
  bool over();
  // How it ended. Throws Error when the server did not say.
  ExitStatus ended() const;
  // When output came last, or when this was opened.
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
  std::string unanswered_;  // what came before the answer
  OutputEnd end_;
  std::size_t slots_ = 0;             // where the pump waits for from_ and to_; 0: it does not
  std::unique_ptr<Channel> channel_;  // the last one: until here its sink may be called
};

// What is left of a limit that began at `begin`; the longest time for a limit of 0. Throws Error when nothing
// is: no answer, for `what` and the limit, as in "nothing came for 5 s", and why, if packets get lost.
std::chrono::milliseconds time_left(Connection& connection, Flow::Clock::time_point begin,
                                    std::chrono::milliseconds limit, std::string_view what,
                                    std::string_view hint);

}  // namespace remote::ssh
