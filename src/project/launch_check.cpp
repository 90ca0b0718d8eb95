// What a launch's servers were found to be, before anything starts on them.

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "project/check/judge.hpp"
#include "project/launching.hpp"

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

}  // namespace

void Launching::judge_servers(const Plan& plan) {
  if (!request_.check) {
    return;
  }
  bool fit = true;
  std::vector<Compared> compared;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    const config::Server& server = servers_[i];
    if (const std::string& missing = answers_[i].missing; !missing.empty()) {
      fit = false;
      core_.tell(PartFailed{
          Error("it cannot run there",
                fmt::format(
                    "there is no program '{}', and the project's Python environment does not provide it",
                    missing))
              .mended_by(Remedy::prepare_servers)
              .on(server.name)});
    }
    const std::string jobs =
        core_.config.project_path_on(server) + "/" + core_.config.remote_jobs_folder_name;
    const auto process = std::ranges::find(plan.processes, server.name, &PlannedProcess::server);
    auto gpus = process == plan.processes.end() ? std::nullopt : visible_gpus(process->env);
    const std::vector<std::string>& models = answers_[i].models;
    if (gpus && !gpus->empty() &&
        std::ranges::any_of(models, [&](const std::string& model) { return model != models.front(); }) &&
        std::ranges::find(process->env, std::string("CUDA_DEVICE_ORDER"), &Env::value_type::first) ==
            process->env.end()) {
      gpus.reset();  // CUDA then counts the fastest first, and nvidia-smi by their places on the bus
    }
    for (const Finding& finding : judge_launch(answers_[i], clocks_ahead_[i], jobs, logins_[i].user, gpus)) {
      if (finding.status == CheckStatus::fail) {
        fit = false;
        core_.tell(PartFailed{
            Error("it cannot run there", finding.detail, where_and_what(finding.fix)).on(server.name)});
      } else {
        core_.tell(CheckWarned{server.name, finding});
      }
    }
    if (!answers_[i].torch.empty() && !servers::container_of(server, request_.image)) {
      Compared& one = compared.emplace_back();
      one.server = server.name;
      one.facts.torch = answers_[i].torch;
    }
  }
  for (std::size_t i = 0; i < servers_.size() && request_.python && !compared.empty(); ++i) {
    if (answers_[i].torch.empty() && !servers::container_of(servers_[i], request_.image)) {
      fit = false;
      core_.tell(PartFailed{Error("it cannot run there",
                                  fmt::format("torch is missing there; {} has {}", compared.front().server,
                                              compared.front().facts.torch),
                                  "remote update-packages --server " + servers_[i].name +
                                      ", or --no-check where torch is found in another way")
                                .on(servers_[i].name)});
    }
  }
  const auto differences = judge_same(compared);
  for (std::size_t i = 0; i < compared.size(); ++i) {
    for (const Finding& finding : differences[i]) {
      if (finding.status == CheckStatus::fail) {  // another major version
        core_.tell(CheckWarned{compared[i].server, finding});
      }
    }
  }
  if (!fit) {
    throw Error("nothing was started", "a launch needs servers that are fit for it")
        .mended_by(Remedy::skip_check);
  }
}

}  // namespace remote::project
