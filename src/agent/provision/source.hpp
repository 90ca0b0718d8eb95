#pragma once

#include <optional>

#include "agent/host/path.hpp"
#include "wire/source.hpp"

namespace remote::agent {

// Returns the last sender of the project, or nullopt if unknown. `scripts` is the folder of remote's own
// scripts in the project.
std::optional<wire::ProjectSource> read_source(const Path& scripts);
// Records the sender in the same folder, which must exist. Failures are ignored, because a full disk also
// makes the project's transfer fail.
void write_source(const Path& scripts, const wire::ProjectSource& source);

}  // namespace remote::agent
