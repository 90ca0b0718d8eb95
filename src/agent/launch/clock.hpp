#pragma once

#include "agent/host/processes.hpp"
#include "rules/launch_policy.hpp"

namespace remote::agent {

// The time that the rules use: since boot, including suspend.
inline rules::Seconds read_clock() {
  return rules::Seconds(read_boot_clock());
}

}  // namespace remote::agent
