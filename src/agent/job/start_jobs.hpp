#pragma once

#include <string>

#include "agent/job/record.hpp"
#include "wire/start.hpp"

namespace remote::agent {

// Prevents a late start of a job whose supervisor did not start. If its folder cannot be written, removes the
// folder, because otherwise a lifeline would wait for the job forever.
wire::StartedJob fail_start(const Host& host, const JobsFolder& folder, const std::string& id,
                            const std::string& reason);

}  // namespace remote::agent
