#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// What is said on the control socket of an OpenSSH master (PROTOCOL.mux): messages of a length and a body, in
// which a number has four bytes, the highest first, and a text is its length and its bytes.

namespace remote::ssh::mux {

inline constexpr std::uint32_t version = 4;
// No message is longer: what announces more is not a master.
inline constexpr std::size_t longest_message = std::size_t{256} * 1024;

// Whole messages, to be written as they are. `request` comes back in the answer.
std::string hello();
std::string alive_check(std::uint32_t request);
// The master ends, and all that runs over it.
std::string terminate(std::uint32_t request);
// The master removes its socket and ends with the last session that it has.
std::string stop_listening(std::uint32_t request);
// Three descriptors follow: stdin, stdout, stderr.
std::string new_session(std::uint32_t request, std::string_view command);
// A TCP connection from the server; two descriptors follow, to read from and to write to.
std::string new_stdio_forward(std::uint32_t request, std::string_view host, int port);

// Where a server listens: on a port of its loopback address, or at a socket of its own.
struct Listening {
  int port = 0;
  std::string path{};  // with this, port counts for nothing
};
// The server is to listen, and the master to connect this local socket with each connection that comes there;
// answered by ok once it does. And the end of that.
std::string open_reverse(std::uint32_t request, const Listening& at, std::string_view socket);
std::string close_reverse(std::uint32_t request, const Listening& at, std::string_view socket);

enum class Kind { hello, ok, alive, opened, refused, exited, other };

// One message of a master.
struct Message {
  Kind kind = Kind::other;
  std::uint32_t about = 0;  // the request; of exited the session
  std::uint32_t number =
      0;             // alive: the master's pid; opened: the session; exited: the code; hello: the version
  std::string text;  // refused: why
};

// Takes the next whole message off the front of `data`; nullopt when more bytes are needed. Throws Error for
// what no master says.
std::optional<Message> take_message(std::string& data);

}  // namespace remote::ssh::mux
