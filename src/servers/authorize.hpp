#pragma once

#include <string>
#include <string_view>

#include <remote/cancel.hpp>

#include "ssh/connection.hpp"
#include "wire/authorize.hpp"

// Adds a public key to a server's authorized_keys, like ssh-copy-id.

namespace remote::servers {

// One public key, as in a line of authorized_keys or of a .pub file.
struct PublicKey {
  std::string type;     // "ssh-ed25519"
  std::string blob;     // base64
  std::string comment;  // may be ""

  std::string line() const;  // "TYPE BLOB COMMENT"
};

// Parses a .pub file: one key, possibly with empty lines and comments. `file` is the name in errors. Throws
// Error (usage) for a private key, a certificate, or any other content.
PublicKey parse_public_key(std::string_view text, const std::string& file);

// Adds the key to the user's authorized_keys unless it is present, and sets the permissions that sshd
// requires.
wire::AuthorizeReply authorize(ssh::Connection& connection, const PublicKey& key, const Cancel& cancel);

}  // namespace remote::servers
