#include "config/report.hpp"

#include "base/visible.hpp"

namespace remote::config {

Error config_error(const std::string& file, Mark mark, const std::string& reason, const std::string& hint) {
  return Error::usage(file + ":" + std::to_string(mark.line) + ":" + std::to_string(mark.column), reason,
                      hint);
}

std::string printable(std::string_view text) {
  constexpr std::size_t longest = 60;
  return visible_line(text, longest);
}

}  // namespace remote::config
