#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "servers/action.hpp"

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

struct AuthorizeReport {
  enum class State { added, present, restricted };  // restricted: it stands there with options before it
  State state = State::added;
  std::string open_folder;  // others may write to it, so that a strict sshd does not read the file; or ""

  void take(AnswerLine& line);
  void check() const;

 private:
  bool answered_ = false;
  std::optional<std::string> failure_;
};

// Adds the key to the login's authorized_keys unless it is there, and sets the permissions that sshd wants.
Action<AuthorizeReport> authorize_action(const PublicKey& key);

}  // namespace remote::servers
