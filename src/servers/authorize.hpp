#pragma once

#include <string>
#include <string_view>

#include <remote/cancel.hpp>

#include "ssh/connection.hpp"
#include "wire/authorize.hpp"

// Puts a public key into a server's authorized_keys, as ssh-copy-id does.

namespace remote::servers {

// One public key as a line of authorized_keys or of a .pub file has it.
struct PublicKey {
  std::string type;     // "ssh-ed25519"
  std::string blob;     // base64
  std::string comment;  // may be ""

  std::string line() const;  // "TYPE BLOB COMMENT"
};

// Reads the text of a .pub file: one key, empty lines and comments around it allowed. `file` is named in
// errors. Throws Error (usage) for a private key, a certificate, and what is no key.
PublicKey parse_public_key(std::string_view text, const std::string& file);

// Adds the key to the login's authorized_keys unless it is there, and sets the permissions that sshd wants.
wire::AuthorizeReply authorize(ssh::Connection& connection, const PublicKey& key, const Cancel& cancel);

}  // namespace remote::servers
