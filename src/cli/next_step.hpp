#pragma once

#include <string>
#include <vector>

#include <remote/project.hpp>

#include "cli/context.hpp"
#include "cli/show/job_table.hpp"

// What to do next in a folder. Uses only local information: contacts no server.

namespace remote::cli {

struct NextStep {
  std::string why;
  std::string command;
};

// Outside a project: how to create one. The most common way first.
std::vector<NextStep> steps_to_a_project();

// In a project, the most urgent one first. `rows`: the displayed jobs; within each kind, the newest one last.
std::vector<NextStep> next_steps(Context& context, const ProjectStatus& status,
                                 const std::vector<TableRow>& rows);

}  // namespace remote::cli
