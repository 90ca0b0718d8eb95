#include "cli/sync_check.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "base/visible.hpp"
#include "servers/fanout.hpp"
#include "servers/sync.hpp"

namespace remote::cli {
namespace {

constexpr std::size_t shown_names = 10;

}  // namespace

void show_names(Context& context, const std::string& title, const std::vector<std::string>& names) {
  if (names.empty()) {
    return;
  }
  context.terminal.notice(title);
  for (std::size_t i = 0; i < std::min(names.size(), shown_names); ++i) {
    context.terminal.notice("    " + visible_line(names[i]));
  }
  if (names.size() > shown_names) {
    context.terminal.notice(fmt::format("    … and {} more", names.size() - shown_names));
  }
}

bool project_is_the_same(Context& context, const std::vector<config::Server>& servers) {
  const config::Config& config = context.config();
  const auto outcomes = servers::fan_out(
      servers, [](const config::Server& server) { return server.name; },
      [&](const config::Server& server, std::size_t) {
        const auto connection = context.connector().connect(server, context.cancel);
        return servers::differences(*connection, config, server, {}, context.cancel);
      });
  bool same = true;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    if (!outcomes[i].ok()) {
      throw *outcomes[i].error;
    }
    same = same && outcomes[i].value->empty();
    show_names(context, servers[i].name + ": differs from here:", *outcomes[i].value);
  }
  return same;
}

}  // namespace remote::cli
