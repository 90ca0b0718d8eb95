#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/connector.hpp"
#include "ssh/libssh.hpp"
#include "ssh/target.hpp"

// known_hosts: who is known, and who is added on first use.

namespace remote::ssh {

// A line of a known_hosts file that is about the host in question.
struct KnownKey {
  std::filesystem::path file;
  int line = 0;
  std::string type;    // "ssh-ed25519"
  std::string base64;  // the key
  bool revoked = false;
  bool authority = false;  // @cert-authority: it signs host keys, and is none

  bool is_host_key() const { return !revoked && !authority; }
};

// The name under which known_hosts lists a server: "host", or "[host]:port" when the port is not 22.
std::string known_hosts_name(const std::string& host, int port);

// The lines of a known_hosts text that are about `name`: plain and hashed names, patterns, "!", "@revoked",
// "@cert-authority". Lines of another form are skipped.
std::vector<KnownKey> find_known_keys(std::string_view text, const std::string& name,
                                      const std::filesystem::path& file);

// The first line of a text that is neither empty, a comment nor of known_hosts form, SSH-1's included; 0:
// there is none.
int foreign_line(std::string_view text);

// The names hashed as HashKnownHosts does: "|1|salt|hash".
std::string hashed_name(const std::string& name);

enum class KeyState { known, fresh, changed, other_type, revoked };
KeyState judge_key(const std::vector<KnownKey>& known, const std::string& type, const std::string& base64);

// libssh's host key algorithms with those of the known keys first, so that a server that has several keys
// shows the one that is known. Empty: libssh's own order will do.
std::string preferred_algorithms(const std::vector<KnownKey>& known);

// All lines of the target's known_hosts files that are about it.
std::vector<KnownKey> known_keys(const Target& target);

// The key is new, and known_hosts names a certificate authority for the server, which only OpenSSH can check.
class NeedsOpenssh : public Error {
 public:
  explicit NeedsOpenssh(const Error& error) : Error(error) {}
};

// Checks the server's key before authentication. Returns the new key that was accepted, or nothing for a
// known one. Throws NeedsOpenssh, and Error for every other state. Any thread; one writer at a time, also
// across processes.
std::optional<NewHostKey> check_host_key(ssh_session session, const Target& target,
                                         const config::Config& config);

}  // namespace remote::ssh
