#pragma once

namespace remote::agent {

// Runs one rank below mpirun: a line for the shell, with torch's variables, and with its output in the job of
// this server, whose folder is the working directory. Records a failure as torchrun's workers do
// (docs/protocol.md). Returns the exit status for mpirun.
int run_mpi_rank(const char* command);

}  // namespace remote::agent
