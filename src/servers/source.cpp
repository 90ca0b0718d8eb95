#include "servers/source.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/strings.hpp"

namespace remote::servers {

std::string sent_by_text(const wire::ProjectSource& source, const wire::ProjectSource& own) {
  const std::chrono::seconds age(std::max<std::int64_t>(own.at - source.at, 0));
  return fmt::format("from {}{}, {} ago", source.user == own.user ? "" : visible_line(source.user) + ":",
                     visible_line(source.folder), format_duration(age));
}

}  // namespace remote::servers
