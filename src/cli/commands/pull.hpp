#pragma once

#include <string>

#include "cli/context.hpp"

namespace remote::cli {

// Copies what the launch wrote to results/KEY, and says so. Returns the exit code.
int pull_results(Context& context, const std::string& launch);

}  // namespace remote::cli
