#pragma once

#include <string>
#include <string_view>

#include "base/strings.hpp"

namespace remote {

// Normalizes the name of a Python package (PEP 503): "Foo_Bar.baz" becomes foo-bar-baz.
inline std::string normalize_package(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (c != '-' && c != '_' && c != '.') {
      result += lower_case({&c, 1});
    } else if (!result.ends_with('-')) {
      result += '-';
    }
  }
  return result;
}

}  // namespace remote
