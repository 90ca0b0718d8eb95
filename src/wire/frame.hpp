#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "wire/cbor.hpp"

// The frames on a channel between client and agent.
//
//   bytes 0-3   length of the payload, big-endian, at most max_payload
//   bytes 4-7   stream, big-endian; 0 is the connection itself
//   byte 8      kind
//
// A side may send `data` on a stream only as long as it has credit there: each stream begins with
// initial_credit bytes, and the receiver grants more by `credit` as it consumes them. Messages need no
// credit; requests are few and small.

namespace remote::wire {

constexpr std::size_t frame_header_size = 9;
constexpr std::size_t max_payload = 1 << 20;
constexpr std::uint32_t initial_credit = 1 << 18;

enum class FrameKind : std::uint8_t {
  message,  // a CBOR message
  data,     // raw bytes of an output
  credit,   // four bytes, big-endian: the number of additional data bytes allowed
  end,      // the sender sends nothing more on this stream
  abort,    // the stream is closed in both directions; frames still in transit are ignored
};

struct Frame {
  FrameKind kind = FrameKind::message;
  std::uint32_t stream = 0;
  Bytes payload;

  friend bool operator==(const Frame&, const Frame&) = default;
};

// Appends the frame to `out`. The payload must not exceed max_payload.
void append_frame(Bytes& out, FrameKind kind, std::uint32_t stream, std::span<const std::uint8_t> payload);
void append_credit(Bytes& out, std::uint32_t stream, std::uint32_t bytes);

// The number of bytes that a `credit` frame grants. Throws Malformed.
std::uint32_t read_credit(const Frame& frame);

// Splits received bytes into frames. It buffers at most one frame and the bytes received together with its
// end.
class FrameReader {
 public:
  void add(std::span<const std::uint8_t> bytes);
  // The next whole frame; nullopt until more bytes arrive. Throws Malformed for a header that the protocol
  // does not allow; after that, the reader must not be used.
  std::optional<Frame> next();
  // Whether the received bytes end in the middle of a frame.
  bool is_inside_frame() const { return begin_ != buffer_.size(); }

 private:
  Bytes buffer_;
  std::size_t begin_ = 0;  // the bytes before it were already returned
};

// The number of bytes that one side may still send on a stream.
class SendCredit {
 public:
  std::size_t available() const { return available_; }
  // `bytes` must not exceed available().
  void consume(std::size_t bytes) { available_ -= bytes; }
  // Throws Malformed if the peer grants more than any receiver would buffer.
  void grant(std::uint32_t bytes);

 private:
  std::size_t available_ = initial_credit;
};

// The credit that a receiver has granted. Checks that the sender respects it.
class ReceiveCredit {
 public:
  // Call this when `bytes` have arrived. Throws Malformed if they exceed the credit.
  void receive(std::size_t bytes);
  // Call this when `bytes` of these were consumed. Returns how much credit to send now; 0: not worth a frame.
  std::uint32_t consume(std::size_t bytes);

 private:
  std::size_t granted_ = initial_credit;
  std::size_t consumed_ = 0;
};

}  // namespace remote::wire
