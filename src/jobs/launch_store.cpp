#include "jobs/launch_store.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <remote/error.hpp>
#include <remote/verdict.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.hpp"
#include "base/json.hpp"
#include "jobs/job_json.hpp"
#include "jobs/store_files.hpp"

namespace remote::jobs {
namespace fs = std::filesystem;
namespace {

// A record of many thousands of ranks is smaller than this, so a larger file was not written by this program.
constexpr std::uintmax_t most_bytes = 64U << 20U;
constexpr off_t most_tries = 3;

// The names in a folder that are ids; empty if the folder does not exist. Other names are passed to `other`.
std::vector<JobId> ids_in(const fs::path& folder, const std::function<void(const std::string&)>& other = {}) {
  std::vector<JobId> ids;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), ::closedir);
  if (!open && errno != ENOENT && errno != ENOTDIR) {
    throw file_error("read the folder", folder, errno);
  }
  while (const dirent* entry = open ? ::readdir(open.get()) : nullptr) {
    if (entry->d_type == DT_LNK) {
      continue;  // a link to files that are not ours
    }
    if (const auto id = JobId::parse(entry->d_name)) {
      ids.push_back(*id);
    } else if (other) {
      other(entry->d_name);
    }
  }
  return ids;
}

// Sorts pointers first, and then moves each launch only once, because there may be ten thousand.
void newest_first(std::vector<LaunchSummary>& launches) {
  std::vector<LaunchSummary*> order;
  order.reserve(launches.size());
  for (LaunchSummary& one : launches) {
    order.push_back(&one);
  }
  std::ranges::sort(order, std::greater(), [](const LaunchSummary* one) {
    return std::tuple(one->began_at, one->first_key, one->id);
  });
  std::vector<LaunchSummary> sorted;
  sorted.reserve(launches.size());
  for (LaunchSummary* one : order) {
    sorted.push_back(std::move(*one));
  }
  launches = std::move(sorted);
}

}  // namespace

void sum_up(PastLaunch& record) {
  record.servers.clear();
  for (const ServerSetup& server : record.beginning.servers) {
    record.servers.push_back(server.server);
  }
  record.first_key = record.last_key = record.ranks = 0;
  for (const Job& job : record.jobs) {
    record.first_key = record.first_key == 0 ? job.key : std::min(record.first_key, job.key);
    record.last_key = std::max(record.last_key, job.key);
    record.ranks += job.spare ? 0 : ranks_of(job);  // it has the ranks of the server that it replaces
  }
  const Verdict verdict = verdict_of(record.jobs);
  record.state = launch_state(record.jobs, verdict);
  const bool failed = verdict.first && record.state != JobState::succeeded;
  record.failed_rank = failed ? verdict.first->rank : std::nullopt;
  record.result = failed ? verdict.first->result : std::nullopt;
}

LaunchStore::LaunchStore(const Store& store, Store::Step step)
    : store_(store),
      folder_(store.folder() / "launches"),
      step_(step ? std::move(step) : [](std::string_view) {}) {}

void LaunchStore::write(PastLaunch record, const std::string& patch) {
  FileBatch batch(folder_, Sync::names, step_);
  if (!patch.empty()) {
    record.patch = folder(record.id) / "changes.patch";
    batch.put(record.patch, patch);
  }
  sum_up(record);
  const std::string text = dump_json_line(to_json(record)) + "\n";
  const Fingerprint print = batch.put(file(record.id), text);
  batch.commit(false);
  // Parse it again, because JSON does not preserve every byte of a name or note.
  const PastLaunch kept = launch_record_of(nlohmann::ordered_json::parse(text));
  append_index(folder_, index_line(print, kept), step_, launch_index_header);
}

FileLock LaunchStore::lock() const {
  // The timeout is short, because a launch must not wait long for something that is only its record.
  return FileLock(folder_ / "lock", store_.cancel(), std::chrono::seconds(5));
}

