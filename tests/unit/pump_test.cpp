#include "ssh/pump.hpp"

#include <array>
#include <deque>
#include <string>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/files.hpp"
#include "ssh/path.hpp"
#include "support/waiting.hpp"

namespace remote::ssh {
namespace {

using namespace std::chrono_literals;

// The simulated server's actions on a channel, one per pump.
struct Server {
  Sink sink;
  std::deque<std::pair<Stream, std::string>> output;  // not passed on while paused
  std::string input;
  std::size_t window = 1000;
  bool paused = false;
  int pauses = 0;
  bool input_closed = false;
  bool output_ends = false;  // after the last of `output`
  std::optional<ExitStatus> status;
  bool lost = false;
  int pumps = 0;
  std::chrono::milliseconds longest_wait{0};
  std::string losses;  // the connection's explanation of a silence by lost packets
};

class FakeChannel : public Channel {
 public:
  explicit FakeChannel(Server& server) : server_(server) {}
  ~FakeChannel() override { server_.sink = {}; }
  FakeChannel(const FakeChannel&) = delete;
  FakeChannel& operator=(const FakeChannel&) = delete;
  std::size_t writable() const override { return server_.input_closed ? 0 : server_.window; }
  void write(std::string_view data) override {
    ASSERT_LE(data.size(), server_.window) << "more than the server takes";
    ASSERT_FALSE(server_.input_closed);
    server_.window -= data.size();
    server_.input += data;
  }
  void close_input() override { server_.input_closed = true; }
  void pause(bool paused) override {
    server_.pauses += paused && !server_.paused ? 1 : 0;
    server_.paused = paused;
  }
  bool finished() const override {
    return server_.output_ends && server_.output.empty() && server_.status.has_value();
  }
  std::optional<ExitStatus> status() const override { return server_.status; }

 private:
  Server& server_;
};

class FakeConnection : public Connection {
 public:
  explicit FakeConnection(Server& server) : server_(server) {}
  std::unique_ptr<Channel> open(const std::string& /*command*/, Sink sink) override {
    server_.sink = std::move(sink);
    return std::make_unique<FakeChannel>(server_);
  }
  void pump(std::chrono::milliseconds timeout, std::span<pollfd> also) override {
    ++server_.pumps;
    server_.longest_wait = std::max(server_.longest_wait, timeout);
    const bool has_output = !server_.output.empty() && !server_.paused && server_.sink;
    ::poll(also.data(), also.size(), has_output || server_.lost ? 0 : static_cast<int>(timeout.count()));
    if (has_output) {
      const auto [stream, data] = std::exchange(server_.output.front(), {});
      server_.output.pop_front();
      server_.sink(stream, data);
    } else if (server_.lost) {
      throw Unreachable("connection lost", "gone");
    }
  }
  std::string peer_address() const override { return {}; }
  std::string explain_silence() override { return server_.losses; }

 private:
  Server& server_;
};

class PumpTest : public testing::Test {
 protected:
  Sink collect() {
    return [this](Stream stream, std::string_view data) { (stream == Stream::out ? out_ : err_) += data; };
  }
  std::unique_ptr<Flow> open() { return std::make_unique<Flow>(pump_, "command", collect()); }
  // A flow between the channel and one end of a socket pair, for input and output.
  std::unique_ptr<Flow> open_on_socket() {
    ::fcntl(here_.get(), F_SETFL, O_NONBLOCK);
    auto flow = std::make_unique<Flow>(pump_, "command",
                                       [this](Stream, std::string_view data) { piped_->pass_on(data); });
    piped_ = flow.get();
    flow->pass_on_to(here_.get());
    flow->send_from(here_.get(), [this](char last) {
      last_ = last;
      piped_->end_input();
    });
    return flow;
  }
  std::string read_there(std::size_t most) const {
    std::string data(most, '\0');
    const ssize_t count = ::recv(there_.get(), data.data(), data.size(), MSG_DONTWAIT);
    data.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return data;
  }

