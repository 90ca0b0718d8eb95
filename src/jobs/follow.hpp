#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <remote/cancel.hpp>
#include <remote/error.hpp>

#include "config/config.hpp"
#include "jobs/job.hpp"
#include "jobs/store.hpp"
#include "ssh/connector.hpp"

namespace remote::jobs {

struct FollowOptions {
  std::optional<int> lines;  // begin with the last lines; nullopt: from the first byte
  bool follow = true;        // false: stop at the end of what is there
  std::vector<bool> silent;  // by index: only wait for this job's end; empty: none
  // So long a server that has not been reached yet is tried again; after it, or with 0, that is an error.
  std::chrono::seconds patience{0};
};

// What following tells, by index into the jobs given. Called from several threads, for one job from one at a
// time. A call that takes its time holds back that connection's output on the server, not in our memory.
struct FollowEvents {
  std::function<void(std::size_t, ssh::Stream, std::string_view)> output;
  std::function<void(std::size_t, const Job&)> ended;  // all its output was handed over before
  std::function<void(const Event&)> link;              // LinkLost, LinkBack
};

struct FollowResult {
  std::vector<Job> jobs;      // as they are now
  std::vector<Error> errors;  // what could not be followed to its end, one a job, or a server
};

// Follows jobs until they have ended (or to the end of what is there). A broken link is made anew, and every
// stream goes on at the byte where it stopped: nothing is lost, nothing comes twice. When a server refuses a
// further channel (MaxSessions), a further connection is made. Throws Interrupted on cancel.
FollowResult follow(const config::Config& config, Store& store, ssh::Connector& connector,
                    std::vector<Job> jobs, const FollowOptions& options, const FollowEvents& events,
                    const Cancel& cancel);

}  // namespace remote::jobs
