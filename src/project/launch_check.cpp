// Judges the facts about a launch's servers before anything starts on them.

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/simple_commands.hpp"
#include "base/strings.hpp"
#include "project/check/judge.hpp"
#include "project/launch_attempt.hpp"
#include "rules/usable.hpp"

namespace remote::project {
namespace {

std::string where_and_what(const std::optional<Fix>& fix) {
  if (!fix) {
    return {};
  }
  const bool command = fix->where == Fix::Where::server || fix->where == Fix::Where::server_as_root;
  const char* where = fix->where == Fix::Where::server ? "look there with: " : "as root there: ";
  return command ? where + fix->text : fix->text;
}

// The GPUs of a server that its ranks will see, by index; nullopt if all, or if unknown.
auto gpus_of_ranks(const Plan& plan, const std::string& server, const GpuFacts& facts) {
  const std::vector<Gpu>& found = facts.gpus;
  const auto process = std::ranges::find(plan.processes, server, &PlannedProcess::server);
  auto gpus = process == plan.processes.end()
                  ? std::nullopt
                  : visible_gpus(with_set_variables(process->env, process->command));
  if (gpus && !gpus->empty() &&
      std::ranges::any_of(found, [&](const Gpu& gpu) { return gpu.name != found.front().name; }) &&
      std::ranges::find(process->env, std::string("CUDA_DEVICE_ORDER"), &Env::value_type::first) ==
          process->env.end()) {
    gpus.reset();  // CUDA then orders GPUs by speed, but nvidia-smi by bus address
  }
  if (const UsableGpus usable = rules::count_gpus(facts);
      !gpus && usable.hidden_by != HiddenBy::nobody && usable.unknown == 0) {
    gpus = usable.indices;
  }
  return gpus;
}

}  // namespace

void LaunchAttempt::require_driver(const config::Server& server, const ServerFacts& facts) {
  const GpuTool* tool = rules::find_failed_tool(facts.gpus);
  if (tool == nullptr) {
    return;
  }
  const Finding finding = driver_finding(*tool, facts.user);
  throw Error("the driver does not answer",
              tool->text.empty() ? finding.detail : visible_line(tool->text, 300),
              where_and_what(finding.fix) + "; or ask for a number of ranks, or for one for each core")
      .on(server.name);
}

// Warns if ranks run on cores only because the driver finds no GPU.
std::optional<Finding> LaunchAttempt::find_missing_gpus(const Plan& plan, const std::string& server,
                                                        const ServerFacts& facts) const {
  const bool uses_cores = std::ranges::any_of(plan.chosen, [&](const ChosenRanks& chosen) {
    return chosen.server == server && chosen.automatic && chosen.per == OnePer::core;
  });
  const auto tool = std::ranges::find_if(facts.gpus.tools, [](const GpuTool& one) {
    return one.state == GpuToolState::no_devices && !one.text.empty();
  });
  if (!uses_cores || request_.lease.any() || !facts.gpus.gpus.empty() || tool == facts.gpus.tools.end()) {
    return std::nullopt;
  }
  Finding finding = driver_finding(*tool, facts.user);
  finding.detail += ": its ranks run on the CPU";
  return finding;
}

// Warns of servers whose ranks, one for each GPU, would use the same GPUs. Each machine is named once.
void LaunchAttempt::warn_of_shared_gpus(const Plan& plan, std::vector<CheckWarned>& warnings) const {
  struct Ranks {
    const ServerFacts* facts;
    const ChosenRanks* chosen;
  };
  std::vector<Ranks> all;
  for (const ChosenRanks& chosen : plan.chosen) {
    const auto server = std::ranges::find(servers_, chosen.server, &config::Server::name);
    if (chosen.per == OnePer::gpu && request_.lease.gpus == 0 && server != servers_.end()) {
      all.push_back({&answers_[static_cast<std::size_t>(server - servers_.begin())].facts, &chosen});
    }
  }
  while (all.size() > 1) {
    const Ranks first = all.front();
    std::vector<std::string> others;
    std::erase_if(all, [&](const Ranks& one) {
      const bool is_other =
          one.chosen != first.chosen &&
          rules::share_gpus(*first.facts, first.chosen->gpus.indices, *one.facts, one.chosen->gpus.indices);
      if (is_other) {
        others.push_back(one.chosen->server);
      }
      return is_other;
    });
    all.erase(all.begin());
    if (!others.empty()) {
      add_warning(warnings, first.chosen->server, same_machine_finding(others));
    }
  }
}

// The reasons why the launch cannot run on this server.
std::vector<Error> LaunchAttempt::judge_server(std::size_t index, const Plan& plan,
                                               std::vector<CheckWarned>& warnings) {
  std::vector<Error> errors;
  const config::Server& server = servers_[index];
  prepared_->judge(answers_[index], server, is_gone_from(server.name, changed_), warnings, errors);
  const ServerFacts& facts = answers_[index].facts;
  const std::string jobs = core_.config.project_path_on(server) + "/" + core_.config.remote_jobs_folder_name;
  if (!facts.sick.empty()) {
    add_warning(warnings, server.name, sick_finding(facts.sick, server.name));
  }
  const GpuTool* failed = rules::find_failed_tool(facts.gpus);
  if (failed != nullptr && request_.python && !servers::container_of(server, request_.image)) {
    Finding finding = driver_finding(*failed, facts.user);
    finding.status = CheckStatus::warn;  // the number of ranks was given, so they may not need GPUs
    add_warning(warnings, server.name, finding);
  }
  if (const auto finding = find_missing_gpus(plan, server.name, facts)) {
    add_warning(warnings, server.name, *finding);
  }
  if (request_.python && !facts.torch.empty() && !servers::container_of(server, request_.image)) {
    if (const Finding finding = torch_finding(facts); finding.status != CheckStatus::ok) {
      add_warning(warnings, server.name, finding);
    }
  }
  for (const Finding& finding :
       judge_launch(facts, jobs, logins_[index].user, gpus_of_ranks(plan, server.name, facts.gpus))) {
    if (finding.status == CheckStatus::fail) {
      errors.push_back(cannot_run(finding.detail, where_and_what(finding.fix)).on(server.name));
    } else {
      add_warning(warnings, server.name, finding);
    }
  }
  return errors;
}

void LaunchAttempt::judge_servers(const Plan& plan) {
  if (!request_.check) {
    return;
  }
  std::vector<Error> errors;
  std::vector<CheckWarned> warnings;
  std::vector<Compared> compared;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    const std::vector<Error> found = judge_server(i, plan, warnings);
    errors.insert(errors.end(), found.begin(), found.end());
    const ServerFacts& facts = answers_[i].facts;
    if (!facts.torch.empty() && !servers::container_of(servers_[i], request_.image)) {
      Compared& one = compared.emplace_back();
      one.server = servers_[i].name;
      one.facts.torch = facts.torch;
    }
  }
  for (std::size_t i = 0; i < servers_.size() && request_.python && !compared.empty(); ++i) {
    if (answers_[i].facts.torch.empty() && !servers::container_of(servers_[i], request_.image)) {
      errors.push_back(cannot_run(fmt::format("torch is missing there; {} has {}", compared.front().server,
                                              compared.front().facts.torch),
                                  "name torch in requirements.txt, then: remote prepare (Debian has it as "
                                  "python3-torch); or --no-check if it is found in another way")
                           .on(servers_[i].name));
    }
  }
  warn_of_shared_gpus(plan, warnings);
  const auto differences = judge_same(compared);
  for (std::size_t i = 0; i < compared.size(); ++i) {
    for (const Finding& finding : differences[i]) {
      if (finding.status == CheckStatus::fail) {  // a different major version
        add_warning(warnings, compared[i].server, finding);
      }
    }
  }
  report_unfit(core_, warnings, errors);
}

}  // namespace remote::project
