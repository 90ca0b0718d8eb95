#pragma once

#include <string>

namespace remote::jobs {

// Another server's job in a launch with mpirun, and how the first server's ssh reaches it.
struct MpiHost {
  std::string name;  // mpirun's name for it
  std::string user;
  std::string address;
  int port = 22;
  std::string job_folder;  // absolute, or relative to the home directory
};

// Formats a line of the file `mpi_hosts` (docs/protocol.md).
std::string mpi_host_line(const MpiHost& host);

}  // namespace remote::jobs
