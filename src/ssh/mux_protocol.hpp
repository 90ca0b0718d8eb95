#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// The protocol on the control socket of an OpenSSH master (PROTOCOL.mux): messages with a length and a body.
// A number has four bytes, big-endian, and a text is its length and its bytes.

namespace remote::ssh::mux {

inline constexpr std::uint32_t version = 4;
// No real message is longer, so a peer that announces a longer one is not a master.
inline constexpr std::size_t longest_message = std::size_t{256} * 1024;

// Complete messages, ready to be written. The answer contains `request`.
std::string hello();
std::string alive_check(std::uint32_t request);
// The master exits with everything that runs over it.
std::string terminate(std::uint32_t request);
// The master removes its socket, and exits when its last session ends.
std::string stop_listening(std::uint32_t request);
// Three descriptors follow: stdin, stdout and stderr.
std::string new_session(std::uint32_t request, std::string_view command);
// A TCP connection that the server opens. Two descriptors follow, one to read from and one to write to.
std::string new_stdio_forward(std::uint32_t request, std::string_view host, int port);

// Where a server listens: on a port of its loopback address, or at a socket in its file system.
struct Listening {
  int port = 0;
  std::string path{};  // if it is set, port is ignored
};
// Asks the server to listen, and the master to connect each arriving connection to this local socket. The
// answer is `ok` once the server listens. close_reverse() ends it.
std::string open_reverse(std::uint32_t request, const Listening& at, std::string_view socket);
std::string close_reverse(std::uint32_t request, const Listening& at, std::string_view socket);

enum class Kind { hello, ok, alive, opened, refused, exited, other };

struct Message {
  Kind kind = Kind::other;
  std::uint32_t about = 0;  // the request or, for exited, the session
  std::uint32_t number =
      0;             // alive: the master's pid; opened: the session; exited: the code; hello: the version
  std::string text;  // refused: the reason
};

// Removes the next complete message from the front of `data`; nullopt if more bytes are needed. Throws Error
// if no master could have sent the data.
std::optional<Message> take_message(std::string& data);

}  // namespace remote::ssh::mux
