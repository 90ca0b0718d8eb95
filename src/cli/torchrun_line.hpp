#pragma once

#include <string>
#include <vector>

namespace remote::cli {

// Translates a line of torchrun, deepspeed or accelerate; "remote" is not included. Options of the rendezvous
// are dropped, because each launch has its own. Empty for "accelerate config".
std::vector<std::string> line_for_torchrun(const std::vector<std::string>& typed,
                                           const std::vector<std::string>& servers);

}  // namespace remote::cli
