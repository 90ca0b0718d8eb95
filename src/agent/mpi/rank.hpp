#pragma once

namespace remote::agent {

// Runs one rank under mpirun: a command line for the shell, with torch's variables, whose output goes to this
// server's job. The working directory must be the job's folder. Records a failure like torchrun's workers
// (docs/protocol.md). Returns the exit status for mpirun.
int run_mpi_rank(const char* command);

}  // namespace remote::agent
