#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <remote/job.hpp>
#include <remote/sweep.hpp>

#include "jobs/sweep.hpp"
#include "project/core.hpp"

// What the calls about sweeps share: docs/sweep.md. sweep.cpp starts them and goes on with them,
// sweep_look.cpp asks their servers, sweep_results.cpp judges.

namespace remote::project {

// What the servers of a sweep say.
struct SweepView {
  int key = 0;                                       // of its first job
  std::vector<std::string> servers;                  // that take part; the first one gives out the points
  std::map<std::string, jobs::SweepAnswer> answers;  // of those that answered
  std::vector<Error> errors;                         // of the others

  // Where the points began or may begin, of which the servers that answered know that.
  struct Place {
    std::string server;
    bool began = false;
  };
  std::map<JobId, Place> places;

  bool answered(const std::string& server) const { return answers.contains(server); }
  bool began(const JobId& id) const;
  // The server that alone may run this point: its place, or the one that gives out the points.
  const std::string& owner(const JobId& id) const;
};

// Asks all of them, side by side. Those that do not answer in time are in `errors`.
SweepView ask_sweep(Core& core, jobs::SweepAsk ask, const std::vector<Job>& points, const Cancel& cancel,
                    ssh::ConnectLimit limit);
// A point that waits becomes one of the server that it was given to, or where it began.
void place_point(const Core& core, const SweepView& view, Job& point);
// A point of which its server knows that it began, however far its start got, waits no more.
void note_begun(Job& point);

// Saves them, and tells it where that fails.
void save_points(Core& core, const std::vector<Job>& points);

// Before servers are asked about jobs: places the points that wait, and tells what is wrong with their
// sweeps. Takes those out of `jobs` that began nowhere, as no server can tell about them, and returns them.
std::vector<Job> take_waiting_points(Core& core, std::vector<Job>& jobs, std::chrono::milliseconds patience);
// Moves the points among these jobs that wait to the server that they were given to, and saves that. A server
// that does not answer changes nothing. Any thread. Throws Interrupted.
void place_waiting_points(Core& core, std::vector<Job>& jobs, const Cancel& cancel, ssh::ConnectLimit limit);
// The newest job of each point of a sweep, by number, as it is on record. Throws Error (usage) for a launch
// that is no sweep.
std::vector<Job> recorded_points(Core& core, const std::string& launch);
// The numbers that these points have printed, where that is not known yet. Saves them.
void measure_points(Core& core, std::vector<Job>& jobs);

// Before jobs are killed: ends what begins the points of sweeps that are to end as a whole. The points that
// never began are taken out of `jobs`, into `result`.
void stop_sweeps(Core& core, std::vector<Job>& jobs, const KillRequest& request, const Cancel& cancel,
                 ssh::ConnectLimit limit, KillResult& result);

// Removes what the servers keep of sweeps all of whose jobs are gone. `jobs`: those that were removed.
void drop_sweeps(Core& core, const std::vector<Job>& jobs);

}  // namespace remote::project
