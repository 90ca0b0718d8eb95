#pragma once

#include <string>
#include <vector>

#include <remote/project.hpp>

#include "cli/options.hpp"

// Selects the jobs for a command that inspects running ranks.

namespace remote::cli {

struct ChosenRanks {
  std::vector<Job> jobs;    // the running ones, as far as is known
  std::vector<Job> absent;  // related jobs that cannot be inspected: ended, or their server does not answer
};

// The jobs to inspect, after asking their servers: the named ones, or else the newest launch with a running
// rank, or else the newest running job. Throws Error (usage) if none is running; `command`: name of the
// command.
ChosenRanks choose_ranks(Project& project, const std::string& command, const JobOptions& options);

}  // namespace remote::cli
