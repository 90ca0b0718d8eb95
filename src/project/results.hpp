#pragma once

#include <string>
#include <vector>

#include "config/config.hpp"
#include "servers/results.hpp"

namespace remote::project {

// The files without those of checkpoints that are not complete, which are added to `waiting`.
std::vector<servers::WrittenFile> complete_files(std::vector<servers::WrittenFile> files,
                                                 const config::Checkpoint& checkpoint,
                                                 std::vector<std::string>& waiting);

}  // namespace remote::project
