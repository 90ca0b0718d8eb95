#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include <gtest/gtest.h>
#include <unistd.h>

#include "agent/serve/serve.hpp"
#include "wire/cbor.hpp"
#include "wire/frame.hpp"

namespace remote::agent::test {

// A client that uses two pipes.
class ServeClient {
 public:
  explicit ServeClient(const Answer& answer, std::chrono::milliseconds interval = std::chrono::minutes(1),
                       Host host = {})
      : host_(std::move(host)) {
    std::signal(SIGPIPE, SIG_IGN);
    host_.cancelled = std::make_shared<std::atomic<bool>>(false);
    EXPECT_EQ(::pipe(to_.data()) + ::pipe(from_.data()), 0);
    thread_ = std::thread([this, answer, interval] {
      status_ = serve(to_[0], from_[1], "/a program", host_, answer, interval);
      ::close(from_[1]);  // otherwise receive() would wait forever
    });
  }
  ~ServeClient() {
    close();
    ::close(to_[0]);
  }
  ServeClient(const ServeClient&) = delete;
  ServeClient& operator=(const ServeClient&) = delete;

  int close() {
    ::close(std::exchange(to_[1], -1));
    ::close(std::exchange(from_[0], -1));
    return join();
  }
  int join() {
    if (thread_.joinable()) {
      thread_.join();
      EXPECT_TRUE(host_.is_cancelled());
    }
    return status_;
  }
  void send(wire::FrameKind kind, std::uint32_t stream, const wire::Bytes& payload = {}) {
    wire::Bytes bytes;
    wire::append_frame(bytes, kind, stream, payload);
    EXPECT_EQ(::write(to_[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  void ask(std::uint32_t stream, const wire::FactsRequest& request) { ask_any(stream, request); }
  void ask_any(std::uint32_t stream, const wire::Request& request) {
    send(wire::FrameKind::message, stream, wire::encode(request));
  }
  wire::Frame receive() {
    for (;;) {
      if (auto frame = reader_.next()) {
        return *frame;
      }
      std::array<std::uint8_t, 4096> buffer{};
      const ssize_t count = ::read(from_[0], buffer.data(), buffer.size());
      if (count <= 0) {
        ADD_FAILURE() << "the agent's output has ended";
        return {};
      }
      reader_.add(std::span(buffer).first(static_cast<std::size_t>(count)));
    }
  }
  wire::Reply receive_reply() { return wire::decode<wire::Reply>(receive().payload); }

 private:
  std::array<int, 2> to_{};
  std::array<int, 2> from_{};
  int status_ = -1;
  Host host_;
  wire::FrameReader reader_;
  std::thread thread_;
};

}  // namespace remote::agent::test
