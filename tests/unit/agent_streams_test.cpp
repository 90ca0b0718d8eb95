#include <array>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "servers/agent.hpp"

namespace remote::servers {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using wire::FrameKind;

// The server's end of the channel.
struct AgentEnd {
  ssh::Sink sink;
  std::deque<std::string> output{"\n@remote-agent here\n"};  // one piece per pump
  std::string input;
  std::optional<ExitStatus> status;

  void send(FrameKind kind, std::uint32_t stream, const wire::Bytes& payload = {}) {
    wire::Bytes bytes;
    wire::append_frame(bytes, kind, stream, payload);
    output.emplace_back(bytes.begin(), bytes.end());
  }
  void send(std::uint32_t stream, const wire::Reply& reply) {
    send(FrameKind::message, stream, wire::encode(reply));
  }
  void answer(std::uint32_t stream, const std::string& reason) {
    send(stream, wire::Refusal{reason});
    send(FrameKind::end, stream);
  }
  // The frames that the client has sent since the last call, without the line before the first frame.
  std::vector<std::pair<FrameKind, std::uint32_t>> take_frames() {
    if (!std::exchange(has_first_line_, true)) {
      input.erase(0, input.find('\n') + 1);
    }
    wire::FrameReader reader;
    reader.add(std::span(reinterpret_cast<const std::uint8_t*>(input.data()), input.size()));
    input.clear();
    std::vector<std::pair<FrameKind, std::uint32_t>> frames;
    while (const auto frame = reader.next()) {
      frames.emplace_back(frame->kind, frame->stream);
    }
    return frames;
  }

 private:
  bool has_first_line_ = false;
};

class AgentChannel : public ssh::Channel {
 public:
  explicit AgentChannel(AgentEnd& end) : end_(end) {}
  ~AgentChannel() override { end_.sink = {}; }
  AgentChannel(const AgentChannel&) = delete;
  AgentChannel& operator=(const AgentChannel&) = delete;
  std::size_t writable() const override { return 100'000; }
  void write(std::string_view data) override { end_.input += data; }
  void close_input() override {}
  void pause(bool) override {}
  bool finished() const override { return end_.output.empty() && end_.status.has_value(); }
  std::optional<ExitStatus> status() const override { return end_.status; }

 private:
  AgentEnd& end_;
};

class AgentConnection : public ssh::Connection {
 public:
  explicit AgentConnection(AgentEnd& end) : end_(end) {}
  std::unique_ptr<ssh::Channel> open(const std::string& /*command*/, ssh::Sink sink) override {
    end_.sink = std::move(sink);
    return std::make_unique<AgentChannel>(end_);
  }
  void pump(milliseconds timeout, std::span<pollfd> also) override {
    ::poll(also.data(), also.size(), end_.output.empty() ? static_cast<int>(timeout.count()) : 0);
    if (!end_.output.empty()) {
      const std::string piece = std::move(end_.output.front());
      end_.output.pop_front();
      end_.sink(ssh::Stream::out, piece);
    }
  }
  std::string peer_address() const override { return {}; }

 private:
  AgentEnd& end_;
};

std::string reason_of(const wire::Reply& reply) {
  return std::get<wire::Refusal>(reply).reason;
}

class AgentStreams : public ::testing::Test {
 protected:
  void wait_for_all() {
    while (!end.output.empty()) {
      agent.wait(milliseconds(10));
    }
  }
  // Records the events of a stream as text.
  Agent::Handlers collect(std::string& into) {
    return {[&](const wire::Reply& reply) { into += reason_of(reply) + ";"; },
            [&](std::string_view data) { into += std::to_string(data.size()) + ";"; },
            [&] { into += "end"; }};
  }

