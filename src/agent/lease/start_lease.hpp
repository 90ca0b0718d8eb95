#pragma once

#include <string>
#include <vector>

#include "agent/host/host.hpp"
#include "agent/job/record.hpp"
#include "agent/lease/lease.hpp"
#include "wire/leases.hpp"

namespace remote::agent {

// Leases resources for jobs that start now, and writes the file `devices` to their folders, which must exist.
// If the jobs wait in line, only their files `queue` and `.turn` are written, and the first job takes the
// lease (wait_for_lease.hpp). The jobs' guards must inherit the lease's descriptor as lease_fd. Throws
// LeaseRefused and CannotStart.
Lease take_for_jobs(const Host& host, const JobsFolder& folder, const wire::LeaseToTake& wanted,
                    const std::vector<std::string>& ids);

}  // namespace remote::agent
