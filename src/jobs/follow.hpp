#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include <remote/error.hpp>
#include <remote/job.hpp>

#include "jobs/site.hpp"

namespace remote::jobs {

struct FollowOptions {
  std::optional<int> lines;                     // start with the last lines; nullopt: with the first byte
  std::optional<std::chrono::seconds> since{};  // start with output of this age
  bool follow = true;                           // false: stop at the current end of the output
  std::vector<std::optional<int>> ranks{};      // by index: the rank of this Slurm job to show; empty:
                                                // every job shows its own output
  std::vector<bool> silent;  // by index: show no output, only wait for the job's end; empty: none
  // How long to retry a server that was never reached before reporting an error.
  std::chrono::seconds patience{0};
  // For the jobs of one launch: see Losses in follow_connection.hpp.
  std::chrono::seconds lost_after{60};
  std::chrono::seconds loss_grace{10};
  std::vector<Job> ended{};  // ranks of that launch that are not followed, because they have ended
};

// Callbacks, with indices into the given jobs. They run in several threads, but in only one at a time per
// job. During a call, the connection's output waits on the server, not in memory.
struct FollowEvents {
  std::function<void(std::size_t, ssh::Stream, std::string_view)> output;
  std::function<void(std::size_t, const Job&)> ended;  // after all its output, or if it was given up
  std::function<void(const Event&)> link;              // LinkLost, LinkBack
  // A server was reached or given up. May be called repeatedly. May be empty.
  std::function<void(const std::string&)> settled{};
};

struct FollowResult {
  std::vector<Job> jobs;          // in their current states
  std::vector<Error> errors;      // jobs and servers that could not be followed to the end
  std::vector<std::string> gone;  // servers in `errors` that were given up; their jobs are `unknown`
};

// Follows jobs until they end (or to the current end of their output), with one channel per server.
// Reconnects after a broken link and resumes each stream at the same byte, so output is neither lost nor
// repeated. Throws Interrupted on cancel.
FollowResult follow(const Site& site, std::vector<Job> jobs, const FollowOptions& options,
                    const FollowEvents& events);

}  // namespace remote::jobs
