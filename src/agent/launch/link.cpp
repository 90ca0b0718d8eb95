#include "agent/launch/link.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <span>
#include <utility>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "wire/cbor.hpp"

// libsodium calls this if its own functions are misused. Its own definition pulls in sodium_init() and thus
// all algorithms, which would make the compressed agent 75 KB larger. sodium_init() only selects faster
// implementations and prepares functions that are not used here; links carry little data.
extern "C" __attribute__((weak)) void sodium_misuse() {
  std::abort();
}

namespace remote::agent {
namespace {

constexpr std::string_view link_greeting = "remote-link1 ";
constexpr std::size_t link_nonce_size = 32;
constexpr std::size_t length_size = 4;
constexpr std::size_t number_size = 4;
constexpr std::size_t sealing_size = crypto_secretstream_xchacha20poly1305_ABYTES;
constexpr std::size_t stream_header_size = crypto_secretstream_xchacha20poly1305_HEADERBYTES;

const unsigned char* as_bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

unsigned char* as_bytes(std::string& text) {
  return reinterpret_cast<unsigned char*>(text.data());
}

std::size_t read_number(std::string_view four_bytes) {
  std::size_t number = 0;
  for (const char c : four_bytes) {
    number = number << 8U | static_cast<unsigned char>(c);
  }
  return number;
}

std::string to_four_bytes(std::size_t number) {
  std::string bytes;
  for (unsigned shift = 32; shift > 0; shift -= 8) {
    bytes += static_cast<char>(number >> (shift - 8) & 0xffU);
  }
  return bytes;
}

}  // namespace

Link::Link(Descriptor socket, FindToken find_token, Seconds now)
    : socket_(std::move(socket)), find_token_(std::move(find_token)), is_coordinator_(true), heard_(now) {
  begin();
}

Link::Link(Descriptor socket, std::size_t number, std::string_view token, Seconds now)
    : socket_(std::move(socket)), is_coordinator_(false), number_(number), heard_(now) {
  if (token.empty()) {
    close();
    return;
  }
  set_token(token);
  begin();
}

void Link::set_token(std::string_view token) {
  crypto_generichash(secret_.data(), secret_.size(), as_bytes(token), token.size(), nullptr, 0);
}

void Link::begin() {
  nonce_.resize(link_nonce_size);
  ::randombytes_buf(nonce_.data(), nonce_.size());
  const int flags = ::fcntl(fd(), F_GETFL);
  if (flags < 0 || ::fcntl(fd(), F_SETFL, flags | O_NONBLOCK) != 0) {
    close();
    return;
  }
  const int on = 1;
  ::setsockopt(fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  queue_frame(std::string(link_greeting) + nonce_ + (is_coordinator_ ? "" : to_four_bytes(number_)));
}

void Link::close() {
  socket_.reset();
  unsent_.clear();
  received_.clear();
}

Link::Key Link::derive_key(bool of_coordinator, std::string_view peer_nonce) const {
  std::string text(link_greeting);
  text += of_coordinator ? "from the coordinator " : "from a member ";
  text += is_coordinator_ ? std::string_view(nonce_) : peer_nonce;
  text += is_coordinator_ ? peer_nonce : std::string_view(nonce_);
  Key key;
  crypto_generichash(key.data(), key.size(), as_bytes(std::string_view(text)), text.size(), secret_.data(),
                     secret_.size());
  return key;
}

std::size_t Link::max_received() const {
  if (!is_authenticated_) {
    return max_unproved_frame;
  }
  return is_coordinator_ ? max_member_frame : max_coordinator_frame;
}

void Link::queue_frame(std::string_view payload) {
  unsent_ += to_four_bytes(payload.size());
  unsent_ += payload;
  flush();
  if (unsent_.size() > max_unsent) {
    close();
  }
}

void Link::send(const wire::LinkMessage& message) {
  if (!is_open() || !has_keys()) {
    return;
  }
  const wire::Bytes plain = wire::encode(message);
  std::string sealed(plain.size() + sealing_size, '\0');
  if (sealed.size() > (is_coordinator_ ? max_coordinator_frame : max_member_frame)) {
    return;
  }
  crypto_secretstream_xchacha20poly1305_push(&sending_, as_bytes(sealed), nullptr, plain.data(), plain.size(),
                                             nullptr, 0, crypto_secretstream_xchacha20poly1305_TAG_MESSAGE);
  queue_frame(sealed);
}

void Link::flush() {
  std::size_t sent = 0;
  while (is_open() && sent < unsent_.size()) {
    const ssize_t count = ::send(fd(), unsent_.data() + sent, unsent_.size() - sent, MSG_NOSIGNAL);
    if (count < 0) {
      if (errno != EAGAIN && errno != EINTR) {
        close();
        return;
      }
      break;
    }
    sent += static_cast<std::size_t>(count);
  }
  unsent_.erase(0, sent);
}

std::vector<wire::LinkMessage> Link::receive(Seconds now) {
  std::vector<wire::LinkMessage> messages;
  if (!is_open()) {
    return messages;
  }
  std::array<char, 65536> buffer;
  // An unauthenticated peer must not make this process buffer more than one short frame.
  const std::size_t most = is_authenticated_ ? buffer.size() : length_size + max_unproved_frame;
  const ssize_t count = ::recv(fd(), buffer.data(), most, 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
    return messages;
  }
  if (count <= 0) {
    close();
    return messages;
  }
  received_.append(buffer.data(), static_cast<std::size_t>(count));
  std::string_view rest = received_;
  while (rest.size() >= length_size) {
    const std::size_t length = read_number(rest.substr(0, length_size));
    if (length > max_received()) {
      close();
      return messages;
    }
    if (rest.size() < length_size + length) {
      break;
    }
    if (!receive_frame(rest.substr(length_size, length), now, messages)) {
      close();
      return messages;
    }
    if (!is_open()) {  // the reply to a greeting could not be sent
      return messages;
    }
    rest.remove_prefix(length_size + length);
  }
  received_.erase(0, received_.size() - rest.size());
  return messages;
}

bool Link::receive_frame(std::string_view payload, Seconds now, std::vector<wire::LinkMessage>& messages) {
  switch (expected_) {
    case Expected::greeting:
      return receive_greeting(payload);
    case Expected::header:
      expected_ = Expected::message;
      return payload.size() == stream_header_size &&
             crypto_secretstream_xchacha20poly1305_init_pull(&receiving_, as_bytes(payload),
                                                             receiving_key_.data()) == 0;
    case Expected::message:
      return receive_message(payload, now, messages);
  }
  return false;
}

bool Link::receive_greeting(std::string_view payload) {
  if (!payload.starts_with(link_greeting)) {
    return false;
  }
  payload.remove_prefix(link_greeting.size());
  const std::string_view nonce = payload.substr(0, link_nonce_size);
  // If a peer used this side's own random number, it could reflect this side's messages.
  if (payload.size() != link_nonce_size + (is_coordinator_ ? number_size : 0) || nonce == nonce_) {
    return false;
  }
  if (is_coordinator_) {
    number_ = read_number(payload.substr(link_nonce_size));
    const std::string token = find_token_(number_);
    if (token.empty()) {
      return false;
    }
    set_token(token);
  }
  receiving_key_ = derive_key(!is_coordinator_, nonce);
  const Key sending_key = derive_key(is_coordinator_, nonce);
  std::string header(stream_header_size, '\0');
  crypto_secretstream_xchacha20poly1305_init_push(&sending_, as_bytes(header), sending_key.data());
  expected_ = Expected::header;
  queue_frame(header);
  return true;
}

bool Link::receive_message(std::string_view payload, Seconds now, std::vector<wire::LinkMessage>& messages) {
  if (payload.size() < sealing_size) {
    return false;
  }
  wire::Bytes plain(payload.size() - sealing_size);
  unsigned char tag = 0;
  if (crypto_secretstream_xchacha20poly1305_pull(&receiving_, plain.data(), nullptr, &tag, as_bytes(payload),
                                                 payload.size(), nullptr, 0) != 0 ||
      tag != crypto_secretstream_xchacha20poly1305_TAG_MESSAGE) {
    return false;
  }
  try {
    messages.push_back(wire::decode<wire::LinkMessage>(plain));
  } catch (const wire::Malformed&) {
    return false;
  }
  is_authenticated_ = true;
  heard_ = now;
  return true;
}

}  // namespace remote::agent
