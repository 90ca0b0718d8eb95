#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "agent/job/output_end.hpp"

// The last output of a job or a rank.

namespace remote::agent {

// Returns whether the text blames the loss of another rank, so that this failure is the consequence of
// another one. Searches the last traceback of the last attempt, or the whole attempt if it has no traceback,
// for messages of gloo, NCCL, torch's stores, mpirun, the system and `remote` itself.
bool blames_peer(std::string_view text);
bool file_blames_peer(const Path& path, Links links = Links::follow);

// Returns the last non-blank line of job.out or job.err, whichever was modified last. A carriage return also
// ends a line, because progress bars use it.
std::optional<std::string> read_last_line(const Path& job_folder);

}  // namespace remote::agent
