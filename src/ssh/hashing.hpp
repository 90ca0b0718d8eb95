#pragma once

#include <optional>
#include <string>
#include <string_view>

// What hashed known_hosts entries are made of. Fit for that format alone: SHA-1 protects nothing.

namespace remote::ssh {

std::string sha1(std::string_view data);                             // 20 bytes
std::string hmac_sha1(std::string_view key, std::string_view data);  // 20 bytes
std::string base64_encode(std::string_view data);
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace remote::ssh
