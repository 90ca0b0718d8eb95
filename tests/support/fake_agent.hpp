#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <poll.h>

#include "server/agent_command.hpp"
#include "server/agent_text.hpp"
#include "ssh/connection.hpp"
#include "wire/cbor.hpp"
#include "wire/frame.hpp"
#include "wire/request.hpp"

namespace remote::test {

// A connection to a server whose agent answers every request with the same messages.
class FakeAgent final : public ssh::Connection {
 public:
  // The answer: the CBOR of each message.
  std::vector<wire::Bytes> messages;
  // Exit after these messages, without ending the answer.
  bool dies = false;
  // The requests received.
  std::vector<nlohmann::json> requests;
  std::string received;  // the data after these requests

  void answer(const wire::Reply& reply) { messages.push_back(wire::encode(reply)); }
  // Adds a message, which may be invalid.
  void answer(const nlohmann::json& message) { messages.push_back(nlohmann::json::to_cbor(message)); }

  std::unique_ptr<ssh::Channel> open(const std::string& /*command*/, ssh::Sink sink) override {
    state_ = std::make_shared<State>();
    state_->sink = std::move(sink);
    return std::make_unique<FakeChannel>(*this, state_);
  }
  void pump(std::chrono::milliseconds timeout, std::span<pollfd> also) override {
    const bool has_output = state_ && !state_->output.empty() && state_->sink;
    ::poll(also.data(), also.size(), has_output ? 0 : static_cast<int>(timeout.count()));
    if (has_output) {
      state_->sink(ssh::Stream::out, std::exchange(state_->output, {}));
    }
  }
  std::string peer_address() const override { return {}; }

 private:
  struct State {
    ssh::Sink sink;
    std::string output;
    std::string before;  // the size of the first request, until that line is complete
    bool has_begun = false;
    wire::FrameReader reader;
    std::optional<ExitStatus> status;
  };

  class FakeChannel final : public ssh::Channel {
   public:
    FakeChannel(FakeAgent& agent, std::shared_ptr<State> state) : agent_(agent), state_(std::move(state)) {}
    ~FakeChannel() override { state_->sink = {}; }
    FakeChannel(const FakeChannel&) = delete;
    FakeChannel& operator=(const FakeChannel&) = delete;
    std::size_t writable() const override { return 65536; }
    void write(std::string_view data) override { agent_.take(*state_, data); }
    void close_input() override { state_->status = ExitStatus::exited(0); }
    void pause(bool /*paused*/) override {}
    bool finished() const override { return state_->status.has_value() && state_->output.empty(); }
    std::optional<ExitStatus> status() const override { return state_->status; }

   private:
    FakeAgent& agent_;
    std::shared_ptr<State> state_;
  };

  static void send(State& state, wire::FrameKind kind, std::uint32_t stream, const wire::Bytes& payload) {
    wire::Bytes frame;
    wire::append_frame(frame, kind, stream, payload);
    state.output.append(reinterpret_cast<const char*>(frame.data()), frame.size());
  }

  void take(State& state, std::string_view data) {
    if (!state.has_begun) {
      state.before += data;
      const std::size_t end = state.before.find('\n');
      if (end == std::string::npos) {
        return;
      }
      state.has_begun = true;
      state.output = "Welcome!\n" + std::string(server::agent_here) + "\n";
      nlohmann::json hello{{"program", ""}};
      send(state, wire::FrameKind::message, 0, nlohmann::json::to_cbor(hello));
      const std::string rest = state.before.substr(end + 1);
      take(state, rest);
      return;
    }
    state.reader.add(std::span(reinterpret_cast<const std::uint8_t*>(data.data()), data.size()));
    while (const std::optional<wire::Frame> frame = state.reader.next()) {
      take(state, *frame);
    }
  }
  void take(State& state, const wire::Frame& frame) {
    if (frame.stream == 0 && frame.kind == wire::FrameKind::end) {
      state.status = ExitStatus::exited(0);
    }
    if (frame.kind == wire::FrameKind::data) {
      received.append(frame.payload.begin(), frame.payload.end());
    }
    if (frame.stream == 0 || frame.kind != wire::FrameKind::message) {
      return;
    }
    requests.push_back(nlohmann::json::from_cbor(frame.payload));
    for (const wire::Bytes& message : messages) {
      send(state, wire::FrameKind::message, frame.stream, message);
    }
    if (dies) {
      state.status = ExitStatus::signalled(9);
    } else {
      send(state, wire::FrameKind::end, frame.stream, {});
    }
  }

  std::shared_ptr<State> state_;
};

}  // namespace remote::test
