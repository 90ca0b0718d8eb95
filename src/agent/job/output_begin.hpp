#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include "agent/host/host.hpp"
#include "agent/host/path.hpp"
#include "agent/job/regular_file.hpp"

// Finds the offsets in output files to start following from.

namespace remote::agent {

// Returns the offset of the last `lines` lines. An incomplete last line counts.
std::uint64_t find_last_lines(const Host& host, const RegularFile& file, int lines);

// Returns the offsets in job.out and job.err of the output of the last `since`. They are based on the sizes
// recorded in `marks` by the launch's supervisor. Without a record, the offset of a file that was modified in
// this time is 0.
std::pair<std::uint64_t, std::uint64_t> find_recent(const RegularFile& out, const RegularFile& err,
                                                    const Path& marks, std::chrono::seconds since);

}  // namespace remote::agent
