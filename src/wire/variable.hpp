#pragma once

#include <cstddef>
#include <string>

#include "wire/fields.hpp"

// The user's environment variables. Their values may be secret, so they are removed from requests that are
// logged.

namespace remote::wire {

constexpr std::size_t max_start_text = std::size_t{16} << 20U;
constexpr std::size_t max_variables = 100'000;

struct Variable {
  std::string name;
  std::string value;

  friend bool operator==(const Variable&, const Variable&) = default;
  static constexpr auto fields() {
    return field_list(field("name", &Variable::name, a_word("_", 1000)),
                      field("value", &Variable::value, at_most(max_start_text)));
  }
};

}  // namespace remote::wire
