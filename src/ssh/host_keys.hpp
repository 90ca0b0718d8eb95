#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/connector.hpp"
#include "ssh/libssh.hpp"
#include "ssh/target.hpp"

// known_hosts: looks up servers, and adds them on first use.

namespace remote::ssh {

// A line of a known_hosts file for the host in question.
struct KnownKey {
  std::filesystem::path file;
  int line = 0;
  std::string type;    // "ssh-ed25519"
  std::string base64;  // the key
  bool revoked = false;
  bool authority = false;  // @cert-authority: it signs host keys, but is not one itself

  bool is_host_key() const { return !revoked && !authority; }
};

// The name of a server in known_hosts: "host", or "[host]:port" if the port is not 22.
std::string known_hosts_name(const std::string& host, int port);

// The lines of a known_hosts text that apply to `name`: plain and hashed names, patterns, "!", "@revoked",
// "@cert-authority". Skips lines of another form.
std::vector<KnownKey> find_known_keys(std::string_view text, const std::string& name,
                                      const std::filesystem::path& file);

// The number of the first line that is not empty, not a comment, and not in known_hosts format (including
// SSH-1's); 0: none.
int foreign_line(std::string_view text);

// Hashes a name like HashKnownHosts: "|1|salt|hash".
std::string hashed_name(const std::string& name);

enum class KeyState { known, fresh, changed, other_type, revoked };
KeyState judge_key(const std::vector<KnownKey>& known, const std::string& type, const std::string& base64);

// libssh's host key algorithms, with those of the known keys first, so that a server with several keys shows
// a known one. Empty: libssh's default order is fine.
std::string preferred_algorithms(const std::vector<KnownKey>& known);

// All lines for the target in its known_hosts files.
std::vector<KnownKey> known_keys(const Target& target);

// The key is new, and known_hosts names a certificate authority for the server, which only OpenSSH can check.
class NeedsOpenssh : public Error {
 public:
  explicit NeedsOpenssh(const Error& error) : Error(error) {}
};

// Checks the server's key before authentication. Returns the new key if it was accepted, and nullopt for a
// known one. Throws NeedsOpenssh, and Error in all other cases. Any thread; writes are serialized, also
// across processes.
std::optional<NewHostKey> check_host_key(ssh_session session, const Target& target,
                                         const config::Config& config);

}  // namespace remote::ssh
