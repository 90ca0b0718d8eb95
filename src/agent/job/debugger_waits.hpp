#pragma once

#include <vector>

#include <remote/job.hpp>

#include "agent/host/host.hpp"
#include "agent/job/record.hpp"

namespace remote::agent {

// Reads the records of debugger.py.
std::vector<DebuggerWait> find_debugger_waits(const Host& host, const JobRecord& job);

}  // namespace remote::agent
