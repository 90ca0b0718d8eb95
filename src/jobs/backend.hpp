#pragma once

#include <string_view>
#include <vector>

namespace remote::jobs {

// How a process is started, asked about and ended on a server: the sh functions NAME_start, NAME_state,
// NAME_signal and NAME_members (docs/protocol.md, Backends).
struct Backend {
  std::string_view name;  // lower-case letters
  // Lines "#part start", "#part state" and "#part end" (for signal and members) divide it, so that an action
  // sends what it needs. What stands before the first one goes with every action.
  std::string_view script;
};

// Those that this program knows. A job folder that names none has the first one.
const std::vector<Backend>& backends();

}  // namespace remote::jobs
