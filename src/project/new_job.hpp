#pragma once

#include <string>
#include <vector>

#include "jobs/start.hpp"
#include "project/core.hpp"

namespace remote::project {

// A command as a job on a server, in the project's environment there, or in a container. The command that
// people are shown is left to the caller. `tree`: the digest of the tree that it runs in (jobs/trees.hpp).
jobs::NewJob new_job(const config::Config& config, const config::Server& server, const std::string& command,
                     const Env& env, bool enable_stacks,
                     const std::optional<servers::ContainerRun>& container = std::nullopt,
                     bool is_torch_agent = false, const std::string& tree = {});

// The tags of a new job. labml_remote's tag `__hidden__` hides it.
void set_tags(Job& job, const std::vector<std::string>& tags);

}  // namespace remote::project
