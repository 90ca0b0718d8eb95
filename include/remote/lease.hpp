#pragma once

#include <cstdint>
#include <string>
#include <vector>

// Leases: server resources reserved for one job, respected by all users of the server who start jobs with
// remote. The manual's page "sharing" describes the guarantees.

namespace remote {

// The resources to lease on each of the servers; all servers or none. All 0: no lease.
struct LeaseRequest {
  int gpus = 0;              // GPUs that are not leased and not used by any process
  int cpus = 0;              // a number of cores; not bound to particular ones
  std::uint64_t memory = 0;  // bytes of the server's memory
  bool wait = false;         // wait in the queue until they are free; otherwise fail
  bool any() const { return gpus > 0 || cpus > 0 || memory > 0; }
};

// A lease on a server, or a queued request for one.
struct Lease {
  std::string user;                 // the user who owns its file on the server
  bool own = false;                 // owned by the login's user
  bool waits = false;               // queued: holds nothing yet; the fields below are not set
  std::vector<std::string> gpus{};  // as in Gpu::uuid; AMD and Intel: "amd:ID", "intel:INDEX"
  int cpus = 0;
  std::uint64_t memory = 0;  // bytes
};

}  // namespace remote
