#include "jobs/store.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <set>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <remote/error.hpp>
#include <sys/file.h>
#include <unistd.h>

#include "base/beneath.hpp"
#include "base/clock.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"
#include "jobs/job_json.hpp"
#include "jobs/store_files.hpp"
#include "jobs/transitions.hpp"

namespace remote::jobs {
namespace fs = std::filesystem;
namespace {

// How far a record's checked_at may be behind that of the index.
constexpr std::chrono::minutes checked_at_lag{1};

// The highest key that was ever assigned. If the mark is lost or invalid, the existing jobs determine it.
int read_last_key(const fs::path& folder) {
  try {
    const auto text = read_beneath(folder, "last_key");
    return std::max(0, text ? parse_number<int>(trim(*text)).value_or(0) : 0);
  } catch (const Error&) {
    return 0;
  }
}

// Removes what killed or ended processes left behind. The lock is held, so nothing of it is in use.
void tidy(const fs::path& folder, const Loaded& loaded, const Step& step) {
  std::error_code ignored;
  for (const std::string& name : loaded.leftovers) {
    step("tidy");
    fs::remove_all(folder / name, ignored);
  }
  for (const JobId& id : loaded.bare) {
    ::rmdir((folder / id.text()).c_str());  // fails if the folder is not empty, as intended
  }
  for (const fs::path& start : entries_of(folder / "starts")) {
    if (!JobId::parse(start.filename().string())) {
      continue;
    }
    try {
      if (const auto free = FileLock::try_lock(start)) {
        step("tidy");
        ::unlink(start.c_str());
      }
    } catch (const Error&) {
      // It is not ours to remove.
    }
  }
}

// If two records have the same key, because a folder was copied here, the record that was here before keeps
// it, or else the older one.
bool give_new_keys(const fs::path& folder, Loaded& loaded, const Step& step) {
  auto& jobs = loaded.jobs;
  std::ranges::sort(jobs, {}, [](const StoredJob& stored) {
    return std::tuple(stored.job.key, !stored.from_index, stored.job.created_at, stored.job.id);
  });
  std::vector<StoredJob*> clashes;
  for (std::size_t i = 1; i < jobs.size(); ++i) {
    if (jobs[i].job.key == jobs[i - 1].job.key) {
      clashes.push_back(&jobs[i]);
    }
  }
  if (clashes.empty()) {
    return false;
  }
  int key = std::max(read_last_key(folder), loaded.max_key);
  FileBatch batch(folder, Sync::content, step);
  batch.put(folder / "last_key", fmt::format("{}\n", key + static_cast<int>(clashes.size())));
  for (StoredJob* stored : clashes) {
    stored->job.key = ++key;
    stored->print = batch.put(folder / stored->job.id.text() / "job.json", to_json_text(stored->job));
  }
  batch.commit(false);
  loaded.max_key = key;
  std::ranges::sort(jobs, {}, [](const StoredJob& stored) { return stored.job.key; });
  return true;
}

// Loads the complete store and updates the index. The lock must be held.
Loaded load_and_repair(const fs::path& folder, const Step& step) {
  Loaded loaded = load_jobs(folder, {});
  if (give_new_keys(folder, loaded, step) || loaded.stale) {
    std::string lines;
    for (const StoredJob& stored : loaded.jobs) {
      lines += index_line(stored.print, stored.job);
    }
    write_index(folder, lines, step);
  }
  return loaded;
}

}  // namespace

Store::Store(fs::path folder, Step step, std::optional<Cancel> cancel)
    : folder_(std::move(folder)),
      cancel_(std::move(cancel)),
      step_(step ? std::move(step) : [](std::string_view) {}) {}

void Store::add(std::vector<Job>& jobs) {
  if (jobs.empty()) {
    return;
  }
  step_("create folder");
  make_folders(folder_);
  step_("lock");
  const FileLock lock(folder_ / "lock", cancel());
  std::set<JobId> ids;
  for (const Job& job : jobs) {
    if (!ids.insert(job.id).second || ::access(record_file(job.id).c_str(), F_OK) == 0) {
      throw Error("cannot add a job", fmt::format("{} is there already", record_file(job.id).string()))
          .mended_by(Remedy::list_jobs);
    }
  }
  const Loaded loaded = load_and_repair(folder_, step_);
  tidy(folder_, loaded, step_);

  int key = std::max(read_last_key(folder_), loaded.max_key);
  std::vector<Job> added = jobs;
  std::vector<fs::path> made;
  std::string lines;
  try {
    // Not synced, because the records themselves contain their keys while the jobs exist; remove() syncs it.
    FileBatch batch(folder_, Sync::no, step_);
    batch.put(folder_ / "last_key", fmt::format("{}\n", key + static_cast<int>(jobs.size())));
    FileBatch records(folder_, Sync::names, step_);
    for (Job& job : added) {
      job.key = ++key;
      if (job.created_at == Instant()) {
        job.created_at = now_seconds();
      }
      step_("create job folder");
      make_folders(job_folder(job.id));
      made.push_back(job_folder(job.id));
      const std::string text = to_json_text(job);
      job = from_json_text(text);  // what a listing will show, from the index as well as from the record
      lines += index_line(records.put(record_file(job.id), text), job);
    }
    batch.commit(false);
    records.commit(true);
  } catch (...) {
    for (const fs::path& path : made) {
      ::rmdir(path.c_str());
    }
    throw;
  }
  append_index(folder_, lines, step_);
  jobs = std::move(added);
}

void Store::update(const std::vector<Job>& jobs) {
  if (jobs.empty()) {
    return;
  }
  step_("lock");
  const FileLock lock(folder_ / "lock", cancel());
  std::vector<Error> errors;
  std::string before;  // index lines that must be on disk before the records change
  std::string after;
  FileBatch batch(folder_, Sync::content, step_);
  for (const Job& news : jobs) {
    try {
      const auto stored = load_record(folder_, news.id);
      if (!stored) {
        continue;
      }
      Job merged = merge_news(stored->job, news, now_seconds());
      Job but_checked = merged;
      but_checked.checked_at = stored->job.checked_at;
      if (but_checked == stored->job &&
          merged.checked_at.value_or(Instant()) - stored->job.checked_at.value_or(Instant()) <
              checked_at_lag) {
        after += index_line(stored->print, merged);
        continue;
      }
      const std::string text = to_json_text(merged);
      merged = from_json_text(text);
      if (is_over(stored->job) && !is_over(merged)) {
        before +=
            index_line(Fingerprint(), merged);  // otherwise unfinished_only would skip the job after a crash
      }
      after += index_line(batch.put(record_file(news.id), text), merged);
    } catch (const Error& error) {
      errors.push_back(error);
    }
  }
  if (!before.empty()) {
    append_index(folder_, before, step_);
  }
  batch.commit(false);
  if (!after.empty()) {
    append_index(folder_, after, step_);
  }
  if (!errors.empty()) {
    throw errors.front();
  }
}

Store::Listing Store::list(Filter filter) const {
  Loaded loaded = load_jobs(folder_, filter);
  if (loaded.stale) {
    // Repair the index if possible without waiting; the data that was read is correct in any case.
    try {
      if (const auto lock = FileLock::try_lock(folder_ / "lock")) {
        loaded = load_and_repair(folder_, step_);
        loaded = filter.lately ? load_jobs(folder_, filter) : std::move(loaded);
      }
    } catch (const Error&) {
      // A store that cannot be written can still be read.
    }
  }
  Listing listing;
  listing.problems = std::move(loaded.problems);
  listing.jobs.reserve(loaded.jobs.size());
  for (StoredJob& stored : loaded.jobs) {
    if (filter.unfinished_only && is_over(stored.job)) {
      continue;
    }
    if (!listing.jobs.empty() && listing.jobs.back().key == stored.job.key) {
      listing.problems.push_back(fmt::format("{}: its key {} belongs to another job; name it by its id",
                                             record_file(stored.job.id).string(), stored.job.key));
    }
    listing.jobs.push_back(std::move(stored.job));
  }
  return listing;
}

void Store::remove(const std::vector<JobId>& ids) {
  if (ids.empty() || ::access(folder_.c_str(), F_OK) != 0) {
    return;
  }
  step_("lock");
  const FileLock lock(folder_ / "lock", cancel());
  const Loaded loaded = load_and_repair(folder_, step_);
  tidy(folder_, loaded, step_);
  for (const JobId& id : ids) {  // the disk may be full, so free space first
    std::error_code ignored;
    for (const char* output : {"complete", "job.out", "job.err"}) {
      fs::remove(job_folder(id) / output, ignored);
    }
  }
  {
    // The records with these keys are about to be removed, so now the mark must be on disk.
    FileBatch batch(folder_, Sync::names, step_);
    batch.put(folder_ / "last_key", fmt::format("{}\n", std::max(loaded.max_key, read_last_key(folder_))));
    batch.commit(false);
  }
  for (const JobId& id : ids) {
    const fs::path removed = folder_ / fmt::format(".removed-{}", id.text());
    step_("rename job folder");
    if (::rename(job_folder(id).c_str(), removed.c_str()) != 0) {
      if (errno == ENOENT) {
        continue;
      }
      throw file_error("remove", job_folder(id), errno);
    }
    step_("remove job folder");
    std::error_code error;
    fs::remove_all(removed, error);
    if (error) {
      throw Error("cannot remove " + removed.string(), error.message(), "remove that folder by hand");
    }
  }
}

FileLock Store::hold_start(const JobId& start_id) const {
  make_folders(folder_ / "starts");
  for (int attempt = 0; attempt < 50; ++attempt) {
    {
      // Take the store's lock, so that tidy() does not unlink the file between its creation and its locking.
      const FileLock lock(folder_ / "lock", cancel());
      if (auto held = FileLock::try_lock(folder_ / "starts" / start_id.text())) {
        return std::move(*held);
      }
    }
    // Another process is checking whether this one is alive, which takes no time, or is starting the same
    // jobs.
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  throw Error(fmt::format("cannot start {}", start_id.text()), "another process is starting the same jobs",
              "wait until it has ended, then list the jobs");
}

bool Store::starter_is_dead(const JobId& start_id) const {
  const UniqueFd fd(::open((folder_ / "starts" / start_id.text()).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    return errno == ENOENT || errno == ENOTDIR;  // if in doubt, do not consider it dead
  }
  // Use a shared lock, so that two processes checking at the same time do not mistake each other for the
  // starter.
  return ::flock(fd.get(), LOCK_SH | LOCK_NB) == 0;
}

}  // namespace remote::jobs
