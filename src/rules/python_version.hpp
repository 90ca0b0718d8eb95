#pragma once

#include <string>

namespace remote::rules {

// The oldest Python 3 that our own scripts run with.
constexpr int oldest_python_minor = 6;
constexpr const char* usable_python = "Python 3.6 or newer";

// Whether this version, "3.11.2", is new enough. True for "", an unknown version.
bool is_usable_python(const std::string& version);

}  // namespace remote::rules
