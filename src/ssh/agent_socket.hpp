#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <sys/un.h>

#include "base/files.hpp"

// Messages to and from an SSH agent over its local socket (draft-miller-ssh-agent): a length of four bytes,
// then the body. Blocking; any thread, one a socket.

namespace remote::ssh {

// A number as the protocol has it: four bytes, the highest first.
std::string agent_number(std::uint32_t value);
// Takes one off the front; nullopt when there are not enough bytes.
std::optional<std::uint32_t> take_agent_number(std::string_view& data);

// A local socket, close-on-exec, and the address of `path`; no descriptor when the path is too long.
UniqueFd local_socket(const std::string& path, sockaddr_un& address);
// Connected to the agent at `path`; no descriptor when there is none.
UniqueFd connect_agent(const std::string& path);

// The body of the next message; nullopt at the end, on an error, past `limit` (0: none), or when `stop` (-1:
// none) becomes readable.
std::optional<std::string> read_agent_message(int fd, int stop,
                                              std::chrono::milliseconds limit = std::chrono::milliseconds(0));
// False when the other side is gone.
bool send_agent_message(int fd, const std::string& body);

// No message is longer; who announces more is no agent.
inline constexpr std::size_t longest_agent_message = std::size_t{256} * 1024;

}  // namespace remote::ssh
