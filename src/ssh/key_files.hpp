#pragma once

#include <filesystem>
#include <string>

// Key files of this machine, in OpenSSH's form.

namespace remote::ssh {

// Makes an ed25519 key pair without a passphrase: `file` (0600) and `file`.pub, the folder above too (0700).
// An existing file is never replaced. Throws Error.
void generate_key(const std::filesystem::path& file, const std::string& comment);

// The line of the public half of `file`: from `file`.pub, or out of the private key where that is not
// encrypted. Throws Error (usage) when neither is there.
std::string public_half_of(const std::filesystem::path& file);

}  // namespace remote::ssh
