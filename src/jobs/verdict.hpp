#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "jobs/job.hpp"

namespace remote::jobs {

// What became of a launch, from its jobs as they are now (all times on the laptop's clock).
struct Verdict {
  // The job that failed by itself, before all others; nullptr: none did. The others are aftermath. The order
  // is that of Job::failed_ms, and where that is not known, of the seconds of the ends.
  const Job* first = nullptr;
  // How long before the next end that was no success, in milliseconds; nullopt when nothing ended after it.
  std::optional<std::int64_t> ahead_ms;
  bool exact = false;       // whether that is known to parts of a second; else it is whole seconds
  std::string lost_server;  // the ranks were ended after this server's loss
  int succeeded = 0;
  int ended = 0;    // by the launch, after the first failure
  int aborted = 0;  // others that failed
  int killed = 0;   // by somebody else
  int unknown = 0;  // unfinished: their server does not tell
};

// The jobs must outlive the verdict.
Verdict verdict_of(const std::vector<Job>& jobs);

// "3 others were ended, 1 aborted after it": what became of the rest, without the first; "" for none.
std::string aftermath(const Verdict& verdict);

}  // namespace remote::jobs
