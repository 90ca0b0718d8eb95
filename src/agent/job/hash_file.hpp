#pragma once

#include <string>
#include <string_view>

#include "agent/job/regular_file.hpp"

namespace remote::agent {

// Returns the SHA-256 of the content, in hexadecimal digits; "" if the file is not open.
std::string hash_file(const RegularFile& file);
std::string hash_text(std::string_view text);

}  // namespace remote::agent