void LaunchStore::add(const PastLaunch& record, const std::string& patch) {
  make_folders(folder_ / "open", 0700);
  const FileLock held = lock();
  make_folders(folder(record.id), 0700);
  step_("open");
  const UniqueFd open(::open(mark(record.id).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!open) {
    throw file_error("write", mark(record.id), errno);
  }
  write(record, patch);
}

void LaunchStore::reopen(const JobId& id) {
  make_folders(folder_ / "open", 0700);
  const UniqueFd open(::open(mark(id).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!open) {
    throw file_error("write", mark(id), errno);
  }
}

void LaunchStore::change(const JobId& id, const std::function<void(PastLaunch&)>& edit) {
  std::error_code ignored;
  if (!fs::exists(file(id), ignored)) {
    return;  // do not create the folder just for the lock
  }
  const FileLock held = lock();
  if (auto record = read(id)) {
    edit(*record);
    write(*record, "");
  }
}

std::optional<PastLaunch> LaunchStore::read(const JobId& id) const {
  const auto json = read_own_json(folder_, file(id), launch_record_version, most_bytes);
  if (!json) {
    return std::nullopt;
  }
  std::string reason = "it is not the record of a launch, or of a newer version";
  try {
    if (json->is_object()) {
      PastLaunch record = launch_record_of(*json);
      if (record.id == id) {
        sum_up(record);
        const fs::path patch = folder(id) / "changes.patch";
        record.patch = record.patch.empty() || !open_beneath(folder_, patch) ? fs::path() : patch;
        return record;
      }
    }
  } catch (const nlohmann::json::exception&) {  // reported below
  } catch (const Error& error) {
    reason = error.reason();
  }
  throw Error("cannot read " + file(id).string(), reason, "remove its folder to forget the launch");
}

std::vector<LaunchSummary> LaunchStore::list(std::vector<std::string>* problems) const {
  // Read the index first. Launches that are added later appear as folders that are missing in it.
  const Index index(read_index(folder_), launch_index_header);
  std::vector<std::string> leftovers;
  std::vector<LaunchSummary> launches;
  std::unordered_map<std::string, Fingerprint> prints;  // of the records that were read
  std::size_t known = 0;
  bool stale = index.bad() > 0;
  const std::vector<JobId> ids = ids_in(folder_, [&](const std::string& name) {
    if (name.starts_with(".") && name.ends_with(".tmp")) {
      leftovers.push_back(name);
    }
  });
  const UniqueFd folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  launches.reserve(ids.size());
  for (const JobId& id : ids) {
    struct stat info {};
    if (::fstatat(folder.get(), (id.text() + "/launch.json").c_str(), &info, 0) != 0) {
      continue;
    }
    const Index::Row* row = index.find(id);
    auto launch =
        row != nullptr && row->print.matches(Fingerprint::of(info)) ? Index::launch(*row) : std::nullopt;
    known += launch ? 1 : 0;
    try {
      if (auto record = launch ? std::nullopt : read(id)) {
        stale = true;
        launch = std::move(*record);
        prints[id.text()] = Fingerprint::of(info);
      }
    } catch (const Error& error) {
      if (problems != nullptr) {
        problems->push_back(error.message());
      }
    }
    if (launch) {
      launches.push_back(std::move(*launch));
    }
  }
  newest_first(launches);
  if (!stale && leftovers.empty() && index.lines() <= 2 * known + 100) {
    return launches;
  }
  std::string lines;
  for (const LaunchSummary& one : launches) {
    const auto read = prints.find(one.id.text());
    lines += index_line(read != prints.end() ? read->second : index.find(one.id)->print, one);
  }
  mend_index(lines, leftovers);
  return launches;
}

void LaunchStore::mend_index(const std::string& lines, const std::vector<std::string>& leftovers) const {
  try {
    if (const auto lock = FileLock::try_lock(folder_ / "lock")) {
      for (const std::string& name : leftovers) {
        ::unlink((folder_ / name).c_str());
      }
      write_index(folder_, lines, step_, launch_index_header);
    }
  } catch (const Error&) {
    // A folder that cannot be written can still be read.
  }
}

void LaunchStore::update(PastLaunch& record) const {
  std::vector<Job>& all = record.jobs;
  if (all.empty()) {  // its starter died before it wrote them
    all = store_.list().jobs;
    std::erase_if(all, [&](const Job& job) { return job.launch != record.id; });
    std::ranges::stable_sort(all, {}, [](const Job& job) { return job.rank.value_or(0); });
  }
  for (Job& job : all) {
    try {
      if (auto stored = load_record(store_.folder(), job.id)) {
        job = std::move(stored->job);
      }
    } catch (const Error&) {
      // A listing of the jobs reports the problem.
    }
  }
  sum_up(record);
}

bool LaunchStore::is_stored(const JobId& job) const {
  return ::access((store_.folder() / job.text() / "job.json").c_str(), F_OK) == 0;
}

std::vector<JobId> LaunchStore::open() const {
  return ids_in(folder_ / "open");
}

void LaunchStore::close(const JobId& id) {
  struct stat info {};
  // A larger file was not created by this program.
  if (::lstat(mark(id).c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_size <= most_tries) {
    ::unlink(mark(id).c_str());
  }
}

bool LaunchStore::tried(const JobId& id) const {
  struct stat info {};
  return ::lstat(mark(id).c_str(), &info) == 0 && info.st_size > 0;
}

bool LaunchStore::may_try_again(const JobId& id) {
  const UniqueFd open(::open(mark(id).c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW));
  struct stat info {};
  return open && ::fstat(open.get(), &info) == 0 && S_ISREG(info.st_mode) && info.st_size < most_tries &&
         write_all(open.get(), "?");
}

void LaunchStore::remove(const JobId& id) {
  const FileLock held = lock();
  std::error_code ignored;
  fs::remove_all(folder(id), ignored);
  close(id);
}

}  // namespace remote::jobs
