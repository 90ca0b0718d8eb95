#pragma once

#include <memory>
#include <vector>

#include "agent/job/backend.hpp"

namespace remote::agent {

// Makes a stopper for processes and containers of jobs on this machine.
std::unique_ptr<Stopper> make_local_stopper(const Host& host, const JobsFolder& folder,
                                            std::vector<StopTarget*> targets);

}  // namespace remote::agent
