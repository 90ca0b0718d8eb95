#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poll.h>

#include "agent/facts/kernel_route.hpp"
#include "agent/host/descriptor.hpp"

// Handles many short TCP connections in one thread. The peers may be strangers.

namespace remote::agent {

using std::chrono::milliseconds;

constexpr milliseconds connect_wait{3500};  // SYNs are sent after 0, 1 and 3 seconds
constexpr milliseconds talk_wait{2000};

// One connection. It alternates between sending and receiving.
class Talk {
 public:
  using Clock = std::chrono::steady_clock;
  // Reasons to stop, in addition to system errors (errno).
  static constexpr int closed = 0;
  static constexpr int time_is_up = -1;

  explicit Talk(Descriptor socket = {}) : socket_(std::move(socket)) {}
  virtual ~Talk() = default;
  Talk(const Talk&) = delete;
  Talk& operator=(const Talk&) = delete;

  virtual void begin() = 0;
  bool is_over() const { return is_over_; }
  Clock::time_point deadline() const { return deadline_; }
  pollfd prepare() const;
  // Handles the result of poll().
  void step(short events, std::vector<char>& buffer);

 protected:
  // Called when the connection is open (error 0) or has failed.
  virtual void connected(int /*error*/) {}
  virtual void take(std::string_view data) = 0;
  virtual void stop(int why) = 0;
  // Called after part of the text was sent.
  virtual void sent(std::size_t /*count*/) {}

  // For use by derived classes.
  void connect(const IpAddress& address, int port, int max_packet);
  // Sends a text, and then waits for data for at most `answer_wait`. `wait` limits each pause in sending.
  void send(std::string text, milliseconds answer_wait, milliseconds wait = talk_wait);
  // Like send(), but does not copy the bytes.
  void send_bytes(std::string_view bytes, milliseconds wait);
  void send_last(std::string text);
  void expect(milliseconds wait) { deadline_ = Clock::now() + wait; }
  void finish() { is_over_ = true; }
  bool is_sending() const { return !unsent_.empty(); }
  void drop_unsent() { unsent_ = {}; }
  const Descriptor& socket() const { return socket_; }

 private:
  void send_more();

  Descriptor socket_;
  std::string text_;
  std::string_view unsent_;
  bool is_over_ = false;
  bool is_connecting_ = false;
  bool is_last_ = false;
  milliseconds send_wait_ = talk_wait;
  milliseconds answer_wait_{0};
  Clock::time_point deadline_{};
};

// A connection to a listener.
class Caller : public Talk {
 public:
  Caller(const IpAddress& address, int port, int max_packet = 0)
      : address_(address), port_(port), max_packet_(max_packet) {}

  void begin() override { connect(address_, port_, max_packet_); }

 protected:
  const IpAddress& address() const { return address_; }
  int port() const { return port_; }
  // Called if the connection fails, with a system error or time_is_up.
  virtual void fail(int error) = 0;
  // Called with the listener's greeting, or another text.
  virtual void greet(const std::string& text) = 0;
  virtual void answer(std::string_view data) = 0;
  virtual void lose(int why) = 0;

 private:
  void connected(int error) final;
  void take(std::string_view data) final;
  void stop(int why) final;

  enum class Step { connecting, greeting, talking };

  IpAddress address_;
  int port_;
  int max_packet_;
  Step step_ = Step::connecting;
  std::string greeting_;
};

class Talks {
 public:
  // Starts the talk.
  void add(std::unique_ptr<Talk> talk);
  std::size_t size() const { return talks_.size(); }
  // Waits for events of the talks and of these descriptors, at most for `limit`, and handles those of the
  // talks.
  void turn(std::vector<pollfd>& others, milliseconds limit);

 private:
  std::list<std::unique_ptr<Talk>> talks_;
  std::vector<char> buffer_ = std::vector<char>(std::size_t{1} << 20U);
};

}  // namespace remote::agent
