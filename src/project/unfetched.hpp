#pragma once

#include "config/config.hpp"
#include "project/core.hpp"
#include "servers/sent_state.hpp"

namespace remote::project {

// Reports sent files that are only git-lfs pointers, and selected submodules that are empty. `state`: of the
// project with this configuration. Thread-safe. Throws Error.
void tell_unfetched(Core& core, const config::Config& config, const servers::ProjectState& state);

}  // namespace remote::project
