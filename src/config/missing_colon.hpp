#pragma once

#include <functional>
#include <optional>
#include <string>

#include "config/yaml_reader.hpp"

namespace remote::config {

struct MissingColon {
  Mark mark;  // position where the ':' or the blank after it belongs
  std::string reason;
  std::string hint;
};

// The line, at or above the line of a syntax error, that lacks its ':' or the blank after it: with that
// inserted, the text parses beyond the error. `error_line` returns the line of the first syntax error in a
// text, 0 for none.
std::optional<MissingColon> find_missing_colon(const std::string& text, int line,
                                               const std::function<int(const std::string&)>& error_line);

}  // namespace remote::config
