#pragma once

#include "config/config.hpp"
#include "project/core.hpp"
#include "servers/sent_state.hpp"

namespace remote::project {

// Tells which sent files are only pointers of git-lfs, and which selected submodules are empty. `state`: of
// the project of this configuration. Any thread. Throws Error.
void tell_unfetched(Core& core, const config::Config& config, const servers::ProjectState& state);

}  // namespace remote::project
