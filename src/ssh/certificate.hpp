#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

// Parses OpenSSH's user certificates (PROTOCOL.certkeys), because libssh does not expose their content.

namespace remote::ssh {

// Why a certificate (the base64 of its line, decoded) is not valid at a time, in seconds since the epoch; ""
// if it is valid or cannot be parsed.
std::string validity_problem(std::string_view certificate, std::uint64_t now);

// Why the certificate in this file is not valid now; "" if it is valid or cannot be parsed.
std::string certificate_problem(const std::filesystem::path& file);

}  // namespace remote::ssh
