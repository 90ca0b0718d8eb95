#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "agent/host/path.hpp"

namespace remote::agent {

// Expands a pattern like a shell and returns the sorted names, relative to the folder. Each part of the path
// may contain * ? and [, which match neither '/' nor a '.' at the beginning of a name. Returns at most `most`
// names.
std::vector<std::string> find_matches(const Path& folder, const std::string& pattern, std::size_t most);

}  // namespace remote::agent
