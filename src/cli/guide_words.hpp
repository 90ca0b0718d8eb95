#pragma once

#include <string>
#include <string_view>

namespace remote::cli {

// What to say in the place of an option that torchrun, mpirun, sbatch, a container engine or another program
// has and this command has not; "" for any other. `word` is the option as it was typed, with or without
// "=VALUE".
std::string hint_for_guides_option(std::string_view command, std::string_view word);

// The name of the launcher that a command starts ("torchrun", "accelerate launch"), which would start ranks
// of its own; "" for none.
std::string other_launcher(std::string_view command);

}  // namespace remote::cli
