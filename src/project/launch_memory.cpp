// Facts about the servers at the start of a launch, for its record.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/strings.hpp"
#include "project/check/judge.hpp"
#include "project/launch_attempt.hpp"
#include "project/server_setup.hpp"
#include "rules/usable.hpp"

namespace remote::project {
namespace {

// "8 × NVIDIA A100-SXM4-80GB", or each model with its count.
std::string models_text(const std::vector<Gpu>& gpus) {
  std::vector<std::pair<std::string, int>> counts;
  for (const Gpu& gpu : gpus) {
    const auto known = std::ranges::find(counts, gpu.name, &std::pair<std::string, int>::first);
    if (known == counts.end()) {
      counts.emplace_back(visible_line(gpu.name), 1);
    } else {
      ++known->second;
    }
  }
  std::string text;
  for (const auto& [model, count] : counts) {
    text += fmt::format("{}{} × {}", text.empty() ? "" : ", ", count, model);
  }
  return text;
}

// The size of /dev/shm if it is small; otherwise, or if unknown, "".
std::string small_shm(const ServerFacts& facts) {
  const DiskFacts* shm = facts.disk("shm");
  return shm != nullptr && shm->total_bytes > 0 && is_small_shm(shm->total_bytes)
             ? size_text(shm->total_bytes)
             : "";
}

}  // namespace

ServerSetup LaunchAttempt::setup_of(std::size_t server, const Plan& plan) const {
  const config::Server& config = servers_[server];
  const ServerFacts& facts = answers_[server].facts;
  ServerSetup setup = planned_setup(core_.config, config, logins_[server], plan.processes, changed_);
  setup.clock_ahead = facts.clock_ahead;
  const auto of_code = std::exchange(setup.facts, {});
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) {
      setup.facts.emplace_back(name, value);
    }
  };
  add("os", facts.os);
  add("kernel", facts.kernel);
  add("cores", std::to_string(rules::count_cpus(facts).count));
  add("GPUs", models_text(facts.gpus.gpus));
  add("driver", facts.driver);
  if (const auto container = containers_.find(config.name); container != containers_.end()) {
    // Python and torch are those of the image, which is not inspected.
    add("container", servers::container_of(config, request_.image)->image);
  } else {
    add("python", facts.python);
    add("torch", facts.torch);
    add("cuda", facts.cuda);
    add("hip", facts.hip);
    add("shm", small_shm(facts));
  }
  add("interface", answers_[server].route ? answers_[server].route->interface.value_or("") : "");
  setup.facts.insert(setup.facts.end(), of_code.begin(), of_code.end());
  add("tree", tree_);
  return setup;
}

std::vector<ServerSetup> LaunchAttempt::setups(const Plan& plan) const {
  std::vector<ServerSetup> all;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    all.push_back(setup_of(i, plan));
  }
  return all;
}

std::vector<LaunchStep> LaunchAttempt::steps() const {
  std::vector<LaunchStep> all;
  for (const auto* steps : {&connecting_, &freezing_, &looking_, &readying_}) {
    all.insert(all.end(), steps->begin(), steps->end());
  }
  return all;
}

}  // namespace remote::project
