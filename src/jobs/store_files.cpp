#include "jobs/store_files.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <set>
#include <system_error>
#include <unordered_map>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <remote/error.hpp>
#include <unistd.h>

#include "base/beneath.hpp"
#include "base/files.hpp"
#include "base/hashing.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "jobs/job_json.hpp"

namespace remote::jobs {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t open_files = 100;                        // macOS allows only 256 in total
constexpr std::uint64_t max_record = std::uint64_t{1} << 20U;  // a record has a few hundred bytes
constexpr std::uint64_t max_index = std::uint64_t{256} << 20U;

void sync_folder(const fs::path& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd) {
    ::fsync(fd.get());  // some file systems do not support this; then the rename reaches the disk later
  }
}

// Adds one job to `loaded`, from the index if its line matches the current record, otherwise from the record.
struct Loader {
  const fs::path& folder;
  int folder_fd;
  const Index& index;
  const Store::Filter& filter;
  Loaded& loaded;
  std::size_t known = 0;  // number of jobs in the index
  std::string path{};     // one buffer for all jobs
  // Used with Filter::lately: jobs that are over and ended together.
  struct Ended {
    Instant at{};
    std::vector<std::pair<JobId, const Index::Row*>> jobs;
  };
  std::unordered_map<std::string_view, Ended> ended{};

  void take(const JobId& id) {
    const Index::Row* row = index.find(id);
    if (row != nullptr) {
      ++known;
      loaded.max_key = std::max(loaded.max_key, row->key);
      // A final state never changes, so the record does not have to be checked.
      if (row->print.size != 0 && row->over() && (filter.unfinished_only || filter.lately)) {
        if (filter.lately && (filter.hidden || !row->hidden)) {
          Ended& all = ended[row->group];
          all.at = std::max(all.at, row->end);
          all.jobs.emplace_back(id, row);
        }
        return;
      }
    }
    read(id, row);
  }

  // Adds the requested part of the jobs that are over, after all others were added.
  void take_lately(const EndedLately& wanted) {
    constexpr Instant goes_on = Instant::max();
    for (const StoredJob& stored : loaded.jobs) {
      if (const auto of = ended.find(stored.job.launch.value_or(stored.job.id).text()); of != ended.end()) {
        of->second.at = goes_on;
      }
    }
    std::vector<Instant> ends;
    for (const auto& [group, all] : ended) {
      if (all.at >= wanted.since && all.at != goes_on) {
        ends.push_back(all.at);
      }
    }
    Instant oldest = wanted.since;
    if (wanted.most > 0 && ends.size() > wanted.most) {
      const auto last = ends.begin() + static_cast<std::ptrdiff_t>(wanted.most - 1);
      std::ranges::nth_element(ends, last, std::greater());
      oldest = *last;
    }
    std::size_t earlier = 0;
    for (const auto& [group, all] : ended) {
      earlier += all.at < oldest ? 1 : 0;
      for (std::size_t i = 0; all.at >= oldest && i < all.jobs.size(); ++i) {
        read(all.jobs[i].first, all.jobs[i].second);
      }
    }
    if (wanted.earlier != nullptr) {
      *wanted.earlier = earlier;
    }
  }

  // `row`: the job's row in the index, if there is one.
  void read(const JobId& id, const Index::Row* row) {
    struct stat info {};
    path.assign(id.text()).append("/job.json");
    if (::fstatat(folder_fd, path.c_str(), &info, 0) != 0) {
      if (errno == ENOENT) {
        loaded.bare.push_back(id);
      } else if (errno != ENOTDIR) {
        loaded.problems.push_back(
            fmt::format("{}: {}", record(id.text()), std::generic_category().message(errno)));
      }
      return;
    }
    if (row != nullptr && row->print.matches(Fingerprint::of(info))) {
      if (auto job = Index::job(*row)) {
        add({row->print, std::move(*job), true});
        return;
      }
    }
    try {
      if (auto stored = load_record(folder, id)) {
        loaded.stale = true;
        add(std::move(*stored));
      }
    } catch (const Error& error) {
      loaded.problems.push_back(fmt::format("{}: {}", record(id.text()), error.reason()));
    }
  }

  // A folder with another name is not ours, unless a job's folder was renamed.
  void take_other(const std::string& name) {
    struct stat info {};
    if (::fstatat(folder_fd, (name + "/job.json").c_str(), &info, 0) == 0) {
      loaded.problems.push_back(
          fmt::format("{}: its folder is not named as a job's id (32 hexadecimal digits)", record(name)));
    }
  }

  std::string record(std::string_view name) const { return (folder / name / "job.json").string(); }

  void add(StoredJob stored) {
    loaded.max_key = std::max(loaded.max_key, stored.job.key);
    if (!filter.unfinished_only || !is_over(stored.job)) {
      loaded.jobs.push_back(std::move(stored));
    }
  }
};

}  // namespace

FileBatch::~FileBatch() {
  for (const File& file : files_) {
    if (!file.renamed) {
      ::unlink(file.temporary.c_str());
    }
  }
}

