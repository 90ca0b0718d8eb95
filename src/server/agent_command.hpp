#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/agents.hpp"

// Starts the agent on a server, and installs it if it is missing, with one command on one channel.
//
// The client immediately sends a line with the number of bytes of its first request, and the request. The
// server's first line (after an empty line, because a login shell may have printed an incomplete one) is
//   @remote-agent here             the agent is running: frames follow
//   @remote-agent need ARCH[ xz]   it is missing, and the request was discarded. The client sends
//                                  agent_installation() and then the request in the same way; empty lines
//                                  report progress until "here" or "failed". "xz": the server can decompress
//   @remote-agent failed REASONS   PLACE: REASON; PLACE: REASON…
//                                  "terminal": something in between, such as a ForceCommand, has given the
//                                  command a terminal

namespace remote::server {

inline constexpr std::string_view agent_here = "@remote-agent here";
inline constexpr std::string_view agent_needed = "@remote-agent need ";
inline constexpr std::string_view agent_failed = "@remote-agent failed ";
inline constexpr std::string_view failed_on_terminal = "terminal";

// Shell text that sets HOME if a startup file has unset it; empty if the account has none.
inline constexpr std::string_view find_home =
    R"sh([ "${HOME-}" ] || { r_m=$(command getent passwd "$(command id -u)" || :); r_m=${r_m%:*}; export HOME="${r_m##*:}"; r_m=; }; )sh";

// The command for the channel. The folder is "~", "~/x" or "/x"; "x" is relative to the home directory. An
// empty one means ~/.cache/remote, with fallbacks. Throws std::logic_error unless is_plain_in_every_shell().
std::string agent_command(std::string_view folder = {});

// Identifies the agents of this client: their digests, joined by dots.
std::string agent_version();

// The agent for an architecture, which is the output of `uname -m`; nullptr if this client has none.
const Agent* find_agent(std::string_view architecture);

// The server's message that the agent is missing.
struct AgentNeed {
  std::string_view architecture;  // as `uname -m` prints it
  bool has_xz = false;            // the server can run xz
};

// nullopt if the line is a different message. The result refers to the line.
std::optional<AgentNeed> parse_agent_need(std::string_view line);

// The data to send to a server that needs the agent. It is compressed only if the server has xz. `folder` is
// as in agent_command(); `bin` is the last fallback, absolute or relative to the home directory ("~/x"), or
// empty.
std::string agent_installation(const Agent& agent, bool has_xz, std::string_view folder = {},
                               std::string_view bin = {});

}  // namespace remote::server
