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
//   <folder>/<id>/job.json   the truth about a job, replaced by rename; job.out and job.err beside it
//   <folder>/last_key        the highest key ever given, so that none is given twice, also after remove()
//   <folder>/index           a cache of all job.json (jobs/index.hpp), rebuilt whenever it does not fit them
//   <folder>/lock            flock(2) around every change
//   <folder>/starts/<id>     flock(2) held by a process that starts jobs
//
// Every change happens under the lock and by rename, so any number of `remote` processes (and threads) may
// use one store, and each may die at any instant: what it was about to do is then done or not done, job by
// job. A job folder that is copied in from elsewhere shows up; if its key is taken here, it gets a new one.
// All names of files in it come from here. Errors name the file.
class Store {
 public:
  // Called before every single change on disk with the name of the step. Tests make it throw, or die there.
  using Step = std::function<void(std::string_view)>;

  // `cancel` ends the waiting for the lock: every change may throw Interrupted then.
  explicit Store(std::filesystem::path folder, Step step = {}, std::optional<Cancel> cancel = {});

  // Gives keys to the jobs (in their order) and saves them, synced to the disk: all of them or, on an error,
  // none. A process that is killed here leaves none, some or all. Ids must be new.
  void add(std::vector<Job>& jobs);

  // Saves news of jobs that are stored, by the rules of merge_news (jobs/transitions.hpp). Jobs that were
  // removed meanwhile stay removed. A checked_at that alone is new stands only in the index, for up to a
  // minute, so that a listing does not cost a synced write for each job. A record that cannot be read or
  // written is an Error, after all the others are done.
  void update(const std::vector<Job>& jobs);

  struct Filter {
    bool unfinished_only = false;  // reads only the records of jobs that are not over, as the index has them
    // The same and, of what is over, only this; a launch of which some job goes on is listed whole.
    std::optional<EndedLately> lately{};
    bool hidden = true;  // whether hidden jobs are among these
  };
  struct Listing {
    std::vector<Job> jobs;              // by key
    std::vector<std::string> problems;  // "FILE: why": records that cannot be read; the others are usable
  };
  // Lists also a store that cannot be written.
  Listing list(Filter filter) const;
  Listing list() const { return list(Filter()); }

  // Removes records and their folders. Ids that are not there are passed by.
  void remove(const std::vector<JobId>& ids);

  const std::filesystem::path& folder() const { return folder_; }
  const Cancel* cancel() const { return cancel_ ? &*cancel_ : nullptr; }
  std::filesystem::path job_folder(const JobId& id) const { return folder_ / id.text(); }
  std::filesystem::path record_file(const JobId& id) const { return job_folder(id) / "job.json"; }

  // Held by a process while it starts jobs, and taken before add(): when a job is still `starting` and its
  // lock is free, its starter is dead. All jobs of one start share a lock; `start_id` is the launch's id or
  // the job's. A child process does not inherit it.
  FileLock hold_start(const JobId& start_id) const;
  bool starter_is_dead(const JobId& start_id) const;

 private:
  std::filesystem::path folder_;
  std::optional<Cancel> cancel_;
  Step step_;
};

}  // namespace remote::jobs
