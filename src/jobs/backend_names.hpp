#pragma once

#include <string_view>

namespace remote::jobs {

// The backends (docs/protocol.md) that the client refers to; an agent has more.
inline constexpr std::string_view local_backend = "local";
inline constexpr std::string_view slurm_backend = "slurm";

}  // namespace remote::jobs
