#pragma once

#include <optional>
#include <string>
#include <vector>

#include <remote/history.hpp>

#include "project/core.hpp"
#include "project/git_state.hpp"

// The records of launches: written before anything starts, completed by whoever first sees that a launch has
// ended.

namespace remote::project {

// A record on its way: it stays if the launch started, in part or whole, and else goes.
class LaunchMemory {
 public:
  // Writes the record. What cannot be written is told, and the launch goes on without it.
  LaunchMemory(Core& core, const LaunchRequest& request, const Plan& plan, GitState& git,
               std::vector<ServerSetup> servers, std::vector<LaunchStep> steps);
  ~LaunchMemory();
  LaunchMemory(const LaunchMemory&) = delete;
  LaunchMemory& operator=(const LaunchMemory&) = delete;

  // `news`: see PastLaunch.
  void started(const std::vector<Job>& jobs, const std::optional<LaunchStep>& step, const std::string& news);

 private:
  // Whether it was carried out.
  bool change(const std::function<void()>& write);

  Core& core_;
  JobId id_;
  std::vector<ServerSetup> servers_;
  bool written_ = false;
  bool started_ = false;
};

// Throws Error (usage) for a name of a launch that could be taken for a key.
void check_name(const std::string& name);

// With ids in place of the names of launches: the newest one of this name that has jobs among these.
JobSelection with_ids(const Core& core, const std::vector<Job>& jobs, JobSelection selection);
// The error for a selection that fits no stored job: `error`, or that the jobs of a launch on record that it
// names were removed.
Error no_such_jobs(const Core& core, const std::vector<Job>& jobs, const JobSelection& selection,
                   const Error& error);

// Completes the records of launches that have ended, as their jobs are known here. The servers are asked for
// the last lines and numbers, unless `verdict` is about that launch and has the lines.
void complete_records(Core& core, const std::optional<Verdict>& verdict = {});

// PastLaunch::news of a launch that has ended, as its first server says.
std::string news_of(Core& core, const PastLaunch& launch);

// The record of the launch of these jobs; nullopt: none. Throws Error for one that cannot be read.
std::optional<PastLaunch> record_of(const Core& core, const std::vector<Job>& jobs);

}  // namespace remote::project
