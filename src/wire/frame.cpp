#include "wire/frame.hpp"

#include <algorithm>

namespace remote::wire {
namespace {

constexpr std::size_t max_credit = 1 << 26;

void append_number(Bytes& out, std::uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    out.push_back(static_cast<std::uint8_t>(number >> shift));
  }
}

std::uint32_t read_number(const std::uint8_t* bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 |
         bytes[3];
}

}  // namespace

void append_frame(Bytes& out, FrameKind kind, std::uint32_t stream, std::span<const std::uint8_t> payload) {
  append_number(out, static_cast<std::uint32_t>(payload.size()));
  append_number(out, stream);
  out.push_back(static_cast<std::uint8_t>(kind));
  out.insert(out.end(), payload.begin(), payload.end());
}

void append_credit(Bytes& out, std::uint32_t stream, std::uint32_t bytes) {
  Bytes payload;
  append_number(payload, bytes);
  append_frame(out, FrameKind::credit, stream, payload);
}

std::uint32_t read_credit(const Frame& frame) {
  if (frame.payload.size() != 4) {
    throw Malformed("credit", "is not four bytes");
  }
  return read_number(frame.payload.data());
}

void FrameReader::add(std::span<const std::uint8_t> bytes) {
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(begin_));
  begin_ = 0;
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

std::optional<Frame> FrameReader::next() {
  const std::size_t there = buffer_.size() - begin_;
  if (there < frame_header_size) {
    return std::nullopt;
  }
  const std::uint8_t* header = buffer_.data() + begin_;
  const std::size_t size = read_number(header);
  const std::uint8_t kind = header[8];
  if (size > max_payload) {
    throw Malformed("length", "is out of range");
  }
  if (kind > static_cast<std::uint8_t>(FrameKind::abort)) {
    throw Malformed("kind", "is unknown");
  }
  if (there < frame_header_size + size) {
    return std::nullopt;
  }
  Frame frame{static_cast<FrameKind>(kind), read_number(header + 4), {}};
  const auto payload = buffer_.begin() + static_cast<std::ptrdiff_t>(begin_ + frame_header_size);
  frame.payload.assign(payload, payload + static_cast<std::ptrdiff_t>(size));
  begin_ += frame_header_size + size;
  return frame;
}

void SendCredit::grant(std::uint32_t bytes) {
  if (bytes > max_credit - std::min(available_, max_credit)) {
    throw Malformed("credit", "is out of range");
  }
  available_ += bytes;
}

void ReceiveCredit::receive(std::size_t bytes) {
  if (bytes > granted_) {
    throw Malformed("data", "exceeds the credit");
  }
  granted_ -= bytes;
}

std::uint32_t ReceiveCredit::consume(std::size_t bytes) {
  consumed_ += bytes;
  if (consumed_ < initial_credit / 2) {
    return 0;
  }
  const auto grant = static_cast<std::uint32_t>(consumed_);
  granted_ += grant;
  consumed_ = 0;
  return grant;
}

}  // namespace remote::wire
