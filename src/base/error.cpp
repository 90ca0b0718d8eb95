#include <cstddef>
#include <string_view>
#include <utility>

#include <remote/error.hpp>

#include "base/strings.hpp"
#include "base/utf8.hpp"

namespace remote {
namespace {

constexpr std::size_t longest_part = 4000;

// Errors quote what servers and files say, which may be without end.
std::string made_plain(std::string_view text) {
  if (text.size() <= longest_part) {
    return visible_text(text);
  }
  std::size_t end = 0;
  for (std::size_t next = 0; next <= longest_part; next += utf8_at(text, next).length) {
    end = next;
  }
  return visible_text(text.substr(0, end)) + "…";
}

}  // namespace

Error::Error(std::string_view what_failed, std::string_view reason, std::string_view hint, ErrorKind kind)
    : what_failed_(made_plain(what_failed)),
      reason_(made_plain(reason)),
      hint_(made_plain(hint)),
      kind_(kind) {
  text_ = message();
}

Error Error::usage(std::string_view what_failed, std::string_view reason, std::string_view hint) {
  return {what_failed, reason, hint, ErrorKind::usage};
}

Error Error::on(std::string server_name) const {
  Error copy = *this;
  if (copy.server_.empty()) {
    copy.server_ = std::move(server_name);
    copy.text_ = copy.message();
  }
  return copy;
}

std::string Error::message() const {
  std::string text;
  for (const std::string* part : {&server_, &what_failed_, &reason_}) {
    if (part->empty()) {
      continue;
    }
    if (!text.empty()) {
      text += ": ";
    }
    text += *part;
  }
  return text;
}

}  // namespace remote
