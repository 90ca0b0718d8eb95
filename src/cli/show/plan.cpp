#include "cli/show/plan.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/strings.hpp"
#include "base/visible.hpp"
#include "launch/command.hpp"

namespace remote::cli {
namespace {

std::string shown_value(const std::string& name, const std::string& value) {
  return looks_secret(name) ? std::string(secret_mask) : visible_line(value);
}

// What all of some processes have in common.
Env shared_env(const std::vector<const PlannedProcess*>& processes) {
  Env shared;
  for (const auto& pair : processes.front()->env) {
    if (std::all_of(processes.begin(), processes.end(), [&](const PlannedProcess* process) {
          return std::find(process->env.begin(), process->env.end(), pair) != process->env.end();
        })) {
      shared.push_back(pair);
    }
  }
  return shared;
}

void print_env(std::string& text, const Env& env, const Env& without, std::string_view indent) {
  for (const auto& pair : env) {
    if (std::find(without.begin(), without.end(), pair) == without.end()) {
      text += fmt::format("{}{}={}\n", indent, pair.first, shown_value(pair.first, pair.second));
    }
  }
}

}  // namespace

std::string plan_text(const Plan& plan) {
  std::vector<const PlannedProcess*> all;
  std::vector<std::string> servers;
  for (const PlannedProcess& process : plan.processes) {
    all.push_back(&process);
    if (servers.empty() || servers.back() != process.server) {
      servers.push_back(process.server);
    }
  }
  std::string text = fmt::format("launch {}: {} on {}, launcher {}, master {} port {}\n", plan.run_id,
                                 counted(plan.world_size, "rank"), counted(servers.size(), "server"),
                                 plan.launcher, plan.master_addr, plan.master_port);
  const Env everywhere = shared_env(all);
  text += "on every process\n";
  print_env(text, everywhere, {}, "  ");
  const PlannedProcess* last = nullptr;
  for (const PlannedProcess& process : plan.processes) {
    if (last == nullptr || last->node_rank != process.node_rank) {
      text += fmt::format("{} (node {})\n", process.server, process.node_rank);
    }
    last = &process;
    text += process.ranks == 1 ? fmt::format("  rank {} (local {})", process.rank, process.local_rank)
                               : fmt::format("  ranks {}-{}", process.rank, process.rank + process.ranks - 1);
    text += fmt::format(": {}\n", visible_line(launch::mask_command(process.command)));
    text += fmt::format("    tags: {}\n", visible_line(join(process.tags, ", ")));
    print_env(text, process.env, everywhere, "    ");
  }
  return text;
}

std::string plan_json(const Plan& plan) {
  using Json = nlohmann::ordered_json;
  Json processes = Json::array();
  for (const PlannedProcess& process : plan.processes) {
    Json env = Json::object();
    for (const auto& [name, value] : process.env) {
      env[name] = looks_secret(name) ? std::string(secret_mask) : value;
    }
    processes.push_back(Json{{"server", process.server},
                             {"node_rank", process.node_rank},
                             {"rank", process.rank},
                             {"local_rank", process.local_rank},
                             {"ranks", process.ranks},
                             {"command", launch::mask_command(process.command)},
                             {"env", std::move(env)},
                             {"tags", process.tags}});
  }
  const Json json{{"launch", plan.run_id},           {"launcher", plan.launcher},
                  {"master_addr", plan.master_addr}, {"master_port", plan.master_port},
                  {"world_size", plan.world_size},   {"processes", std::move(processes)}};
  return dump_json(json);
}

}  // namespace remote::cli
