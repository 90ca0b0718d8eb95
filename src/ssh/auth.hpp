#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "ssh/libssh.hpp"
#include "ssh/secrets.hpp"
#include "ssh/target.hpp"

namespace remote::ssh {

// The keys that a server took: one, unless it wants several; none where a password was enough. See
// LoginFacts.
struct AcceptedKeys {
  std::set<std::string> keys;
  std::vector<std::filesystem::path> files;
};

// Logs in: the keys that the user named, a configured password, the agent, the default keys, and at last a
// password typed at the terminal. Throws Error that says what the server allows, what was tried and what to
// try; Unreachable when the link broke. Any thread, with a session of its own.
AcceptedKeys authenticate(ssh_session session, const Target& target, Secrets& secrets, Patience& patience);

}  // namespace remote::ssh
