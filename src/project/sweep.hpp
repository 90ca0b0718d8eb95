#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <remote/job.hpp>
#include <remote/sweep.hpp>

#include "jobs/sweep.hpp"
#include "project/core.hpp"

// Shared parts of the calls for sweeps: docs/sweep.md. sweep.cpp starts them, sweep_resume.cpp continues
// them, sweep_look.cpp queries their servers, and sweep_results.cpp compares the points.

namespace remote::project {

// The state of a sweep, as reported by its servers.
struct SweepView {
  int key = 0;                       // the key of its first job
  std::vector<std::string> servers;  // the participating servers; the first one hands out the points
  std::map<std::string, jobs::SweepAnswer> answers;  // by server that answered
  std::vector<Error> errors;                         // of the other servers

  // The server that started a point or may start it, as reported by the servers that answered.
  struct Place {
    std::string server;
    bool began = false;
  };
  std::map<JobId, Place> places;

  bool answered(const std::string& server) const { return answers.contains(server); }
  bool began(const JobId& id) const;
  // The only server that may run this point: its place, or the server that hands out the points.
  const std::string& owner(const JobId& id) const;
};

// Queries all servers in parallel. Those that do not answer in time are in `errors`.
SweepView ask_sweep(Core& core, jobs::SweepAsk ask, const std::vector<Job>& points, const Cancel& cancel,
                    ssh::ConnectLimit limit);
// Assigns a waiting point to the server that it was given to, or that started it.
void place_point(const Core& core, const SweepView& view, Job& point);
// For a point that has started according to its server, however far it got: it no longer waits.
void note_begun(Job& point);

// Saves them; reports a failure.
void save_points(Core& core, const std::vector<Job>& points);

// Call before asking servers about jobs: assigns waiting points to servers, and reports problems of their
// sweeps. Removes the points that have not started anywhere from `jobs`, because no server knows them, and
// returns them.
std::vector<Job> take_waiting_points(Core& core, std::vector<Job>& jobs, std::chrono::milliseconds patience);
// Assigns the waiting points among these jobs to the servers that they were given to, and saves the change. A
// server that does not answer changes nothing. Thread-safe. Throws Interrupted.
void place_waiting_points(Core& core, std::vector<Job>& jobs, const Cancel& cancel, ssh::ConnectLimit limit);
// The newest recorded job of each point of a sweep, by number. Throws Error (usage) if the launch is not a
// sweep.
std::vector<Job> recorded_points(Core& core, const std::string& launch);
// Collects the numbers that these points have printed, if not yet known, and saves them.
void measure_points(Core& core, std::vector<Job>& jobs);

// Call before killing jobs: if a whole sweep is to be stopped, stops the runners that start its points. Moves
// points that never started from `jobs` to `result`.
void stop_sweeps(Core& core, std::vector<Job>& jobs, const KillRequest& request, const Cancel& cancel,
                 ssh::ConnectLimit limit, KillResult& result);

// Removes the files on the servers for sweeps whose jobs have all been removed. `jobs`: the removed jobs.
void drop_sweeps(Core& core, const std::vector<Job>& jobs);

}  // namespace remote::project
