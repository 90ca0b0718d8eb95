#include "base/line_pattern.hpp"

#include <algorithm>
#include <array>
#include <string>

#include <remote/error.hpp>

namespace remote {

void LinePattern::Free::operator()(regex_t* one) const {
  ::regfree(one);
  delete one;
}

LinePattern::LinePattern(const std::string& text) {
  auto fresh = std::make_unique<regex_t>();
  if (const int code = ::regcomp(fresh.get(), text.c_str(), REG_EXTENDED | REG_NOSUB); code != 0) {
    std::array<char, 200> why{};
    ::regerror(code, fresh.get(), why.data(), why.size());
    throw Error::usage("cannot search for '" + text + "'", why.data(),
                       "it must be an extended regular expression, as for grep -E");
  }
  compiled_.reset(fresh.release());
}

bool LinePattern::is_in(std::string_view line) const {
  std::string text(line);
  std::ranges::replace(text, '\0', '\1');  // regexec(3) stops at a NUL
  return ::regexec(compiled_.get(), text.c_str(), 0, nullptr, 0) == 0;
}

}  // namespace remote
