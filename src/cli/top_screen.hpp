#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "cli/context.hpp"

namespace remote::cli {

struct TopScreenRequest {
  std::vector<std::string> servers;
  std::chrono::milliseconds interval;
};

// Runs the live screen of `remote top` until the user ends it; returns the exit code. Restores the terminal
// in every case. Throws Error and Interrupted.
int show_top_screen(Context& context, const TopScreenRequest& request);

}  // namespace remote::cli
