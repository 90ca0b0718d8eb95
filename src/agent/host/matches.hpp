#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "agent/host/path.hpp"

namespace remote::agent {

// The sorted names in a folder, relative to it, that match a pattern, as a shell expands it: each part of the
// path may contain * ? and [, which match neither '/' nor a '.' at the beginning of a name. Not more than
// `most` names.
std::vector<std::string> find_matches(const Path& folder, const std::string& pattern, std::size_t most);

}  // namespace remote::agent
