#include <array>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include <remote/error.hpp>

#include "base/strings.hpp"

namespace remote {
namespace {

// Errors quote servers and files, whose text may be arbitrarily long.
constexpr std::size_t longest_part = 4000;

// In the order of the causes.
constexpr std::array<std::string_view, 12> cause_words{
    "other",      "unreachable", "refused",   "timeout",      "auth",  "host_key",
    "permission", "not_found",   "disk_full", "no_resources", "usage", "interrupted"};

}  // namespace

std::string_view to_string(Cause cause) {
  return cause_words.at(static_cast<std::size_t>(cause));
}

Error::Error(std::string_view what_failed, std::string_view reason, std::string_view hint, ErrorKind kind)
    : what_failed_(visible_text(what_failed, longest_part)),
      reason_(visible_text(reason, longest_part)),
      hint_(visible_text(hint, longest_part)),
      kind_(kind),
      cause_(kind == ErrorKind::usage ? Cause::usage : Cause::other) {
  text_ = message();
}

Error Error::usage(std::string_view what_failed, std::string_view reason, std::string_view hint) {
  return {what_failed, reason, hint, ErrorKind::usage};
}

Error Error::mended_by(Remedy remedy, std::string detail) const {
  Error copy = *this;
  copy.remedy_ = remedy;
  copy.remedy_detail_ = std::move(detail);
  return copy;
}

Error Error::because(Cause cause) const {
  Error copy = *this;
  copy.cause_ = cause_ == Cause::other ? cause : cause_;
  return copy;
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
  std::vector<std::string> parts{server_, what_failed_, reason_};
  std::erase(parts, "");
  return join(parts, ": ");
}

}  // namespace remote
