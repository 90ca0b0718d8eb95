// `remote servers`: shows the current state of the servers; with --verbose, how each is reached and the
// source of each setting.

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/strings.hpp"
#include "cli/options.hpp"
#include "cli/show/error_json.hpp"
#include "cli/show/gpus.hpp"
#include "cli/show/top.hpp"
#include "cli/show/waiting.hpp"
#include "ui/table.hpp"

namespace remote::cli {
namespace {

// `state` is nullptr if no server was asked.
nlohmann::json entry_json(const ServerInfo& server, const ServerState* state) {
  auto settings = nlohmann::json::array();
  for (const ServerSetting& setting : server.settings) {
    settings.push_back({{"name", setting.name},
                        {"value", setting.value},
                        {"from", setting.from},
                        {"problem", or_null(setting.problem)}});
  }
  nlohmann::json entry = {{"server", server.name},  {"reachable", nullptr},
                          {"gpus", nullptr},        {"jobs", nullptr},
                          {"settings", settings},   {"load", nullptr},
                          {"gpu_details", nullptr}, {"login", or_null(server.logged_in ? "open" : "")}};
  if (state != nullptr) {
    entry["reachable"] = !state->error.has_value();
    entry["jobs"] = state->jobs;
    if (state->gpus) {
      entry["gpus"] = *state->gpus;
    }
    if (state->load) {
      entry["load"] = to_json(*state->load);
      entry["gpu_details"] = to_json(state->gpu_facts)["gpus"];
    }
  }
  put_error(entry, server.error || state == nullptr ? server.error : state->error);
  return entry;
}

void add_settings(ui::Table& table, const ServerInfo& server, bool name_on_each) {
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

// ", 3 leased"
std::string leased_in_short(const ServerState& state) {
  const auto leased = [&](const Gpu& gpu) {
    return state.load && std::ranges::any_of(state.load->leases, [&](const Lease& lease) {
             return std::ranges::count(lease.gpus, gpu.uuid) > 0;
           });
  };
  const auto gpus = std::ranges::count_if(state.gpu_facts.gpus, leased);
  return gpus == 0 ? "" : fmt::format(", {} leased", gpus);
}

// `login`: the value for that column; nullptr: the table does not have it.
void add_state(ui::Table& table, const ServerState& state, const char* login) {
  ui::Cell gpus("-");
  if (state.gpus && state.expected_gpus && *state.gpus != *state.expected_gpus) {
    gpus = ui::Cell(fmt::format("{} of {}", *state.gpus, *state.expected_gpus), ui::Style::yellow);
  } else if (state.gpus) {
    gpus = std::to_string(*state.gpus);
  }
  const std::string others = state.load ? other_jobs(*state.load) : "";
  std::vector<ui::Cell> cells = {
      ui::Cell(state.server, ui::Style::cyan),
      state.error ? ui::Cell("no", ui::Style::red) : ui::Cell("yes", ui::Style::green),
      std::move(gpus),
      others.empty() ? std::to_string(state.jobs) : fmt::format("{} + {}", state.jobs, others),
      state.load ? fmt::format("{:.1f} on {}", state.load->load,
                               counted(static_cast<std::size_t>(state.load->cpus), "CPU"))
                 : "-",
      in_short(state.gpu_facts) + leased_in_short(state)};
  if (login != nullptr) {
    cells.insert(cells.begin() + 2, ui::Cell(login));
  }
  table.add(std::move(cells));
}

int code_of(const Error& error) {
  return error.kind() == ErrorKind::usage ? 2 : 1;
}

void print(Context& context, const nlohmann::json& json, const ui::Table& table) {
  if (context.options.json) {
    context.print(json);
  } else if (!table.empty()) {
    context.terminal.out(table.text(context.terminal));
  }
}

// Contacts no server.
int show_settings(Context& context, const std::vector<ServerInfo>& servers) {
  ui::Table table({"SERVER", "SETTING", "VALUE", "FROM"});
  auto json = nlohmann::json::array();
  int code = 0;
  for (const ServerInfo& server : servers) {
    json.push_back(entry_json(server, nullptr));
    code = server.error ? code_of(*server.error) : code;
    // In a pipe each line includes the server's name, for grep and awk.
    add_settings(table, server, !context.terminal.stdout_is_terminal());
  }
  context.show(errors_of(servers));
  print(context, json, table);
  return code;
}

int run_servers(Context& context, const std::vector<std::string>& globs) {
  const std::vector<ServerInfo> servers = context.project().servers(globs);
  if (context.options.verbose > 0) {
    return show_settings(context, servers);
  }
  std::optional<Waiting> waiting(std::in_place, context.terminal, "for " + counted(servers.size(), "server"));
  const std::vector<ServerState> states = context.project().server_states(globs);
  waiting.reset();
  const bool logins = std::ranges::any_of(servers, &ServerInfo::logged_in);
  std::vector<ui::Column> columns = {"SERVER",       "REACHABLE", {"GPUS", true},
                                     {"JOBS", true}, "LOAD",      "GPUS IN USE"};
  if (logins) {
    columns.insert(columns.begin() + 2, "LOGIN");
  }
  ui::Table table(std::move(columns));
  auto json = nlohmann::json::array();
  int code = 0;
  for (std::size_t i = 0; i < states.size(); ++i) {
    json.push_back(entry_json(servers[i], &states[i]));
    add_state(table, states[i], !logins ? nullptr : servers[i].logged_in ? "open" : "-");
    if (states[i].error) {
      code = std::max(code, code_of(*states[i].error));
    }
  }
  print(context, json, table);
  context.show(errors_of(states));
  return code;
}

}  // namespace

void add_servers(CLI::App& command, Context& context) {
  auto& globs = arguments_of(command, context, run_servers);
  add_server_option(command, context, globs);
}

}  // namespace remote::cli
