#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "ssh/libssh.hpp"
#include "ssh/secrets.hpp"
#include "ssh/target.hpp"

namespace remote::ssh {

// The keys that a server accepted: one, or several if the server requires it; none if a password was
// sufficient. See LoginFacts.
struct AcceptedKeys {
  std::set<std::string> keys;
  std::vector<std::filesystem::path> files;
};

// Logs in. Tries the keys that the user named, a configured password, the agent, the default keys and, last,
// a password typed at the terminal. Throws Error with the methods that the server allows, the failed attempts
// and a hint; Unreachable if the connection broke. Any thread, but each needs its own session.
AcceptedKeys authenticate(ssh_session session, const Target& target, Secrets& secrets, Patience& patience);

}  // namespace remote::ssh
