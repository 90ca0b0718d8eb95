// `remote servers`: how each server is reached, and where each setting came from. Asks no server.

#include <CLI/App.hpp>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "cli/options.hpp"
#include "ui/table.hpp"

namespace remote::cli {
namespace {

nlohmann::json to_json(const ServerInfo& server) {
  auto settings = nlohmann::json::array();
  for (const ServerSetting& setting : server.settings) {
    settings.push_back({{"name", setting.name},
                        {"value", setting.value},
                        {"from", setting.from},
                        {"problem", or_null(setting.problem)}});
  }
  return {{"server", server.name}, {"settings", settings}, {"error", or_null(server.error)}};
}

void add_rows(ui::Table& table, const ServerInfo& server, bool name_on_each) {
  bool named = false;
  for (const ServerSetting& setting : server.settings) {
    const bool name = !named || name_on_each;
    named = true;
    const std::string value = (setting.problem.empty() ? "" : setting.problem + ": ") + setting.value;
    table.add({ui::Cell(name ? server.name : "", ui::Style::cyan), setting.name,
               ui::Cell(value, setting.problem.empty() ? ui::Style::plain : ui::Style::yellow),
               ui::Cell(setting.from, setting.from == "default" ? ui::Style::dim : ui::Style::plain)});
  }
}

int run(Context& context, const std::vector<std::string>& globs) {
  ui::Table table({"SERVER", "SETTING", "VALUE", "FROM"});
  auto json = nlohmann::json::array();
  int code = 0;
  for (const ServerInfo& server : context.project().servers(globs)) {
    json.push_back(to_json(server));
    if (server.error) {
      context.show(*server.error);
      code = server.error->kind() == ErrorKind::usage ? 2 : 1;
    }
    // In a pipe each line says its server, for grep and awk.
    add_rows(table, server, !context.terminal.stdout_is_terminal());
  }
  if (context.options.json) {
    context.terminal.out(dump_json(json));
  } else if (!table.empty()) {
    context.terminal.out(table.text(context.terminal));
  }
  return code;
}

}  // namespace

void add_servers(CLI::App& app, Context& context) {
  const auto [command, globs] = add_command(
      app, context, "servers", "Show how each server is reached, and where each setting came from", run);
  add_server_option(command, context, globs);
}

}  // namespace remote::cli
