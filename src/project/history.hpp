#pragma once

#include <optional>
#include <string>
#include <vector>

#include <remote/history.hpp>

#include "project/core.hpp"
#include "project/git_state.hpp"

// Records of launches. Written before anything starts, and completed by the first command that finds the
// launch ended.

namespace remote::project {

// The record of a launch that is being started: kept if at least a part of it started, otherwise removed.
class LaunchMemory {
 public:
  // Writes the record. A failure is reported, and the launch continues without a record.
  LaunchMemory(Core& core, const LaunchRequest& request, const Plan& plan, GitState& git,
               std::vector<ServerSetup> servers, std::vector<LaunchStep> steps);
  ~LaunchMemory();
  LaunchMemory(const LaunchMemory&) = delete;
  LaunchMemory& operator=(const LaunchMemory&) = delete;

  // `news`: see PastLaunch.
  void started(const std::vector<Job>& jobs, const std::optional<LaunchStep>& step, const std::string& news);

 private:
  // Returns whether the write succeeded.
  bool change(const std::function<void()>& write);

  Core& core_;
  JobId id_;
  std::vector<ServerSetup> servers_;
  bool written_ = false;
  bool started_ = false;
};

// Throws Error (usage) if the name of a launch could be mistaken for a key.
void check_name(const std::string& name);

// Replaces the names of launches by ids: the newest launch with that name that has any of these jobs.
JobSelection with_ids(const Core& core, const std::vector<Job>& jobs, JobSelection selection);
// The error for a selection that matches no stored job: `error`, or that the jobs of a recorded launch it
// names have been removed.
Error no_such_jobs(const Core& core, const std::vector<Job>& jobs, const JobSelection& selection,
                   const Error& error);

// Completes the records of launches that have ended according to their jobs here. Queries the servers for the
// last lines and numbers, unless `verdict` is about that launch and has the lines.
void complete_records(Core& core, const std::optional<Verdict>& verdict = {});

// PastLaunch::news of a launch that has ended, from its first server.
std::string news_of(Core& core, const PastLaunch& launch);

// The record of the launch of these jobs; nullopt: none. Throws Error if it is unreadable.
std::optional<PastLaunch> record_of(const Core& core, const std::vector<Job>& jobs);

}  // namespace remote::project
