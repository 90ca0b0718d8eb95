#pragma once

#include <string>
#include <string_view>

namespace remote::cli {

// The hint for an option of torchrun, mpirun, sbatch, a container engine or another program that this command
// does not have; "" for any other option. `word`: the option as typed, with or without "=VALUE".
std::string hint_for_guides_option(std::string_view command, std::string_view word);

// The name of the launcher that a command starts ("torchrun", "accelerate launch"), which would start its own
// ranks; "" if none.
std::string other_launcher(std::string_view command);

}  // namespace remote::cli
