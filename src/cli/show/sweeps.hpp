#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <remote/sweep.hpp>

#include "cli/context.hpp"

// Texts about sweeps.

namespace remote::cli {

// "12 of 20 done, 2 failed, best loss 0.031 at lr=1e-4". `jobs`: all jobs of a sweep.
std::string sweep_text(const std::vector<Job>& jobs);
std::string sweep_text(const SweepResults& results);

// A row for each point that a sweep would run.
std::string plan_text(const Context& context, const SweepPlan& plan);
nlohmann::ordered_json plan_json(const SweepPlan& plan);

std::string results_table(const Context& context, const SweepResults& results);
std::string results_csv(const SweepResults& results);
nlohmann::ordered_json results_json(const SweepResults& results);
// The command of a job; for a point of a sweep, with its values filled in.
std::string filled_command(const Job& job);

}  // namespace remote::cli
