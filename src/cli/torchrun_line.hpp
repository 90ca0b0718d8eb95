#pragma once

#include <string>
#include <vector>

namespace remote::cli {

// Translates a command line of torchrun, deepspeed or accelerate; the result does not include "remote". Drops
// rendezvous options, because each launch has its own rendezvous. Empty for "accelerate config".
std::vector<std::string> line_for_torchrun(const std::vector<std::string>& typed,
                                           const std::vector<std::string>& servers);

}  // namespace remote::cli
