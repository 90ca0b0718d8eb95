#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wire/fields.hpp"

namespace remote::wire {

// Finds Slurm's programs, which are often only on the PATH of a login shell.
struct SlurmProgramsRequest {
  static constexpr std::string_view kind = "slurm_programs";

  static constexpr auto fields() { return field_list(); }
};

struct SlurmProgramsReply {
  static constexpr std::string_view kind = "slurm_programs";

  // "NAME=VALUE": PATH with these programs, and other variables that they need; empty if they are not found.
  std::vector<std::string> variables{};

  static constexpr auto fields() {
    return field_list(field("variables", &SlurmProgramsReply::variables, at_most(131'072)));
  }
};

}  // namespace remote::wire