Fingerprint FileBatch::put(const fs::path& path, std::string_view content) {
  step_("write " + path.filename().string());
  File file;
  file.path = path;
  file.temporary = folder_ / fmt::format(".{}.{}.tmp", path.filename().string(), random_hex(8));
  file.fd.reset(::open(file.temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  struct stat info {};
  if (!file.fd || !write_all(file.fd.get(), content) || ::fstat(file.fd.get(), &info) != 0) {
    const Error error = file_error("write", path, errno);
    ::unlink(file.temporary.c_str());
    throw error;
  }
  files_.push_back(std::move(file));
  if (files_.size() - synced_ >= open_files) {
    sync();
  }
  return Fingerprint::of(info);
}

void FileBatch::sync() {
#ifdef __linux__
  // Start writing all of them, so that the first fsync commits them together and the others return quickly.
  for (std::size_t i = synced_; sync_ != Sync::no && i < files_.size(); ++i) {
    if (files_[i].fd) {
      ::sync_file_range(files_[i].fd.get(), 0, 0, SYNC_FILE_RANGE_WRITE);
    }
  }
#endif
  for (; synced_ < files_.size(); ++synced_) {
    File& file = files_[synced_];
    // A missing descriptor means that an earlier sync failed here; a second fsync would not report it.
    if (!file.fd || (sync_ != Sync::no && !sync_to_disk(file.fd.get())) || ::close(file.fd.release()) != 0) {
      const int error = file.fd ? errno : EIO;
      file.fd.reset();
      throw file_error("write", file.path, error);
    }
  }
}

void FileBatch::commit(bool all_or_none) {
  const Stopwatch watch;
  sync();
  try {
    for (File& file : files_) {
      step_("rename " + file.path.filename().string());
      if (::rename(file.temporary.c_str(), file.path.c_str()) != 0) {
        throw file_error("write", file.path, errno);
      }
      file.renamed = true;
    }
  } catch (...) {
    for (const File& file : files_) {
      if (all_or_none && file.renamed) {
        ::unlink(file.path.c_str());
      }
    }
    throw;
  }
  if (sync_ == Sync::names) {
    // Include the parent folders, because these folders may be new.
    std::set<fs::path> folders{folder_, folder_.parent_path()};
    for (const File& file : files_) {
      folders.insert(file.path.parent_path());
    }
    std::ranges::for_each(folders, sync_folder);
  }
  if (watch.seconds() > 0.05) {
    log_info("", "writing {} in {} took {}", counted(files_.size(), "file"), folder_.string(), watch.text());
  }
}

std::optional<StoredJob> load_record(const fs::path& folder, const JobId& id) {
  const fs::path path = folder / id.text() / "job.json";
  const auto fail = [&](const std::string& reason, const std::string& hint = "") {
    return Error("cannot read " + path.string(), reason, hint);
  };
  struct stat info {};
  const UniqueFd fd = open_beneath(folder, path);
  if (!fd) {
    return std::nullopt;
  }
  if (::fstat(fd.get(), &info) != 0) {
    throw file_error("read", path, errno);
  }
  if (static_cast<std::uint64_t>(info.st_size) > max_record) {
    throw fail(fmt::format("it is {} bytes long, far too long for a job record", info.st_size));
  }
  const std::string text = read_rest(fd, path, max_record);
  try {
    StoredJob stored{Fingerprint::of(info), from_json_text(text), false};
    if (stored.job.id != id) {
      throw fail(fmt::format("it is the record of another job ({})", stored.job.id.text()));
    }
    return stored;
  } catch (const Error& error) {
    throw fail(error.reason(), error.hint());
  }
}

Loaded load_jobs(const fs::path& folder, const Store::Filter& filter) {
  Loaded loaded;
  // Read the index first. Jobs that are added later appear as folders that are missing in it.
  const Index index(read_index(folder));
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), ::closedir);
  if (!open) {
    if (errno == ENOENT) {
      return loaded;
    }
    throw file_error("read the folder", folder, errno);
  }
  Loader loader{folder, ::dirfd(open.get()), index, filter, loaded};
  while (const dirent* entry = ::readdir(open.get())) {
    const std::string name = entry->d_name;
    if (entry->d_type == DT_LNK) {
      continue;  // a link to files that are not ours
    }
    if (const auto id = JobId::parse(name)) {
      loader.take(*id);
    } else if (name.starts_with(".removed-") || (name.starts_with(".") && name.ends_with(".tmp"))) {
      loaded.leftovers.push_back(name);
    } else if (!name.starts_with(".") && entry->d_type != DT_REG) {
      loader.take_other(name);
    }
  }
  if (filter.lately) {
    loader.take_lately(*filter.lately);
  }
  loaded.stale = loaded.stale || index.bad() > 0 || index.lines() > 2 * loader.known + 100;
  std::ranges::sort(loaded.jobs, {},
                    [](const StoredJob& stored) { return std::pair(stored.job.key, stored.job.id); });
  std::ranges::sort(loaded.problems);
  return loaded;
}

std::string read_index(const fs::path& folder) {
  try {
    return read_beneath(folder, "index", max_index).value_or("");
  } catch (const Error&) {
    return "";  // if the cache cannot be read, treat it as empty
  }
}

void append_index(const fs::path& folder, const std::string& lines, const Step& step,
                  std::string_view header) {
  step("append index");
  const fs::path path = folder / "index";
  // Do not follow a link, because a copied project may contain one to a file of the user.
  const UniqueFd fd(
      ::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0600));
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return;
  }
  std::string text = lines;
  char last = '\n';
  if (info.st_size == 0) {
    text.insert(0, header);
  } else if (::pread(fd.get(), &last, 1, info.st_size - 1) == 1 && last != '\n') {
    text.insert(0, "\n");  // so that an incomplete line does not damage ours
  }
  write_all(fd.get(), text);
}

void write_index(const fs::path& folder, const std::string& lines, const Step& step,
                 std::string_view header) {
  // Not synced: after a crash of the machine, its checksums show which lines are valid.
  FileBatch batch(folder, Sync::no, step);
  try {
    batch.put(folder / "index", std::string(header) + lines);
    batch.commit(false);
  } catch (const Error& error) {
    log_info("", "{}", error.message());
  }
}

}  // namespace remote::jobs
