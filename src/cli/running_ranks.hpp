#pragma once

#include <string>
#include <vector>

#include <remote/project.hpp>

#include "cli/options.hpp"

// The jobs of a command that looks into running ranks.

namespace remote::cli {

struct ChosenRanks {
  std::vector<Job> jobs;    // that run, as far as is known
  std::vector<Job> absent;  // that belong to them, and of which nothing is to be seen: ended, or not reached
};

// The jobs to look at, asked just now: those that are named, or else the newest launch that has a running
// rank, or else the newest running job. Throws Error (usage) where none runs; `command` is its name.
ChosenRanks choose_ranks(Project& project, const std::string& command, const JobOptions& options);

}  // namespace remote::cli
