#pragma once

namespace remote::agent {

// Supervises a job on Slurm's nodes, in the job's folder, and writes its result. The batch script runs, on
// the first node, one of
//
//   remote-agent slurm-job one                       the command on one node
//   remote-agent slurm-job ranks COUNT PORT GRACE    COUNT ranks on each node, with torch's variables
//   remote-agent slurm-job agents COUNT PORT GRACE   a process on each node, which starts COUNT ranks itself
//
// and srun runs `sh ./batch.sh rank KIND COUNT GRACE`, which becomes `remote-agent slurm-job rank …`, for
// each process. PORT is the port of the rendezvous on the first node; 0: a free one. GRACE is the time in
// seconds between the failure of a rank and the end of the others; -: they continue. Returns the exit status.
int run_slurm_job(int count, char** words);

}  // namespace remote::agent
