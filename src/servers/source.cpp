#include "servers/source.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/ownership.hpp"
#include "base/strings.hpp"
#include "config/folder_id.hpp"

namespace remote::servers {

wire::ProjectSource own_source(const config::Config& config) {
  return {.folder_id = config::find_folder_id(config),
          .user = visible_line(local_user() + "@" + local_host(), 150),
          .folder = visible_line(resolved(config.project).string(), 1000),
          .at = now_seconds().time_since_epoch().count()};
}

std::string sent_by_text(const wire::ProjectSource& source, const wire::ProjectSource& own) {
  const std::chrono::seconds age(std::max<std::int64_t>(own.at - source.at, 0));
  return fmt::format("from {}{}, {} ago", source.user == own.user ? "" : visible_line(source.user) + ":",
                     visible_line(source.folder), format_duration(age));
}

}  // namespace remote::servers
