#pragma once

namespace remote::agent {

// The job of a launch by mpirun on each server but the first: waits for mpirun's order, and runs the daemon
// that it names. The working directory is the job's folder. Returns the exit status of the rank that failed
// first on this server, or else the daemon's.
int run_mpi_member();

}  // namespace remote::agent
