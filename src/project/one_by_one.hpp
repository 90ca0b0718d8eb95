#pragma once

#include "project/core.hpp"

namespace remote::project {

// A script may start the ranks of a distributed run as jobs, one after the other, and give each its variables
// itself, as labml_remote's samples do. By MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK (and RUN_UUID, where
// it is given) such a job is known as a rank, and gets the launch of the ranks before it. Another job stays
// as it is. `env` is the request's.
void join_launch(Core& core, const Env& env, Job& job);

}  // namespace remote::project
