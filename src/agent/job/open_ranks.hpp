#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/host/host.hpp"
#include "agent/job/record.hpp"

// Ranks of jobs that run mpirun. Their parent (agent/mpi/rank.hpp) keeps a file open.rank.RANK until it has
// recorded the end of the rank.

namespace remote::agent {

// The content of that file.
struct OpenRank {
  int pid = 0;                // the parent's
  std::uint64_t earlier = 0;  // the size of the rank's stderr when it started
  int label = 0;              // the process that labels its output lines; 0: none
  // Set once the rank has failed, because its parent may be killed while it waits for the last output.
  std::optional<wire::JobEnd> end{};
};
bool write_open_rank(const Path& job_folder, const std::string& rank, const OpenRank& open);

// Returns whether the end of any rank has not been recorded.
bool has_open_rank(const Path& job_folder);

// Records the ends of ranks that their parents could not record, with the job's end as the time. MPICH's
// mpirun kills the parent together with its rank, even after MPI_Abort, which only leaves a line on the
// rank's stderr. If a rank called MPI_Abort, returns its exit code, which becomes the exit code of the job.
std::optional<int> close_open_ranks(const Host& host, const Path& job_folder, wire::Moment ended);

// The last line for a rank that mpirun stopped with a signal (SIGTERM or SIGKILL). This line marks its
// failure as a consequence of a peer's.
std::string explain_signal_of_mpirun(int signal);

// Returns the last lines of a rank's stderr, without lines of mpirun and its daemons. Reads 16 KiB at most,
// and nothing before `begin`.
std::vector<std::string> read_last_rank_lines(const Path& file, std::uint64_t begin);

}  // namespace remote::agent
