#include "agent/serve/serve.hpp"

#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "agent/serve_client.hpp"
#include "support/no_threads.hpp"
#include "wire/cbor.hpp"
#include "wire/frame.hpp"

namespace remote::agent {
namespace {

using Client = test::ServeClient;

// Returns the request's data as the host name.
void echo(const wire::Request& request, const std::string& data, Stream& stream) {
  if (std::get<wire::FactsRequest>(request).project == "throw") {
    throw std::runtime_error("no\x1b luck");
  }
  wire::FactsReply reply;
  reply.facts.host = data;
  stream.send(reply);
}

TEST(Serve, AnswersEachRequestOnItsStream) {
  Client client(echo);
  EXPECT_EQ(wire::decode<wire::AgentHello>(client.receive().payload).program, "/a program");
  client.ask(1, {});
  client.ask(7, {});
  client.send(wire::FrameKind::data, 7, {'a', 'b'});
  client.send(wire::FrameKind::end, 7);
  const wire::Frame frame = client.receive();
  EXPECT_EQ(frame.stream, 7U);
  EXPECT_EQ(std::get<wire::FactsReply>(wire::decode<wire::Reply>(frame.payload)).facts.host, "ab");
  EXPECT_EQ(client.receive(), (wire::Frame{wire::FrameKind::end, 7, {}}));
  client.send(wire::FrameKind::end, 1);
  EXPECT_EQ(std::get<wire::FactsReply>(client.receive_reply()).facts.host, "");
  EXPECT_EQ(client.close(), 0);
}

TEST(Serve, EndsAfterTheLastAnswer) {
  Client client(echo);
  client.receive();
  client.ask(1, {});
  client.send(wire::FrameKind::end, 1);
  client.send(wire::FrameKind::end, 0);
  client.receive_reply();
  EXPECT_EQ(client.join(), 0) << "although the client's end is open";
}

TEST(Serve, GrantsCreditForData) {
  Client client(echo);
  client.receive();
  client.ask(1, {});
  client.send(wire::FrameKind::data, 1, wire::Bytes(wire::initial_credit / 2, 'x'));
  EXPECT_EQ(wire::read_credit(client.receive()), wire::initial_credit / 2);
}

TEST(Serve, SendsSignsOfLifeWhileItAnswers) {
  std::promise<void> go;
  const auto slow = [future = go.get_future().share()](const wire::Request&, const std::string&,
                                                       Stream& stream) {
    future.wait();
    stream.send(wire::FactsReply());
  };
  Client client(slow, std::chrono::milliseconds(1));
  client.receive();
  client.ask(1, {});
  client.send(wire::FrameKind::end, 1);
  const wire::Frame sign{wire::FrameKind::data, 0, {}};
  EXPECT_EQ(client.receive(), sign);
  EXPECT_EQ(client.receive(), sign);
  go.set_value();
  wire::Frame frame = client.receive();
  while (frame == sign) {
    frame = client.receive();
  }
  EXPECT_EQ(frame.stream, 1U);
}

TEST(Serve, RefusesWhatFails) {
  Client client(echo);
  client.receive();
  client.ask(1, {.project = "throw"});
  client.send(wire::FrameKind::end, 1);
  EXPECT_EQ(std::get<wire::Refusal>(client.receive_reply()).reason, "no\\x1b luck");
}

TEST(Serve, SendsSeveralMessages) {
  const auto twice = [](const wire::Request&, const std::string& data, Stream& stream) {
    for (const int part : {1, 2}) {
      wire::FactsReply reply;
      reply.facts.host = data + std::to_string(part);
      stream.send(reply);
    }
    throw std::runtime_error("no third part");
  };
  Client client(twice);
  client.receive();
  client.ask(1, {});
  client.send(wire::FrameKind::end, 1);
  EXPECT_EQ(std::get<wire::FactsReply>(client.receive_reply()).facts.host, "1");
  EXPECT_EQ(std::get<wire::FactsReply>(client.receive_reply()).facts.host, "2");
  EXPECT_EQ(std::get<wire::Refusal>(client.receive_reply()).reason, "no third part");
  EXPECT_EQ(client.receive(), (wire::Frame{wire::FrameKind::end, 1, {}}));
}

TEST(Serve, RefusesAnAnswerThatFitsIntoNoFrame) {
  const auto endless = [](const wire::Request&, const std::string&, Stream& stream) {
    stream.send(wire::LinesReply{std::vector<std::string>(1000, std::string(2000, 'x'))});
  };
  Client client(endless);
  client.receive();
  client.ask(1, {});
  client.send(wire::FrameKind::end, 1);
  EXPECT_EQ(std::get<wire::Refusal>(client.receive_reply()).reason, "the answer is too long");
}

TEST(Serve, AnAbortClosesOneStream) {
  std::promise<void> go;
  std::atomic<int> closed = 0;
  const auto patient = [&, future = go.get_future().share()](const wire::Request& request, const std::string&,
                                                             Stream& stream) {
    if (std::get<wire::FactsRequest>(request).project == "other") {
      future.wait();
    }
    while (std::get<wire::FactsRequest>(request).project.empty() && !stream.is_closed()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // poll interval
    }
    closed += stream.is_closed() ? 1 : 0;
    stream.send(wire::FactsReply());
  };
  Client client(patient);
  client.receive();
  client.ask(1, {});
  client.send(wire::FrameKind::end, 1);
  client.ask(2, {.project = "other"});
  client.send(wire::FrameKind::end, 2);
  client.ask(3, {});  // not answered before the request is complete
  client.send(wire::FrameKind::abort, 3);
  EXPECT_EQ(client.receive(), (wire::Frame{wire::FrameKind::end, 3, {}}));
  client.send(wire::FrameKind::abort, 1);
  EXPECT_EQ(client.receive(), (wire::Frame{wire::FrameKind::end, 1, {}})) << "and no message";
  client.send(wire::FrameKind::abort, 1);  // again, and for an unknown request
  client.send(wire::FrameKind::abort, 9);
  go.set_value();
  EXPECT_EQ(client.receive().stream, 2U);
  EXPECT_EQ(client.receive(), (wire::Frame{wire::FrameKind::end, 2, {}}));
  EXPECT_EQ(closed, 1);
  EXPECT_EQ(client.close(), 0);
}

TEST(Serve, AClientThatIsGoneClosesAllStreams) {
  std::atomic<int> closed = 0;
  const auto patient = [&](const wire::Request&, const std::string&, Stream& stream) {
    while (!stream.is_closed()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // poll interval
    }
    ++closed;
  };
  Client client(patient);
  client.receive();
  for (const std::uint32_t stream : {1U, 2U}) {
    client.ask(stream, {});
    client.send(wire::FrameKind::end, stream);
  }
  client.send(wire::FrameKind::abort, 5);
  client.close();
  EXPECT_EQ(closed, 2);
}

TEST(Serve, AnswersWithoutAThreadIfNoneCanBeStarted) {
  Client client(echo);
  client.receive();
  const remote::test::NoThreads none;
  for (const std::uint32_t stream : {1U, 2U}) {
    client.ask(stream, {});
    client.send(wire::FrameKind::data, stream, {'a'});
    client.send(wire::FrameKind::end, stream);
    EXPECT_EQ(client.receive(), (wire::Frame{wire::FrameKind::data, 0, {}})) << "the request has arrived";
    EXPECT_EQ(std::get<wire::FactsReply>(client.receive_reply()).facts.host, "a");
    EXPECT_EQ(client.receive(), (wire::Frame{wire::FrameKind::end, stream, {}}));
  }
  client.send(wire::FrameKind::end, 0);
  EXPECT_EQ(client.join(), 0);
}

TEST(Serve, EndsWithAClientThatDoesNotKeepToTheProtocol) {
  const wire::Bytes nonsense{1, 2, 3};
  for (const auto& [kind, stream] :
       {std::pair(wire::FrameKind::message, 0U), std::pair(wire::FrameKind::message, 1U),
        std::pair(wire::FrameKind::data, 1U)}) {
    Client client(echo);
    client.receive();
    client.send(kind, stream, nonsense);
    EXPECT_EQ(client.close(), 1);
  }
}

}  // namespace
}  // namespace remote::agent
