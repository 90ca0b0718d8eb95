#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <regex.h>

namespace remote {

// An extended regular expression of POSIX (regex(7)). std::regex of libstdc++ recurses for each character.
class LinePattern {
 public:
  // Throws Error (usage) for what is no such expression.
  explicit LinePattern(const std::string& text);
  // Whether it is found in a line; a NUL ends the line.
  bool is_in(std::string_view line) const;

 private:
  struct Free {
    void operator()(regex_t* one) const;
  };
  std::unique_ptr<regex_t, Free> compiled_;
};

}  // namespace remote
