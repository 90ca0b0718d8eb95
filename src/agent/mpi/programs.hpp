#pragma once

#include <string_view>

// The programs that a job of an mpirun launch finds on its PATH, as links to the agent: `remote-mpi-agent`,
// `remote-mpi-ssh`, `remote-mpi-member` and `remote-mpi-rank` (docs/protocol.md, "mpirun's orders"). They use
// the job's folder in REMOTE_JOB_FOLDER.

namespace remote::agent {

// Runs the program `mpi-NAME`. Returns its exit status; 2 for unknown names or wrong words.
int run_mpi_program(std::string_view name, int count, char** words);

}  // namespace remote::agent
