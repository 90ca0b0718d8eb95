#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace remote::cli {

// What to say in the place of an option that torchrun, mpirun, sbatch, a container engine or another program
// has and this command has not; "" for any other. `word` is the option as it was typed, with or without
// "=VALUE".
std::string hint_for_guides_option(std::string_view command, std::string_view word);

// The command of this program that does what others call by this name ("ps": job-list); "" for none.
std::string_view command_for(std::string_view word);

// What to do where no one command does what others call by this name; "" for any other. `words`: the whole
// command line.
std::string_view hint_for_other_word(std::string_view word, const std::vector<std::string>& words);

// The name of the launcher that a command starts ("torchrun", "accelerate launch"), which would start ranks
// of its own; "" for none.
std::string other_launcher(std::string_view command);

}  // namespace remote::cli
