#pragma once

#include <cstdint>
#include <string>
#include <vector>

// Leases: what jobs have of a server for themselves, among all of its users that start jobs this way. The
// manual's page "sharing" says what they promise.

namespace remote {

// What is taken on each of the servers, on all of them or on none. Nothing is taken where all are 0.
struct LeaseRequest {
  int gpus = 0;              // that nobody has leased and no process uses
  int cpus = 0;              // cores, by number alone
  std::uint64_t memory = 0;  // bytes of the server's
  bool wait = false;         // wait in line until they are free; else nothing starts
  bool any() const { return gpus > 0 || cpus > 0 || memory > 0; }
};

// One that is held on a server, or that somebody waits for.
struct Lease {
  std::string user;                 // whose it is, as the server names the owner of its file
  bool own = false;                 // the login's
  bool waits = false;               // it holds nothing yet; then nothing of what follows is known
  std::vector<std::string> gpus{};  // as Gpu::uuid has them; of AMD and Intel "amd:ID", "intel:INDEX"
  int cpus = 0;
  std::uint64_t memory = 0;  // bytes
};

}  // namespace remote
