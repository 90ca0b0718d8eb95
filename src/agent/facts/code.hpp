#pragma once

#include <string_view>

#include "agent/host/host.hpp"
#include "wire/facts.hpp"

namespace remote::agent {

// Compares files of the project with a list of lines "SIZE SECONDS NAME", where SECONDS is the modification
// time. Links are not followed.
wire::CodeFacts compare_files(const Path& project, std::string_view listed);

}  // namespace remote::agent
