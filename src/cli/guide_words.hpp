#pragma once

#include <string>
#include <string_view>

namespace remote::cli {

// What to say in the place of an option that torchrun, mpirun, DeepSpeed, sbatch or a container engine has
// and a launch here has not; "" for any other. `word` is the option as it was typed, with or without
// "=VALUE".
std::string hint_for_guides_option(std::string_view word);

}  // namespace remote::cli
