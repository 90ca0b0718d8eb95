#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <sys/socket.h>

#include "agent/launch/link.hpp"
#include "promise.hpp"

// Data that another server sends to a launch's supervisor: arbitrary bytes, or messages of a peer that knows
// the token. The first byte of the input selects the role and the progress of the conversation.

namespace {

using namespace remote;
using namespace remote::agent;
using fuzz::require;

const std::string token = "0123456789abcdef";
constexpr std::size_t nonce_begin = 4 + 13;
const std::string number("\0\0\0\1", 4);  // of the member

std::string make_frame(std::string_view payload) {
  std::string frame;
  for (const unsigned shift : {24U, 16U, 8U, 0U}) {
    frame += static_cast<char>(payload.size() >> shift & 0xffU);
  }
  return frame + std::string(payload);
}

const unsigned char* to_bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// The other end of the link.
class Peer {
 public:
  explicit Peer(bool is_coordinator) : is_coordinator_(is_coordinator) {
    std::array<int, 2> ends{};
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0, "there are sockets");
    socket_ = Descriptor(ends[1]);
    const auto find_token = [](std::size_t number) { return number == 1 ? token : std::string(); };
    link = is_coordinator ? std::make_unique<Link>(Descriptor(ends[0]), std::size_t{1}, token, Seconds(1))
                          : std::make_unique<Link>(Descriptor(ends[0]), find_token, Seconds(1));
  }

  void send(std::string_view bytes) {
    while (!bytes.empty() && link->is_open()) {
      const ssize_t count = ::send(socket_.get(), bytes.data(), std::min<std::size_t>(bytes.size(), 16384),
                                   MSG_NOSIGNAL | MSG_DONTWAIT);
      bytes.remove_prefix(count > 0 ? static_cast<std::size_t>(count) : 0);
      received += link->receive(Seconds(2)).size();
    }
  }
  void introduce() {
    std::array<char, 256> greeting{};
    const ssize_t size = ::recv(socket_.get(), greeting.data(), greeting.size(), 0);
    require(size == static_cast<ssize_t>(nonce_begin + 32 + (is_coordinator_ ? number.size() : 0)),
            "a link greets");
    const std::string nonce(greeting.data() + nonce_begin, 32);
    const std::string own(32, 'n');
    std::array<unsigned char, 32> secret{};
    std::array<unsigned char, 32> key{};
    crypto_generichash(secret.data(), secret.size(), to_bytes(token), token.size(), nullptr, 0);
    const std::string text = is_coordinator_ ? "remote-link1 from the coordinator " + own + nonce
                                             : "remote-link1 from a member " + nonce + own;
    crypto_generichash(key.data(), key.size(), to_bytes(text), text.size(), secret.data(), secret.size());
    std::string header(crypto_secretstream_xchacha20poly1305_HEADERBYTES, '\0');
    crypto_secretstream_xchacha20poly1305_init_push(&stream_, reinterpret_cast<unsigned char*>(header.data()),
                                                    key.data());
    send(make_frame("remote-link1 " + own + (is_coordinator_ ? "" : number)) + make_frame(header));
    require(link->is_open() && link->has_keys(), "a link accepts a peer");
  }
  void send_message(std::string_view plain) {
    std::string sealed(plain.size() + crypto_secretstream_xchacha20poly1305_ABYTES, '\0');
    crypto_secretstream_xchacha20poly1305_push(&stream_, reinterpret_cast<unsigned char*>(sealed.data()),
                                               nullptr, to_bytes(plain), plain.size(), nullptr, 0, 0);
    send(make_frame(sealed));
  }

  std::unique_ptr<Link> link;
  std::size_t received = 0;

 private:
  bool is_coordinator_;
  Descriptor socket_;
  crypto_secretstream_xchacha20poly1305_state stream_{};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  Peer peer((data[0] & 1U) != 0);
  if ((data[0] & 2U) != 0) {
    peer.introduce();
  }
  // Messages of the peer, each after a byte with its length; then arbitrary bytes.
  while ((data[0] & 6U) == 6 && !text.empty()) {
    const std::size_t length =
        std::min<std::size_t>(static_cast<unsigned char>(text.front()), text.size() - 1);
    peer.send_message(text.substr(1, length));
    text.remove_prefix(1 + length);
  }
  const std::size_t authentic = peer.received;
  peer.send(text);
  require(peer.received == authentic, "a stranger's bytes are no message");
  require(peer.link->is_authenticated() == (authentic > 0), "only messages authenticate a peer");
  require(peer.link->heard() == Seconds(authentic > 0 ? 2 : 1), "only messages of the peer count as heard");
  return 0;
}
