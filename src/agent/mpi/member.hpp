#pragma once

namespace remote::agent {

// The job of an mpirun launch on every server except the first: waits for mpirun's order, and runs the daemon
// named in it. The working directory is the job's folder. Returns the exit status of the rank that failed
// first on this server, or else the daemon's.
int run_mpi_member();

}  // namespace remote::agent
