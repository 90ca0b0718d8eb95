#pragma once

#include <string>

namespace remote::jobs {

// The other job of a launch by mpirun, as the first server's ssh reaches it.
struct MpiHost {
  std::string name;  // as mpirun calls it
  std::string user;
  std::string address;
  int port = 22;
  std::string job_folder;  // absolute, or relative to the home directory
};

// A line of the file `mpi_hosts` (docs/protocol.md).
std::string mpi_host_line(const MpiHost& host);

}  // namespace remote::jobs
