#include "cli/show/plan.hpp"

#include <algorithm>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/command.hpp"
#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "cli/context.hpp"

namespace remote::cli {
namespace {

std::string shown_value(const std::string& name, const std::string& value) {
  return visible_line(mask_value(name, value));
}

// The variables that all processes have with the same value.
Env shared_env(const std::vector<PlannedProcess>& processes, Env PlannedProcess::*of) {
  Env shared = processes.front().*of;
  for (const PlannedProcess& process : processes) {
    const Env& env = process.*of;
    std::erase_if(shared, [&](const auto& pair) { return std::ranges::find(env, pair) == env.end(); });
  }
  return shared;
}

void print_env(std::string& text, const Env& env, const Env& without, std::string_view indent,
               std::string_view note = "") {
  for (const auto& pair : env) {
    if (std::find(without.begin(), without.end(), pair) == without.end()) {
      text += fmt::format("{}{}={}{}\n", indent, pair.first, shown_value(pair.first, pair.second), note);
    }
  }
}

constexpr std::string_view default_note = "  (unless set there)";

nlohmann::ordered_json env_json(const Env& env) {
  auto json = nlohmann::ordered_json::object();
  for (const auto& [name, value] : env) {
    json[name] = mask_value(name, value);
  }
  return json;
}

std::string container_words(const Container& container) {
  std::string words =
      fmt::format("{} {}", container.engine ? to_string(*container.engine) : "the engine that is there,",
                  container.image);
  if (!container.workdir.empty()) {
    words += fmt::format(", in {}", container.workdir);
  }
  if (!container.args.empty()) {
    words += fmt::format(", with {}", mask_command(shell_join(container.args)));
  }
  return words;
}

nlohmann::ordered_json container_json(const Container& container) {
  // the value of an option may be a secret
  const auto args = shell_words(mask_command(shell_join(container.args)));
  const auto engine = container.engine ? nlohmann::json(to_string(*container.engine)) : nlohmann::json();
  return {{"engine", engine},
          {"image", container.image},
          {"args", args},
          {"workdir", or_null(container.workdir)}};
}

std::string shown_command(const PlannedProcess& process) {
  return mask_command(process.shown.empty() ? process.command : process.shown);
}

// Why ranks cannot use all processors of a server.
std::string bound_text(const UsableCpus& cpus) {
  if (cpus.bound == CpuBound::none) {
    return "";
  }
  return fmt::format(
      "; {} of {}: {}", cpus.count, cpus.all,
      cpus.bound == CpuBound::quota ? "quota of the control group" : "processor affinity of the login");
}

// Why ranks do not see all GPUs of a server, unless the user's own launch hides them.
std::string gpus_text(const UsableGpus& gpus) {
  std::string text;
  if (gpus.hidden_by == HiddenBy::login || gpus.hidden_by == HiddenBy::prologue) {
    text = fmt::format("; {} of {}: {} is set by the {}", gpus.count(), counted(gpus.there.size(), "GPU"),
                       visible_line(gpus.variable), gpus.hidden_by == HiddenBy::login ? "login" : "prologue");
  }
  if (gpus.lost > 0) {
    text += fmt::format("; {} {} lost", counted(static_cast<std::size_t>(gpus.lost), "GPU"),
                        gpus.lost == 1 ? "is" : "are");
  }
  return text;
}

}  // namespace

std::string chosen_ranks_text(const Plan& plan) {
  if (plan.chosen.empty()) {
    return "";
  }
  const auto reason = [](const ChosenRanks& one) {
    const bool is_by_gpu = one.per == OnePer::gpu;
    return (is_by_gpu || one.automatic ? gpus_text(one.gpus) : "") + (is_by_gpu ? "" : bound_text(one.cpus));
  };
  const auto what = [&](const ChosenRanks& one) {
    const char* none = one.automatic && one.gpus.there.empty() ? "no GPUs found, " : "";
    return (one.per == OnePer::gpu ? "one for each GPU" : fmt::format("{}one for each core", none)) +
           reason(one);
  };
  const ChosenRanks& first = plan.chosen.front();
  if (!first.automatic &&
      std::ranges::all_of(plan.chosen, [&](const ChosenRanks& one) { return reason(one).empty(); })) {
    return "";  // as requested
  }
  const char* asked = first.automatic ? "auto: " : "";
  if (std::ranges::all_of(plan.chosen, [&](const ChosenRanks& one) {
        return one.ranks == first.ranks && what(one) == what(first);
      })) {
    return fmt::format(" ({}{})", asked, what(first));
  }
  std::vector<std::string> parts;
  for (const ChosenRanks& one : plan.chosen) {
    parts.push_back(fmt::format("{} on {}, {}", one.ranks, visible_line(one.server), what(one)));
  }
  return fmt::format(" ({}{})", asked, join(first_lines(parts, 4), "; "));
}

std::string plan_text(const Plan& plan) {
  std::set<std::string> servers;
  for (const PlannedProcess& process : plan.processes) {
    servers.insert(process.server);
  }
  std::string text =
      plan.batch_script.empty()
          ? fmt::format("launch {}: {}{} on {}, launcher {}, master {} port {}\n", plan.run_id,
                        counted(static_cast<std::size_t>(plan.world_size), "rank"), chosen_ranks_text(plan),
                        counted(servers.size(), "server"), to_string(plan.launcher), plan.master_addr,
                        plan.master_port)
          : fmt::format("launch {}: {} by Slurm, launcher {}\n", plan.run_id,
                        counted(static_cast<std::size_t>(plan.world_size), "rank"), to_string(plan.launcher));
  const Env everywhere = shared_env(plan.processes, &PlannedProcess::env);
  const Env default_everywhere = shared_env(plan.processes, &PlannedProcess::defaults);
  text += "on every process\n";
  print_env(text, everywhere, {}, "  ");
  print_env(text, default_everywhere, {}, "  ", default_note);
  int node = -1;
  for (const PlannedProcess& process : plan.processes) {
    if (node != process.node_rank) {
      node = process.node_rank;
      text += fmt::format("{} (node {})\n", process.server, node);
    }
    text += process.ranks == 1 ? fmt::format("  rank {} (local {})", process.rank, process.local_rank)
                               : fmt::format("  ranks {}-{}", process.rank, process.rank + process.ranks - 1);
    text += fmt::format(": {}\n", visible_line(shown_command(process)));
    text += fmt::format("    tags: {}\n", visible_line(join(process.tags, ", ")));
    if (process.container) {
      text += fmt::format("    container: {}\n", visible_line(container_words(*process.container)));
    }
    print_env(text, process.env, everywhere, "    ");
    print_env(text, process.defaults, default_everywhere, "    ", default_note);
  }
  if (!plan.batch_script.empty()) {
    text += "batch script\n";
    for (const std::string& line : split(trim(plan.batch_script), '\n')) {
      text += "  " + visible_line(line) + "\n";
    }
  }
  return text;
}

nlohmann::ordered_json plan_json(const Plan& plan) {
  using Json = nlohmann::ordered_json;
  Json processes = Json::array();
  for (const PlannedProcess& process : plan.processes) {
    processes.push_back(Json{{"server", process.server},
                             {"node_rank", process.node_rank},
                             {"rank", process.rank},
                             {"local_rank", process.local_rank},
                             {"ranks", process.ranks},
                             {"command", shown_command(process)},
                             {"env", env_json(process.env)},
                             {"defaults", env_json(process.defaults)},
                             {"tags", process.tags}});
    if (process.container) {
      processes.back()["container"] = container_json(*process.container);
    }
  }
  Json json{{"launch", plan.run_id},           {"launcher", to_string(plan.launcher)},
            {"master_addr", plan.master_addr}, {"master_port", plan.master_port},
            {"world_size", plan.world_size},   {"processes", std::move(processes)}};
  if (!plan.batch_script.empty()) {
    json["batch_script"] = plan.batch_script;
  }
  return json;
}

}  // namespace remote::cli
