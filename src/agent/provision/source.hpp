#pragma once

#include <optional>

#include "agent/host/path.hpp"
#include "wire/source.hpp"

namespace remote::agent {

// Returns the last sender of the project, or nullopt if it is unknown. `scripts` is the folder of our scripts
// in the project.
std::optional<wire::ProjectSource> read_source(const Path& scripts);
// Records it in the same folder, which must exist. Failures are ignored: a full disk also stops the transfer
// of the project, with an error.
void write_source(const Path& scripts, const wire::ProjectSource& source);

}  // namespace remote::agent
