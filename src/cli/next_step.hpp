#pragma once

#include <string>
#include <vector>

#include <remote/project.hpp>

#include "cli/context.hpp"
#include "cli/show/job_table.hpp"

// What a person does next in a folder. Found from what lies on this machine alone: no server is asked.

namespace remote::cli {

// A command, and what it is for.
struct NextStep {
  std::string why;
  std::string command;
};

// Where the folder has no project: what makes it one. The first is the usual one.
std::vector<NextStep> steps_to_a_project();

// In a project, the most pressing one first. `rows`: what is shown of its jobs, the newest of a kind last.
std::vector<NextStep> next_steps(Context& context, const ProjectStatus& status,
                                 const std::vector<TableRow>& rows);

}  // namespace remote::cli
