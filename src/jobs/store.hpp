#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"
#include "jobs/job.hpp"
#include "jobs/job_json.hpp"

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

  explicit Store(std::filesystem::path folder, Step step = {});

  // Gives keys to the jobs (in their order) and saves them, synced to the disk. All or, on an error, none; a
  // process that is killed in it leaves none, some or all. Ids must be new.
  void add(std::vector<Job>& jobs);

  // Saves new facts about jobs that are stored, by the rules of merge_news (jobs/refresh.hpp): a final state
  // is never changed back, older news never replace newer ones, `unknown` is not stored. Jobs that were
  // removed meanwhile stay removed. Where checked_at alone is new, it is kept in the index only, up to a
  // minute, so that a listing does not cost a synced write a job. A record that cannot be read or written is
  // an Error, after all the others are done.
  void update(const std::vector<Job>& jobs);

  struct Filter {
    bool unfinished_only = false;  // reads only the records whose state in the index is not final
  };
  struct Listing {
    std::vector<Job> jobs;              // by key
    std::vector<std::string> problems;  // "FILE: why": records that cannot be read; the others are usable
  };
  // Needs no right to write: a store that cannot be written is listed all the same.
  Listing list(Filter filter) const;
  Listing list() const { return list(Filter()); }

  // A job by its key ("3") or an unambiguous start of its id (4 digits or more). Throws Error (usage).
  Job find(const std::string& name) const;

  // Removes records and their folders. Ids that are not there are passed by.
  void remove(const std::vector<JobId>& ids);

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path job_folder(const JobId& id) const { return folder_ / id.text(); }
  std::filesystem::path record_file(const JobId& id) const { return job_folder(id) / "job.json"; }
  std::filesystem::path out_file(const JobId& id) const { return job_folder(id) / "job.out"; }
  std::filesystem::path err_file(const JobId& id) const { return job_folder(id) / "job.err"; }

  // Held by a process while it starts jobs, and taken before add(): whoever finds the lock of a job that is
  // still `starting` free knows that its starter is dead. One lock for all jobs of one start; `start_id` is
  // the launch id or the job's id. A child does not inherit it.
  FileLock hold_start(const JobId& start_id) const;
  bool starter_is_dead(const JobId& start_id) const;

 private:
  std::filesystem::path folder_;
  Step step_;
};

}  // namespace remote::jobs
