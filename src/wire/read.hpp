#pragma once

#include <string>

#include "wire/types.hpp"
#include "wire/value.hpp"

namespace remote::wire {

// Reads `from` into `value`. `path` is the name of the value in errors. Throws Malformed.
void read(const Value& from, const Type& type, void* value, const Limits& limits, const std::string& path);

}  // namespace remote::wire