  AgentEnd end;
  AgentConnection connection{end};
  Cancel cancel;
  Agent agent{connection, cancel};
};

TEST_F(AgentStreams, SeveralAnswersComeAtTheSameTime) {
  std::string one;
  std::string two;
  EXPECT_EQ(agent.open(wire::FollowRequest(), collect(one)), 1U);
  EXPECT_EQ(agent.open(wire::FollowRequest(), collect(two)), 2U);
  EXPECT_THAT(end.take_frames(),
              ElementsAre(std::pair(FrameKind::message, 1U), std::pair(FrameKind::end, 1U)))
      << "a shell that installs the agent reads nothing else";
  end.send(FrameKind::data, 0);
  wait_for_all();
  EXPECT_THAT(end.take_frames(),
              ElementsAre(std::pair(FrameKind::message, 2U), std::pair(FrameKind::end, 2U)));
  end.send(2, wire::Refusal{"a"});
  end.send(FrameKind::data, 1, wire::Bytes(10));
  end.send(FrameKind::data, 2, wire::Bytes(20));
  end.send(FrameKind::end, 2);
  end.send(1, wire::Refusal{"b"});
  wait_for_all();
  EXPECT_EQ(one, "10;b;");
  EXPECT_EQ(two, "a;20;end");
  EXPECT_TRUE(agent.has_streams());
  end.send(FrameKind::end, 1);
  wait_for_all();
  EXPECT_EQ(one, "10;b;end");
  EXPECT_FALSE(agent.has_streams());
}

TEST_F(AgentStreams, CreditIsGrantedForHandledData) {
  std::string text;
  agent.open(wire::FollowRequest(), collect(text));
  end.take_frames();
  end.send(FrameKind::data, 1, wire::Bytes(wire::initial_credit / 2 - 1));
  wait_for_all();
  EXPECT_THAT(end.take_frames(), ElementsAre());
  end.send(FrameKind::data, 1, wire::Bytes(1));
  wait_for_all();
  EXPECT_THAT(end.take_frames(), ElementsAre(std::pair(FrameKind::credit, 1U)));
  end.send(FrameKind::data, 1, wire::Bytes(wire::initial_credit));
  end.send(FrameKind::data, 1, wire::Bytes(wire::initial_credit));
  wait_for_all();
  EXPECT_EQ(std::count(text.begin(), text.end(), ';'), 4);
  end.send(FrameKind::data, 1, wire::Bytes(wire::initial_credit));
  end.send(FrameKind::data, 1, wire::Bytes(wire::max_payload));
  EXPECT_THROW(wait_for_all(), Error) << "more than it was granted";
}

TEST_F(AgentStreams, NothingComesOfAnAbortedStream) {
  std::string one;
  std::string two;
  const auto stream = agent.open(wire::FollowRequest(), collect(one));
  agent.open(wire::FollowRequest(), collect(two));
  end.send(FrameKind::data, 0);
  wait_for_all();
  end.take_frames();
  agent.close(stream);
  agent.close(stream);
  EXPECT_THAT(end.take_frames(), ElementsAre(std::pair(FrameKind::abort, 1U)));
  end.send(FrameKind::data, 1, wire::Bytes(10));
  end.send(1, wire::Refusal{"late"});
  end.send(FrameKind::end, 1);
  end.answer(2, "here");
  wait_for_all();
  EXPECT_EQ(one, "");
  EXPECT_EQ(two, "here;end");
  agent.close(stream);  // has no effect
  end.send(FrameKind::data, 1, wire::Bytes(10));
  EXPECT_THROW(wait_for_all(), Error) << "it had ended";
  EXPECT_THROW(agent.wait(milliseconds(1)), Error);
}

TEST_F(AgentStreams, AQuestionIsAnsweredBesideAStream) {
  std::string text;
  agent.open(wire::FollowRequest(), collect(text));
  end.send(FrameKind::data, 0);
  end.send(FrameKind::data, 1, wire::Bytes(10));
  wait_for_all();
  end.send(FrameKind::data, 1, wire::Bytes(20));
  end.answer(2, "no");
  end.send(FrameKind::data, 1, wire::Bytes(30));
  EXPECT_EQ(reason_of(agent.ask({.request = wire::StateRequest()})), "no");
  EXPECT_EQ(text, "10;20;");
  end.answer(3, "refused");
  EXPECT_THROW(take_reply<wire::StateReply>(agent.ask({.request = wire::StateRequest()})), Refused);
  EXPECT_EQ(text, "10;20;30;");
}

TEST_F(AgentStreams, AnAnswerMayHaveSeveralMessages) {
  for (const char* text : {"one", "two"}) {
    end.send(1, wire::Refusal{text});
  }
  end.send(FrameKind::end, 1);
  std::vector<std::string> reasons;
  agent.ask({}, [&](const wire::Reply& reply) { reasons.push_back(reason_of(reply)); });
  EXPECT_THAT(reasons, ElementsAre("one", "two"));

  // An exception in the caller is thrown after the whole answer, and the agent stays usable.
  end.send(2, wire::Refusal{"one"});
  end.answer(2, "two");
  EXPECT_THROW(
      agent.ask({}, [](const wire::Reply& reply) { throw Error("cannot use it", reason_of(reply)); }), Error);
  end.answer(3, "three");
  EXPECT_EQ(reason_of(agent.ask({})), "three");
  end.send(4, wire::Refusal{"one"});
  end.answer(4, "two");
  EXPECT_THROW(agent.ask({}), Error) << "one message was expected";
  end.send(FrameKind::end, 5);
  EXPECT_THROW(agent.ask({}), Error);
  end.send(FrameKind::data, 6, wire::Bytes(1));
  EXPECT_THROW(agent.ask({}), Error) << "data was not expected";
}

TEST_F(AgentStreams, AnAgentThatEndsIsAnError) {
  std::string text;
  agent.open(wire::FollowRequest(), collect(text));
  end.send(FrameKind::data, 0);
  wait_for_all();
  EXPECT_FALSE(agent.has_ended());
  end.status = ExitStatus::exited(3);
  EXPECT_THROW(agent.wait(milliseconds(1)), Error);
  EXPECT_TRUE(agent.has_ended());
  EXPECT_TRUE(agent.is_running()) << "it had been started";
}

TEST_F(AgentStreams, SilenceIsAnErrorIfItIsLimited) {
  std::string text;
  agent.open(wire::FollowRequest(), collect(text));
  end.send(FrameKind::data, 0);
  wait_for_all();
  agent.wait(milliseconds(50));
  try {
    for (int i = 0; i < 1000; ++i) {
      agent.wait(milliseconds(10), milliseconds(30));
    }
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.cause(), Cause::timeout);
  }
}

// A start file that asks reads the request, so the agent waits for one.
TEST_F(AgentStreams, ARequestThatAStartFileHasReadIsNotWaitedForWithoutLimit) {
  std::string text;
  end.output = {"Welcome!\nPassword: ", "\n@remote-agent here\n"};
  agent.open(wire::FollowRequest(), collect(text));
  EXPECT_TRUE(agent.awaits_login_shell());
  end.send(FrameKind::message, 0, wire::encode(wire::AgentHello{""}));
  wait_for_all();
  EXPECT_TRUE(agent.awaits_login_shell()) << "the hello is no answer";
  connection.set_answer_time(milliseconds(50));
  try {
    for (int i = 0; i < 1000; ++i) {
      agent.wait(milliseconds(10));
    }
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.cause(), Cause::timeout);
    EXPECT_EQ(error.message(),
              "no answer: the login shell there started the agent, which got no request in 0 s; the shell "
              "printed: Welcome!; Password:");
    EXPECT_THAT(error.hint(), ::testing::HasSubstr("read -p"));
  }
}

TEST_F(AgentStreams, AnAgentThatHasTheRequestMayTakeItsTime) {
  std::string text;
  agent.open(wire::FollowRequest(), collect(text));
  end.send(FrameKind::data, 0);
  wait_for_all();
  EXPECT_FALSE(agent.awaits_login_shell());
  connection.set_answer_time(milliseconds(20));
  for (int i = 0; i < 10; ++i) {
    agent.wait(milliseconds(10));
  }
}

}  // namespace
}  // namespace remote::servers
