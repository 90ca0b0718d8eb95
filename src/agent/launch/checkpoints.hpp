#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/host/path.hpp"
#include "wire/launch.hpp"

namespace remote::agent {

// Returns the complete checkpoints of a launch, newest first by the time of the file that marks them as
// complete, as paths relative to the project. At most wire::max_checkpoints, and limited by the size of a
// message. Skips names that are not UTF-8 or contain a newline.
std::vector<std::string> find_checkpoints(const Path& project, const wire::RestartSpec& spec);

// Returns the name of the file that marks a checkpoint as complete, in the checkpoint's folder. '*' stands
// for the same text in `files` and `complete`. "" if `files` does not match the name.
std::string find_marker(std::string_view name, std::string_view files, std::string_view complete);

}  // namespace remote::agent
