#pragma once

#include "agent/host/path.hpp"
#include "wire/cause.hpp"

namespace remote::agent {

// Sets `mark` and `after_peer` of a failure from the last output in a file. The mark is the problem of the
// machine (rules::sicknesses), or a digest of the last line, which is the same if two runs fail in the same
// way. `has_time`: the file's first line is a time.
void mark_failure(wire::RankFailure& failure, const Path& file, bool has_time);

}  // namespace remote::agent
