#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <sodium.h>

#include "agent/host/descriptor.hpp"
#include "rules/launch_policy.hpp"
#include "wire/link.hpp"

namespace remote::agent {

using rules::Seconds;

// One connection between the supervisors of the coordinator and a member of a launch, encrypted and
// authenticated by libsodium's crypto_secretstream. The keys, one for each direction, are derived from the
// member's token, which only these two servers know and which is never sent, and from a random number of each
// side, so messages cannot be replayed or reflected. Nothing here blocks. A link that receives anything
// invalid closes itself.
//
// Each side sends frames: a length of four bytes, big-endian, and the payload. The first frame is the
// greeting with the side's random number; a member adds its number in the list of servers, four bytes, which
// selects the token. The second frame is the header of its secretstream. Each further one is an encrypted
// message.
class Link {
 public:
  // Longer frames close the link. The limits are for unauthenticated peers, members and the coordinator.
  static constexpr std::size_t max_unproved_frame = 4096;
  static constexpr std::size_t max_member_frame = 16384;
  static constexpr std::size_t max_coordinator_frame = 131072;
  // The most bytes that the peer has not read yet.
  static constexpr std::size_t max_unsent = std::size_t{1} << 20U;

  // Returns the token of the member with this number; "" if it does not exist.
  using FindToken = std::function<std::string(std::size_t number)>;

  // `socket` must be connected; the constructor makes it non-blocking. An empty token closes the link. For
  // the coordinator:
  Link(Descriptor socket, FindToken find_token, Seconds now);
  // For a member:
  Link(Descriptor socket, std::size_t number, std::string_view token, Seconds now);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  int fd() const { return socket_.get(); }  // -1: closed
  bool is_open() const { return static_cast<bool>(socket_); }
  // Whether the keys are known, so that messages can be sent. The peer may not be authenticated yet.
  bool has_keys() const { return expected_ != Expected::greeting; }
  // Whether a message has arrived, which proves that the peer knows the token.
  bool is_authenticated() const { return is_authenticated_; }
  // The number of the member. On the coordinator, this is only a claim until the link is authenticated.
  std::size_t number() const { return number_; }
  bool has_unsent() const { return !unsent_.empty(); }
  // When the last valid message arrived or, if there was none, when the connection was made.
  Seconds heard() const { return heard_; }
  // Call this if this process was paused, so that the pause does not count as silence of the peer.
  void discount_pause(Seconds pause) { heard_ += pause; }
  // On the coordinator: the name of the authenticated member; "" before that. Peers sets it.
  const std::string& server() const { return server_; }
  void set_server(std::string server) { server_ = std::move(server); }

  // Does nothing without keys, or if the message is too large for the peer. Closes the link if the peer has
  // left too much unread.
  void send(const wire::LinkMessage& message);
  void flush();
  // Reads without blocking. Also returns the messages that precede an invalid one.
  std::vector<wire::LinkMessage> receive(Seconds now);
  void close();

 private:
  enum class Expected { greeting, header, message };
  using Key = std::array<unsigned char, crypto_secretstream_xchacha20poly1305_KEYBYTES>;
  using Stream = crypto_secretstream_xchacha20poly1305_state;

  void begin();
  void set_token(std::string_view token);
  std::size_t max_received() const;
  Key derive_key(bool of_coordinator, std::string_view peer_nonce) const;
  void queue_frame(std::string_view payload);
  // These return false for invalid data.
  bool receive_frame(std::string_view payload, Seconds now, std::vector<wire::LinkMessage>& messages);
  bool receive_greeting(std::string_view payload);
  bool receive_message(std::string_view payload, Seconds now, std::vector<wire::LinkMessage>& messages);

  Descriptor socket_;
  FindToken find_token_;  // only on the coordinator
  Key secret_{};          // a digest of the token
  bool is_coordinator_;
  std::size_t number_ = 0;
  Seconds heard_;
  Expected expected_ = Expected::greeting;
  bool is_authenticated_ = false;
  std::string server_;
  std::string nonce_;
  Stream sending_{};
  Stream receiving_{};
  Key receiving_key_{};
  std::string unsent_;
  std::string received_;  // an incomplete frame
};

}  // namespace remote::agent
