#pragma once

#include <string>

namespace remote::rules {

// The oldest Python 3 version that remote's own scripts support.
constexpr int oldest_python_minor = 6;
constexpr const char* usable_python = "Python 3.6 or newer";

// Whether this version, such as "3.11.2", is new enough. True if it is unknown ("").
bool is_usable_python(const std::string& version);

}  // namespace remote::rules
