#include "config/report.hpp"

#include "base/utf8.hpp"

namespace remote::config {

Error config_error(const std::string& file, Mark mark, const std::string& reason, const std::string& hint) {
  return Error::usage(file + ":" + std::to_string(mark.line) + ":" + std::to_string(mark.column), reason,
                      hint);
}

std::string printable(std::string_view text) {
  constexpr std::size_t longest = 60;
  std::string shown;
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) {
    if (count == longest) {
      return shown + "…";
    }
    const Utf8Char c = utf8_at(text, at);
    const bool control = c.code < 0x20 || (c.code >= 0x7F && c.code < 0xA0);
    shown += control || !c.valid ? std::string("?") : std::string(text.substr(at, c.length));
    at += c.length;
  }
  return shown;
}

}  // namespace remote::config
