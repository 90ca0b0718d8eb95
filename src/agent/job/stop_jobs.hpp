#pragma once

#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "agent/job/backend.hpp"
#include "wire/jobs.hpp"

// Stops jobs and verifies that no processes are left.

namespace remote::agent {

struct StopOrder {
  std::vector<std::string> ids;
  std::set<std::string> claim{};  // a subset of `ids`: jobs to claim if they have not started
  int signal = 15;
  std::chrono::milliseconds grace{};  // before KILL
  wire::StoppedBy by{};
  // Another attempt of the launch follows, so nothing is recorded, and supervisors keep running.
  bool is_between_attempts = false;
};

struct StoppedJob {
  wire::StopResult result;
  bool is_proven_gone = false;  // the job has no processes
};

// Stops the jobs in parallel. The results are in the order of the ids, without duplicates. Starts no programs
// at the process limit.
std::vector<StoppedJob> stop_jobs(Backends& backends, const StopOrder& order);

// The clock of stop_all(), which tests replace.
struct StopTime {
  std::function<std::chrono::milliseconds()> now = read_boot_clock;
  std::function<void(Stopper&, std::chrono::milliseconds)> wait =
      [](Stopper& stopper, std::chrono::milliseconds longest) { stopper.wait(longest); };
};

// Sends signals and waits, until nothing is left or the time is over. `is_at_limit` returns whether the
// process limit is reached.
void stop_all(const std::vector<Stopper*>& stoppers, int signal, std::chrono::milliseconds grace,
              const std::function<bool()>& is_at_limit, const StopTime& time = {});

}  // namespace remote::agent
