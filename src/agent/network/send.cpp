#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sys/socket.h>

#include "agent/network/answers.hpp"
#include "agent/network/iperf.hpp"
#include "agent/network/visit.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

constexpr milliseconds closed_pause{100};  // the stream is checked at least this often
constexpr std::size_t max_answer = 100;
constexpr std::size_t chunk_size = std::size_t{1} << 20U;
constexpr double most_bits = 1e15;  // per second: more than any network carries

// Measures with the help of the listener that has this token. Reads its answers line by line.
class Measuring : public Caller {
 public:
  Measuring(const wire::SendRequest& request, const IpAddress& address, Flow& flow)
      : Caller(address, request.port), request_(request), flow_(flow) {}

 protected:
  const wire::SendRequest& request() const { return request_; }
  Flow& flow() { return flow_; }
  virtual void start() = 0;
  virtual void take_line(const std::string& line) = 0;

 private:
  void fail(int error) override { lose(socket() ? closed : error); }
  void greet(const std::string& text) override {
    const std::vector<std::string> words = split_words(text);
    if (words.size() > 1 && words[1] == request_.token) {
      start();
    } else {
      lose(closed);
    }
  }
  void answer(std::string_view data) override {
    line_ += data.substr(0, max_answer);
    const std::size_t end = line_.find('\n');
    if (end != std::string::npos || line_.size() >= max_answer) {
      take_line(std::exchange(line_, {}).substr(0, end));
    }
  }

  const wire::SendRequest& request_;
  Flow& flow_;
  std::string line_;
};

// The median of several round trips; 0 if there is none.
class Pings final : public Measuring {
 public:
  using Measuring::Measuring;

 private:
  void start() override { send("ping \n", talk_wait); }
  void take_line(const std::string& /*line*/) override {
    const Clock::time_point now = Clock::now();
    if (last_ != Clock::time_point()) {
      const auto took = std::chrono::duration_cast<std::chrono::microseconds>(now - last_);
      times_.push_back(static_cast<int>(took.count()));
    }
    if (times_.size() + 1 == ping_count) {
      lose(closed);
      return;
    }
    last_ = Clock::now();
    send("ping\n", talk_wait);
  }
  void lose(int /*why*/) override {
    std::sort(times_.begin(), times_.end());
    if (!times_.empty()) {
      flow().latency = std::chrono::microseconds(times_[times_.size() / 2]);
    }
    finish();
  }

  Clock::time_point last_{};
  std::vector<int> times_;  // microseconds
};

// Sends data for the requested time. The result has the speed, or the error.
class Sending final : public Measuring {
 public:
  using Measuring::Measuring;

 private:
  void start() override {
    flow().error = "the other side does not answer";
    end_ = Clock::now() + std::chrono::seconds(request().seconds);
    send("take \n", flow_wait);
    order_ = true;
  }
  void sent(std::size_t count) override {
    if (!order_) {
      count_ += count;
    } else if (is_sending()) {
      return;
    }
    order_ = false;
    if (Clock::now() >= end_) {
      drop_unsent();
      expect(flow_wait);
      ::shutdown(socket().get(), SHUT_WR);
      has_sent_ = true;
    } else if (!is_sending()) {
      send_bytes(chunk_, flow_wait);
    }
  }
  void take_line(const std::string& line) override {
    const std::vector<std::string> words = split_words(line);
    const auto got = parse_number<std::uint64_t>(words.empty() ? "" : words.front());
    const auto took = parse_number<std::uint64_t>(words.size() == 2 ? words.back() : "");
    // The answer is untrusted.
    if (!got || !took || *took == 0) {
      flow().error = "the other side sends an unexpected answer";
    } else if (*got > count_) {
      flow().error = "the other side reports more data than was sent";
    } else {
      flow().error = "";
      flow().gbit_s = std::min(static_cast<double>(*got) * 8e6 / static_cast<double>(*took), most_bits) / 1e9;
    }
    finish();
  }
  void lose(int why) override {
    if (end_ == Clock::time_point()) {
      flow().error = why > 0 ? std::strerror(why) : "the connection fails";
    } else if (!has_sent_) {
      flow().error = why == time_is_up ? "the connection hangs" : std::strerror(why);
    }
    finish();
  }

  const std::string chunk_ = std::string(chunk_size, '\0');
  Clock::time_point end_{};
  std::uint64_t count_ = 0;
  bool order_ = false;
  bool has_sent_ = false;
};

void talk_alone(std::unique_ptr<Talk> talk, const Stream& stream) {
  Talks talks;
  talks.add(std::move(talk));
  while (talks.size() > 0 && !stream.is_closed()) {
    std::vector<pollfd> none;
    talks.turn(none, closed_pause);
  }
}

}  // namespace

void answer_send(const Host& host, const wire::SendRequest& request, Stream& stream) {
  wire::SendReply reply;
  const auto address = IpAddress::parse(request.address);
  if (!address) {
    reply.flow.error = "the address is wrong";
    stream.send(reply);
    return;
  }
  if (request.with_latency) {
    talk_alone(std::make_unique<Pings>(request, *address, reply.flow), stream);
  }
  const Microseconds latency = reply.flow.latency;
  if (request.iperf_port > 0) {
    reply.flow = send_by_iperf(host, request.address, request.iperf_port, request.seconds);
    reply.flow.latency = latency;
  } else {
    talk_alone(std::make_unique<Sending>(request, *address, reply.flow), stream);
  }
  stream.send(reply);
}

}  // namespace remote::agent
