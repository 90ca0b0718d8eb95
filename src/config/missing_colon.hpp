#pragma once

#include <functional>
#include <optional>
#include <string>

#include "config/yaml_reader.hpp"

namespace remote::config {

struct MissingColon {
  Mark mark;  // where the ':' belongs, or the blank behind it
  std::string reason;
  std::string hint;
};

// The line at or above the line of a syntax error that lacks its ':', or the blank behind it: with it, the
// text gets past that error. `error_line` gives the line of the first syntax error of a text, 0 for none.
std::optional<MissingColon> find_missing_colon(const std::string& text, int line,
                                               const std::function<int(const std::string&)>& error_line);

}  // namespace remote::config
