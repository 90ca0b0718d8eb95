#pragma once

#include <cerrno>
#include <cstdint>
#include <mutex>
#include <span>
#include <stdexcept>
#include <utility>

#include <unistd.h>

#include "wire/cbor.hpp"
#include "wire/frame.hpp"
#include "wire/request.hpp"

namespace remote::agent {

// Writes frames to the client. Thread-safe.
class Output {
 public:
  explicit Output(int fd) : fd_(fd) {}

  void send(const wire::Bytes& frames) {
    const std::lock_guard lock(mutex_);
    for (std::size_t done = 0; done < frames.size();) {
      const ssize_t count = ::write(fd_, frames.data() + done, frames.size() - done);
      if (count < 0 && errno != EINTR) {
        return;  // the client has disconnected, which the end of its input also shows
      }
      done += count > 0 ? static_cast<std::size_t>(count) : 0;
    }
  }
  void send(wire::FrameKind kind, std::uint32_t stream, std::span<const std::uint8_t> payload = {}) {
    wire::Bytes frames;
    wire::append_frame(frames, kind, stream, payload);
    send(frames);
  }
  // Throws std::length_error if the message is too long.
  template <typename Message>
  void send_message(std::uint32_t stream, const Message& message) {
    const wire::Bytes payload = wire::encode(message);
    if (payload.size() > wire::max_payload) {
      throw std::length_error("the answer is too long");
    }
    send(wire::FrameKind::message, stream, payload);
  }

 private:
  int fd_;
  std::mutex mutex_;
};

}  // namespace remote::agent
