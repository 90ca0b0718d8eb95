#pragma once

#include <string>
#include <utility>

#include <unistd.h>

#include "agent/host_folder.hpp"
#include "agent/lease/lease.hpp"

namespace remote::agent::test {

// Leases without resources, in their own folder.
class FreeLeases {
 public:
  FreeLeases() { host_.environment["REMOTE_LEASES"] = folder_.path(); }

  TakenLease take(std::string devices) const { return {Lease::make(host_), std::move(devices)}; }

 private:
  HostFolder folder_;
  Host host_{};
};

// The file of a lease.
inline Path find_file(const Lease& lease) {
  return read_link("/proc/self/fd/" + std::to_string(lease.fd()));
}

}  // namespace remote::agent::test
