#pragma once

#include <optional>

#include "agent/host/path.hpp"
#include "wire/source.hpp"

namespace remote::agent {

// Returns the last sender of the project, or nullopt if unknown. `scripts` is the folder of remote's own
// scripts in the project.
std::optional<wire::ProjectSource> read_source(const Path& scripts);

}  // namespace remote::agent
