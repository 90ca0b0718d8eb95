#pragma once

#include <filesystem>
#include <string>

// Key files of this machine, in OpenSSH's format.

namespace remote::ssh {

// Creates an ed25519 key pair without a passphrase: `file` (0600) and `file`.pub, and the parent folder
// (0700) if necessary. Never replaces an existing file. Throws Error.
void generate_key(const std::filesystem::path& file, const std::string& comment);

// The public key line of `file`, read from `file`.pub or, if that is missing, from the private key if it is
// not encrypted. Throws Error (usage) if neither is available.
std::string public_half_of(const std::filesystem::path& file);

}  // namespace remote::ssh
