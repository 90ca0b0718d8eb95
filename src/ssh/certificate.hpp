#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

// OpenSSH's user certificates (PROTOCOL.certkeys), as far as libssh does not show what is in them.

namespace remote::ssh {

// Why a certificate (the base64 of its line, decoded) is not valid at this time, in seconds since the epoch;
// "" if it is, or cannot be read.
std::string validity_problem(std::string_view certificate, std::uint64_t now);

// The same of a file, now.
std::string certificate_problem(const std::filesystem::path& file);

}  // namespace remote::ssh
