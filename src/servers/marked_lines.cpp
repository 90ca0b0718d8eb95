#include "servers/marked_lines.hpp"

#include <fmt/format.h>

namespace remote::servers {
namespace {

// Far more than any of these programs print.
constexpr std::size_t most_messages = 1'000'000;

}  // namespace

void MarkedLines::add(std::string_view data) {
  lines_.add(data, [this](std::string_view line) {
    if (!failure_ && line.starts_with(mark_)) {
      take_line(line);
    }
  });
}

void MarkedLines::take_line(std::string_view line) {
  try {
    if (line.size() == LineCutter::longest) {
      throw wire::Malformed("", "is too long");
    }
    if (++count_ > most_messages) {
      throw wire::Malformed("", "is one too many");
    }
    take_(line.substr(mark_.size()));
  } catch (const wire::Malformed& problem) {
    failure_ = Error("the server's answer is not understood",
                     fmt::format("{} in '{}'", problem.what(), line.substr(0, 200)))
                   .mended_by(Remedy::tell_more);
  }
}

void MarkedLines::check() const {
  if (failure_) {
    throw *failure_;
  }
}

}  // namespace remote::servers
