#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <remote/job.hpp>

#include "base/files.hpp"

namespace remote::jobs {

// The jobs of a project on this machine:
//
//   <folder>/<id>/job.json   the truth about a job, replaced by rename; next to job.out and job.err
//   <folder>/last_key        the highest key ever assigned, so that none is reused, even after remove()
//   <folder>/index           a cache of all job.json (jobs/index.hpp), rebuilt whenever it does not match
//   <folder>/lock            flock(2) around every change
//   <folder>/starts/<id>     flock(2) held by a process that starts jobs
//
// Every change is made by rename while the lock is held. So any number of `remote` processes (and threads)
// may use one store, and each may die at any time: its change is then made or not made, job by job. A job
// folder that is copied in from elsewhere is listed; if its key is already used here, it gets a new one.
// This class defines all file names in the store. Errors name the file.
class Store {
 public:
  // Called with the name of the step before every change on disk. Tests make it throw or exit.
  using Step = std::function<void(std::string_view)>;

  // `cancel` interrupts waiting for the lock, so every change may throw Interrupted.
  explicit Store(std::filesystem::path folder, Step step = {}, std::optional<Cancel> cancel = {});

  // Assigns keys to the jobs in their order and saves them, synced to disk. On an error, none are saved. If
  // the process is killed here, any number of them may be saved. The ids must be new.
  void add(std::vector<Job>& jobs);

  // Saves new states of stored jobs, by the rules of merge_news (jobs/transitions.hpp). Jobs that were
  // removed in the meantime stay removed. If only checked_at has changed, it is written only to the index for
  // up to a minute, so that a listing does not cost a synced write for each job. If a record cannot be read
  // or written, throws Error after all others are done.
  void update(const std::vector<Job>& jobs);

  struct Filter {
    bool unfinished_only = false;  // reads only the records of jobs that are not over according to the index
    // Like unfinished_only, plus these ended jobs. If any job of a launch is not over, the launch is listed
    // completely.
    std::optional<EndedLately> lately{};
    bool hidden = true;  // whether hidden jobs count among these
  };
  struct Listing {
    std::vector<Job> jobs;              // sorted by key
    std::vector<std::string> problems;  // "FILE: why": unreadable records; the others are usable
  };
  // Also works if the store cannot be written.
  Listing list(Filter filter) const;
  Listing list() const { return list(Filter()); }

  // Removes records and their folders. Ignores unknown ids.
  void remove(const std::vector<JobId>& ids);

  const std::filesystem::path& folder() const { return folder_; }
  const Cancel* cancel() const { return cancel_ ? &*cancel_ : nullptr; }
  std::filesystem::path job_folder(const JobId& id) const { return folder_ / id.text(); }
  std::filesystem::path record_file(const JobId& id) const { return job_folder(id) / "job.json"; }

  // A lock held by a process while it starts jobs, and taken before add(). If a job is still `starting` and
  // its lock is free, its starter is dead. All jobs of one start share a lock; `start_id` is the id of the
  // launch or the job. Child processes do not inherit it.
  FileLock hold_start(const JobId& start_id) const;
  bool starter_is_dead(const JobId& start_id) const;

 private:
  std::filesystem::path folder_;
  std::optional<Cancel> cancel_;
  Step step_;
};

}  // namespace remote::jobs
