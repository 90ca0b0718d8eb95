// What is kept of a launch's beginning, for its report.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "project/launching.hpp"
#include "project/report/launch_record.hpp"

namespace remote::project {
namespace {

// "8 × NVIDIA A100-SXM4-80GB", or each model with its number.
std::string models_text(const servers::ProbeAnswer& answer) {
  std::vector<std::pair<std::string, int>> counts;
  for (const std::string& model : answer.models) {
    const auto known = std::ranges::find(counts, model, &std::pair<std::string, int>::first);
    if (known == counts.end()) {
      counts.emplace_back(model, 1);
    } else {
      ++known->second;
    }
  }
  std::string text;
  for (const auto& [model, count] : counts) {
    text += fmt::format("{}{} × {}", text.empty() ? "" : ", ", count, model);
  }
  return text.empty() && answer.gpus > 0 ? std::to_string(answer.gpus) : text;
}

}  // namespace

ServerSetup Launching::setup_of(std::size_t server, const Plan& plan) const {
  const config::Server& config = servers_[server];
  const servers::ProbeAnswer& answer = answers_[server];
  ServerSetup setup = planned_setup(core_.config, config, logins_[server], plan.processes, changed_);
  setup.clock_ahead = clocks_ahead_[server];
  const auto of_code = std::exchange(setup.facts, {});
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) {
      setup.facts.emplace_back(name, value);
    }
  };
  add("os", answer.os);
  add("kernel", answer.kernel);
  add("cores", std::to_string(answer.cpus));
  add("GPUs", models_text(answer));
  add("driver", answer.driver);
  if (const auto container = containers_.find(config.name); container != containers_.end()) {
    // Python and torch are the image's, and that is not looked into.
    add("container", servers::container_of(config, request_.image)->image);
  } else {
    add("python", answer.env_python.empty() ? answer.python.value_or("") : answer.env_python);
    add("torch", answer.torch);
    add("cuda", answer.cuda);
    add("hip", answer.hip);
  }
  add("interface", answer.interface.value_or(""));
  setup.facts.insert(setup.facts.end(), of_code.begin(), of_code.end());
  return setup;
}

void Launching::remember(const LaunchResult& result) {
  try {
    LaunchRecord record{.launcher = result.plan.launcher, .servers = {}, .steps = {}};
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      record.servers.push_back(setup_of(i, result.plan));
    }
    for (const auto* steps : {&connecting_, &looking_, &readying_}) {
      record.steps.insert(record.steps.end(), steps->begin(), steps->end());
    }
    record.steps.push_back(starting_);
    write_launch_record(core_.store, result.jobs.front().id, record);
  } catch (const Error& error) {  // the launch goes on; its report lacks something
    core_.tell(StoreProblem{error.message()});
  }
}

}  // namespace remote::project