  const std::string binary_ = std::string("\0\r\n\xff\x04\x80 end", 10);
  Cancel cancel_;
  Server server_;
  FakeConnection connection_{server_};
  Pump pump_{connection_, cancel_};
  std::pair<UniqueFd, UniqueFd> sockets_ = socket_pair();
  UniqueFd& here_ = sockets_.first;
  UniqueFd& there_ = sockets_.second;
  Flow* piped_ = nullptr;
  char last_ = 0;
  std::string out_;
  std::string err_;
};

TEST_F(PumpTest, InputWaitsForTheServersWindowAndItsEndComesLast) {
  const auto flow = open();
  const std::string data(2500, 'x');
  flow->send(data + binary_);
  flow->end_input();
  for (const std::size_t expected : {1000U, 2000U, 2510U}) {
    EXPECT_EQ(server_.input_closed, expected > 2500) << expected;
    EXPECT_EQ(server_.input.size(), std::min<std::size_t>(expected, server_.input.size()));
    server_.window = 1000;
    pump_.wait(0ms);
  }
  EXPECT_EQ(server_.input, data + binary_);
  EXPECT_TRUE(server_.input_closed);
  EXPECT_EQ(flow->sent(), 2510U);
}

TEST_F(PumpTest, OutputOfBothStreamsComesAsItWas) {
  const auto flow = open();
  server_.output = {{Stream::out, binary_}, {Stream::err, "why"}, {Stream::out, binary_}};
  server_.output_ends = true;
  server_.status = ExitStatus::exited(3);
  while (!flow->over()) {
    pump_.wait(5s);
  }
  EXPECT_EQ(out_, binary_ + binary_);
  EXPECT_EQ(err_, "why");
  EXPECT_EQ(flow->ended(), ExitStatus::exited(3));
}

TEST_F(PumpTest, TheStatusMayComeBehindTheEndOfTheOutput) {
  const auto flow = open();
  server_.output_ends = true;
  pump_.wait(0ms);
  EXPECT_FALSE(flow->over());
  server_.status = ExitStatus::signalled(9);
  EXPECT_TRUE(flow->over());
  EXPECT_EQ(flow->ended(), ExitStatus::signalled(9));
}

TEST_F(PumpTest, OutputThatStaysOpenBehindTheStatusIsOverAfterASecondOfSilence) {
  const auto flow = open();
  server_.status = ExitStatus::exited(0);
  const auto begin = Flow::Clock::now();
  EXPECT_FALSE(flow->over());
  server_.output = {{Stream::out, "late"}};
  while (!flow->over()) {
    pump_.wait(600s);  // wakes up when the second is over
  }
  const auto took = Flow::Clock::now() - begin;
  EXPECT_GE(took, 990ms);
  EXPECT_LT(took, test::patience);
  EXPECT_EQ(out_, "late");
}

TEST_F(PumpTest, NothingIsMissingSoAMomentIsEnough) {
  const auto flow = open();
  bool complete = false;
  flow->complete_when([&] { return complete; });
  server_.status = ExitStatus::exited(0);
  EXPECT_FALSE(flow->over());
  complete = true;
  while (!flow->over()) {
    pump_.wait(60s);
  }
  EXPECT_LE(server_.longest_wait, 50ms) << "otherwise it is 1 s";
}

TEST_F(PumpTest, AServerThatClosesWithoutAStatusHasLostTheCommand) {
  const auto flow = open();
  EXPECT_THROW(static_cast<void>(flow->ended()), Error);
}

TEST_F(PumpTest, ALinkThatDiesInTheMiddleThrowsBehindWhatCame) {
  const auto flow = open();
  server_.output = {{Stream::out, "half"}};
  server_.lost = true;
  pump_.wait(5s);
  EXPECT_THROW(pump_.wait(5s), Unreachable);
  EXPECT_EQ(out_, "half");
}

TEST_F(PumpTest, CancelWakesItAndThrows) {
  const auto flow = open();
  cancel_.cancel();
  const auto begin = Flow::Clock::now();
  EXPECT_THROW(pump_.wait(600s), Interrupted);
  EXPECT_LT(Flow::Clock::now() - begin, test::patience);
}

TEST_F(PumpTest, WhatASinkThrowsComesOut) {
  const Flow flow(pump_, "command", [](Stream, std::string_view) { throw Error("too much", "output"); });
  server_.output = {{Stream::out, "x"}};
  EXPECT_THROW(pump_.wait(5s), Error);
}

TEST_F(PumpTest, AFlowThatIsGoneIsNotServed) {
  open().reset();
  pump_.wait(0ms);
  EXPECT_FALSE(server_.sink);
}

TEST_F(PumpTest, OtherDescriptorsSayThatTheyAreReady) {
  ASSERT_TRUE(write_all(there_.get(), "x"));
  std::array<pollfd, 2> also{{{-1, POLLIN, 0}, {here_.get(), POLLIN, 0}}};
  pump_.wait(60s, also);
  EXPECT_EQ(also[0].revents, 0);
  EXPECT_EQ(also[1].revents, POLLIN);
}

TEST_F(PumpTest, InputOfADescriptorIsReadOnlyAsTheServerTakesIt) {
  const auto flow = open_on_socket();
  ASSERT_TRUE(write_all(there_.get(), std::string(1500, 'x') + binary_));
  pump_.wait(5s);
  EXPECT_EQ(server_.input.size(), 1000U);
  pump_.wait(0ms);
  EXPECT_EQ(server_.input.size(), 1000U);
  server_.window = 1000;
  pump_.wait(5s);
  EXPECT_EQ(server_.input, std::string(1500, 'x') + binary_);
  EXPECT_EQ(last_, 0);
  ::shutdown(there_.get(), SHUT_WR);
  pump_.wait(5s);
  EXPECT_EQ(last_, 'd');
  EXPECT_TRUE(server_.input_closed);
  const int pumps = server_.pumps;
  const auto begin = Flow::Clock::now();
  pump_.wait(20ms);  // end of file does not wake it again
  EXPECT_GE(Flow::Clock::now() - begin, 15ms);
  EXPECT_EQ(server_.pumps, pumps + 1);
}

TEST_F(PumpTest, WhatIsSentGoesOutBeforeWhatIsRead) {
  server_.window = 3;
  const auto flow = open_on_socket();
  flow->send("first ");
  ASSERT_TRUE(write_all(there_.get(), "second"));
  while (server_.input.size() < 12) {
    server_.window = 3;
    pump_.wait(5s);
  }
  EXPECT_EQ(server_.input, "first second");
}

TEST_F(PumpTest, ASlowReaderMakesTheServerWaitAndLosesNothing) {
  const auto flow = open_on_socket();
  std::string all;
  for (int i = 0; i < 40; ++i) {
    all += std::string(100000, static_cast<char>('a' + i % 26)) + binary_;
    server_.output.emplace_back(Stream::out, all.substr(all.size() - 100010));
  }
  server_.output_ends = true;
  server_.status = ExitStatus::exited(0);
  for (int round = 0; round < 40; ++round) {
    pump_.wait(0ms);
  }
  EXPECT_TRUE(server_.paused);
  EXPECT_GT(server_.output.size(), 20U) << "nearly all of it waits on the server";
  EXPECT_FALSE(flow->over());
  std::string got;
  while (!flow->over() || !server_.output.empty()) {
    got += read_there(50000);
    pump_.wait(0ms);
  }
  got += read_there(std::size_t{1} << 20U);
  EXPECT_EQ(got.size(), all.size());
  EXPECT_EQ(got, all);
  EXPECT_FALSE(server_.paused);
  EXPECT_GT(server_.pauses, 1);
}

TEST_F(PumpTest, AReaderThatIsGoneSwallowsTheRest) {
  const SigpipeGuard guard;
  const auto flow = open_on_socket();
  there_.reset();
  server_.output = {{Stream::out, "one"}, {Stream::out, "two"}};
  server_.output_ends = true;
  server_.status = ExitStatus::exited(0);
  while (!flow->over()) {
    pump_.wait(5s);
  }
  EXPECT_TRUE(flow->swallows());
  EXPECT_TRUE(flow->passed_on());
}

TEST_F(PumpTest, AFirstLineThatIsOverdueIsAnError) {
  connection_.set_answer_time(50ms);
  const auto flow = open();
  flow->expect_answer([this] { return out_.find("here") != std::string::npos; });
  server_.output = {{Stream::out, "Welcome!"}};  // it may take long, but must not be silent
  pump_.wait(5s);
  try {
    pump_.wait(60s);
    pump_.wait(60s);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.cause(), Cause::timeout);
    EXPECT_EQ(error.what_failed(), "no answer");
  }
}

TEST_F(PumpTest, AGreetingWithoutEndIsAnError) {
  connection_.set_answer_time(20ms);
  for (const bool installing : {false, true}) {
    out_.clear();
    const auto flow = open();
    flow->expect_answer([this] { return out_.find("here") != std::string::npos; },
                        [&] { return installing; });
    const auto begin = Flow::Clock::now();
    try {
      while (Flow::Clock::now() < begin + 20s) {
        server_.output = {{Stream::out, "\n"}};
        pump_.wait(5s);
        ::poll(nullptr, 0, 2);  // a pause without output
      }
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.cause(), Cause::timeout);
      EXPECT_GE(Flow::Clock::now() - begin, installing ? 1200ms : 240ms);
    }
  }
}

