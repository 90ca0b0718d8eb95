#pragma once

#include <string>
#include <vector>

#include "jobs/start.hpp"
#include "project/core.hpp"

namespace remote::project {

// What a job runs.
struct JobProgram {
  std::string command;
  Env env{};
  bool enable_stacks = false;
  std::optional<servers::ContainerRun> container{};  // nullopt: in the project's environment on the server
  bool is_torch_agent = false;
  std::string tree{};  // the digest of the tree that it runs in (jobs/trees.hpp); "": in the project's folder
  Env defaults{};      // for variables that nothing else sets
};

// A job on a server. The command that people are shown is left to the caller.
jobs::NewJob new_job(const config::Config& config, const config::Server& server, const JobProgram& program);

// The tags of a new job. labml_remote's tag `__hidden__` hides it.
void set_tags(Job& job, const std::vector<std::string>& tags);

}  // namespace remote::project
