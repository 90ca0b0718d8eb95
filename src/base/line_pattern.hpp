#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <regex.h>

namespace remote {

// A POSIX extended regular expression (regex(7)). std::regex is not used, because libstdc++'s version
// recurses for each character.
class LinePattern {
 public:
  // Throws Error (usage) for an invalid expression.
  explicit LinePattern(const std::string& text);
  // Whether a line contains a match. A NUL is treated as an ordinary character.
  bool is_in(std::string_view line) const;

 private:
  struct Free {
    void operator()(regex_t* one) const;
  };
  std::unique_ptr<regex_t, Free> compiled_;
};

}  // namespace remote
