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
  std::optional<int> lines;                     // begin with the last lines; nullopt: from the first byte
  std::optional<std::chrono::seconds> since{};  // begin with what was written so long ago
  bool follow = true;                           // false: stop at the end of what is there
  std::vector<std::optional<int>> ranks{};  // by index: the rank of this job of Slurm that is shown; empty:
                                            // all of them show what the job itself writes
  std::vector<bool> silent;                 // by index: only wait for this job's end; empty: none
  // How long a server that has not been reached yet is tried again, before that is an error.
  std::chrono::seconds patience{0};
  // For the jobs of one launch: see Losses in follow_connection.hpp.
  std::chrono::seconds lost_after{60};
  std::chrono::seconds loss_grace{10};
  std::vector<Job> ended{};  // ranks of that launch that are not followed, because they have ended
};

// What following tells, by index into the jobs given. Called from several threads, but for one job from one
// thread at a time. While a call takes its time, that connection's output waits on the server, not in our
// memory.
struct FollowEvents {
  std::function<void(std::size_t, ssh::Stream, std::string_view)> output;
  std::function<void(std::size_t, const Job&)> ended;  // after all its output, or given up
  std::function<void(const Event&)> link;              // LinkLost, LinkBack
  // A server was reached, or is not waited for any more; may be told again, and the function may be empty.
  std::function<void(const std::string&)> settled{};
};

struct FollowResult {
  std::vector<Job> jobs;          // as they are now
  std::vector<Error> errors;      // jobs and servers that could not be followed to the end
  std::vector<std::string> gone;  // those servers of `errors` that were given up; their jobs are `unknown`
};

// Follows jobs until they have ended (or to the end of what is there). A broken link is made anew, and every
// stream goes on at the byte where it stopped: nothing is lost, nothing comes twice. When a server refuses
// another channel (MaxSessions), another connection is made. Throws Interrupted on cancel.
FollowResult follow(const Site& site, std::vector<Job> jobs, const FollowOptions& options,
                    const FollowEvents& events);

}  // namespace remote::jobs
