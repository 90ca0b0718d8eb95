#pragma once

#include "project/core.hpp"

namespace remote::project {

// A script may start the ranks of a distributed run as separate jobs, and set their variables itself, like
// labml_remote's samples. If the variables MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK (and optionally
// RUN_UUID) identify such a rank, this assigns the job to the launch of the earlier ranks. Other jobs are not
// changed. `env`: the variables of the request.
void join_launch(Core& core, const Env& env, Job& job);

}  // namespace remote::project
