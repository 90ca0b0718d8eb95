#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/agents.hpp"

// Starts the agent on a server, and installs it if it is missing: one command, one channel.
//
// The client sends a line with the number of bytes of its first request, and the request, at once. The
// server's first line (after an empty line, because a login shell may have printed half a line) is
//   @remote-agent here             the agent runs: frames follow
//   @remote-agent need ARCH[ xz]   it is missing, and the request was discarded. The client sends
//                                  agent_installation() and the request again, as before; empty lines report
//                                  progress until "here" or "failed". "xz": the server can decompress
//   @remote-agent failed REASONS   PLACE: REASON; PLACE: REASON…
//                                  "terminal": something in between, such as a ForceCommand, has given the
//                                  command one

namespace remote::server {

inline constexpr std::string_view agent_here = "@remote-agent here";
inline constexpr std::string_view agent_needed = "@remote-agent need ";
inline constexpr std::string_view agent_failed = "@remote-agent failed ";
inline constexpr std::string_view failed_on_terminal = "terminal";

// sh text that sets HOME where a start file has taken it away; empty if the account has none.
inline constexpr std::string_view find_home =
    R"sh([ "${HOME-}" ] || { r_m=$(command getent passwd "$(command id -u)" || :); r_m=${r_m%:*}; export HOME="${r_m##*:}"; r_m=; }; )sh";

// The command for the channel. The folder is "~", "~/x", "/x", or "x", which is below the home directory. An
// empty one means ~/.cache/remote, with fallbacks. Throws std::logic_error unless is_plain_in_every_shell().
std::string agent_command(std::string_view folder = {});

// Names the agents of this client: their digests.
std::string agent_version();

// nullptr if this client has no agent for the architecture, which is what `uname -m` printed.
const Agent* find_agent(std::string_view architecture);

// The server's answer that the agent is missing.
struct AgentNeed {
  std::string_view architecture;  // as `uname -m` prints it
  bool has_xz = false;            // the server can run xz
};

// nullopt if the line is another answer. The result refers to the line.
std::optional<AgentNeed> parse_agent_need(std::string_view line);

// What is sent to a server that needs the agent: compressed only if the server has xz. `folder` as in
// agent_command(); `bin` is the last fallback, absolute or below the home directory ("~/x"), or empty.
std::string agent_installation(const Agent& agent, bool has_xz, std::string_view folder = {},
                               std::string_view bin = {});

}  // namespace remote::server
