#pragma once

#include <string>
#include <vector>

#include "jobs/start.hpp"
#include "project/core.hpp"

namespace remote::project {

struct JobProgram {
  std::string command;
  Env env{};
  bool enable_stacks = false;
  std::optional<servers::ContainerRun> container{};  // nullopt: runs in the project's environment
  bool is_torch_agent = false;
  std::string tree{};  // the digest of the tree to run in (jobs/trees.hpp); "": the project's folder
  Env defaults{};      // variables that are used if nothing else sets them
};

// A new job on a server. The caller sets the command that is displayed.
jobs::NewJob new_job(const config::Config& config, const config::Server& server, const JobProgram& program);

// Sets the tags of a new job. labml_remote's tag `__hidden__` hides it.
void set_tags(Job& job, const std::vector<std::string>& tags);

}  // namespace remote::project