TEST_F(PumpTest, BehindItsFirstLineACommandMayBeSilent) {
  connection_.set_answer_time(50ms);
  const auto flow = open();
  flow->expect_answer([this] { return out_.find("here") != std::string::npos; });
  server_.output = {{Stream::out, "here"}};
  while (Flow::Clock::now() < flow->heard() + 200ms) {
    pump_.wait(100ms);
  }
  EXPECT_EQ(out_, "here");
}

TEST_F(PumpTest, AFirstLineThatNobodyHasReadYetIsNotOverdue) {
  connection_.set_answer_time(1ms);
  const auto flow = open();
  flow->expect_answer([this] { return !out_.empty(); });
  ::poll(nullptr, 0, 20);  // longer than the answer time
  server_.output = {{Stream::out, "here"}};
  pump_.wait(5s);
  pump_.wait(10ms);
  EXPECT_EQ(out_, "here");
}

TEST_F(PumpTest, ALimitThatIsOverIsAnErrorWithItsCause) {
  const auto now = Flow::Clock::now();
  const auto left = [&](Flow::Clock::time_point begin, std::chrono::milliseconds limit) {
    return time_left(connection_, begin, limit, "nothing came for", "try again");
  };
  EXPECT_EQ(left(now - 1h, 0ms), std::chrono::milliseconds::max());
  EXPECT_GT(left(now, 1h), 59min);
  try {
    left(now - 2s, 1s);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.cause(), Cause::timeout);
    EXPECT_EQ(error.reason(), "nothing came for 1 s");
    EXPECT_EQ(error.hint(), "try again");
  }
}

TEST_F(PumpTest, ASilenceBecausePacketsAreLostSaysSo) {
  server_.losses = "they are lost";
  try {
    time_left(connection_, Flow::Clock::now() - 2s, 1s, "nothing came for", "try again");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.reason(), "nothing came for 1 s: they are lost");
    EXPECT_EQ(error.hint(), path_hint);
  }
  connection_.set_answer_time(20ms);
  const auto flow = open();
  flow->expect_answer([] { return false; });
  try {
    pump_.wait(5s);
    pump_.wait(5s);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.reason(), "nothing came for 0 s: they are lost");
    EXPECT_EQ(error.hint(), path_hint);
  }
}

}  // namespace
}  // namespace remote::ssh
