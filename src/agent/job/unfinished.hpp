#pragma once

#include <vector>

#include "agent/host/host.hpp"
#include "wire/uninstall.hpp"

namespace remote::agent {

struct UnfinishedWork {
  // Jobs of this folder that have no result and do not run here. They may run on another machine.
  std::vector<wire::JobReport> jobs{};
  std::vector<wire::RunningJob> running{};  // in any folder
};

// Finds unfinished jobs, including those of other clients.
UnfinishedWork find_unfinished(const Host& host, const wire::JobsPlace& place);

}  // namespace remote::agent
