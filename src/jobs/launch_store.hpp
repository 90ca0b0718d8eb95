#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <remote/history.hpp>

#include "jobs/store.hpp"

namespace remote::jobs {

// Sets the result or current state of a launch, based on its jobs.
void sum_up(PastLaunch& record);

// The records of launches on this machine, in the store's folder. They outlive those of the jobs.
//
//   launches/<id>/launch.json     the truth about a launch, replaced by rename
//   launches/<id>/changes.patch   the uncommitted changes, if they are kept
//   launches/<id>/sent.DIGEST     a link to the list of files that the servers had (servers::keep_sent)
//   launches/open/<id>            a file for each incomplete record; one byte for each failed attempt
//   launches/index                a cache for lists (jobs/index.hpp), rebuilt if it is wrong
//   launches/lock                 flock(2) around every change
//
// If a process dies while it writes, the record is either unchanged or complete.
class LaunchStore {
 public:
  // `store` must outlive this object.
  explicit LaunchStore(const Store& store, Store::Step step = {});

  // Adds a new launch, which is open from now on. `patch` is the text of PastLaunch::patch; "": none.
  void add(const PastLaunch& record, const std::string& patch);
  // Changes a record as it is on disk. Does nothing if it does not exist.
  void change(const JobId& id, const std::function<void(PastLaunch&)>& edit);
  // nullopt if there is no such record. Throws Error if it cannot be read.
  std::optional<PastLaunch> read(const JobId& id) const;
  // All readable records, the newest first. `problems` is like that of Store::Listing.
  std::vector<LaunchSummary> list(std::vector<std::string>* problems = nullptr) const;
  // Copies the launch's jobs from the store to the record. Jobs that were removed from the store are kept as
  // they are in the record.
  void update(PastLaunch& record) const;
  bool is_stored(const JobId& job) const;
  std::filesystem::path folder(const JobId& id) const { return folder_ / id.text(); }
  // The launches that are not known to be completed.
  std::vector<JobId> open() const;
  void close(const JobId& id);
  // Opens it again, because more of its jobs have been started.
  void reopen(const JobId& id);
  // Whether some data was unavailable when it was to be completed.
  bool tried(const JobId& id) const;
  // Whether to request unavailable data of a launch again. Returns false after three attempts.
  bool may_try_again(const JobId& id);
  void remove(const JobId& id);

 private:
  FileLock lock() const;
  std::filesystem::path mark(const JobId& id) const { return folder_ / "open" / id.text(); }
  std::filesystem::path file(const JobId& id) const { return folder(id) / "launch.json"; }
  void write(PastLaunch record, const std::string& patch);
  // Repairs the index if possible without waiting; the data that was read is correct in any case. Removes
  // `leftovers`.
  void mend_index(const std::string& lines, const std::vector<std::string>& leftovers) const;

  const Store& store_;
  std::filesystem::path folder_;
  Store::Step step_;
};

}  // namespace remote::jobs
