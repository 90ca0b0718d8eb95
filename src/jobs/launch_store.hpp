#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <remote/history.hpp>

#include "jobs/store.hpp"

namespace remote::jobs {

// Sets how a launch ended or goes on, by its jobs.
void sum_up(PastLaunch& record);

// The records of launches on this machine, in the store's folder. They outlive those of the jobs.
//
//   launches/<id>/launch.json     the truth about a launch, replaced by rename
//   launches/<id>/changes.patch   what differed from the commit, where that is kept
//   launches/<id>/sent.DIGEST     a link to the list of the files that the servers had (servers::keep_sent)
//   launches/open/<id>            a file for each launch that is not completed; a byte for each vain try
//   launches/index                a cache of what a list shows (jobs/index.hpp), rebuilt where it is wrong
//   launches/lock                 flock(2) around every change
//
// A process that dies while it writes leaves the record as it was before or after.
class LaunchStore {
 public:
  // The store has to live as long.
  explicit LaunchStore(const Store& store, Store::Step step = {});

  // A new launch, which is open from now on. `patch`: the text of PastLaunch::patch; "": none.
  void add(const PastLaunch& record, const std::string& patch);
  // Changes a record, if there is one, as it is on disk.
  void change(const JobId& id, const std::function<void(PastLaunch&)>& edit);
  // nullopt: there is none. Throws Error for one that cannot be read.
  std::optional<PastLaunch> read(const JobId& id) const;
  // All that can be read, the newest first; `problems` as Store::Listing's.
  std::vector<LaunchSummary> list(std::vector<std::string>* problems = nullptr) const;
  // Takes the jobs of a launch as they are in the store; those that were removed stay as the record has them.
  void update(PastLaunch& record) const;
  bool is_stored(const JobId& job) const;
  std::filesystem::path folder(const JobId& id) const { return folder_ / id.text(); }
  // Those that are not completed, as far as is known here.
  std::vector<JobId> open() const;
  void close(const JobId& id);
  // It is open once more: other jobs of it have been started.
  void reopen(const JobId& id);
  // Whether something of it could not be had when it was to be completed.
  bool tried(const JobId& id) const;
  // Whether what could not be had of a launch is to be asked for once more; no after the third time.
  bool may_try_again(const JobId& id);
  void remove(const JobId& id);

 private:
  FileLock lock() const;
  std::filesystem::path mark(const JobId& id) const { return folder_ / "open" / id.text(); }
  std::filesystem::path file(const JobId& id) const { return folder(id) / "launch.json"; }
  void write(PastLaunch record, const std::string& patch);
  // Fixes the index, if that is possible at once; what was read is right in any case. `leftovers` are
  // removed.
  void mend_index(const std::string& lines, const std::vector<std::string>& leftovers) const;

  const Store& store_;
  std::filesystem::path folder_;
  Store::Step step_;
};

}  // namespace remote::jobs
