#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <remote/job.hpp>

#include "base/files.hpp"
#include "jobs/index.hpp"
#include "jobs/store.hpp"

// Reads and writes the store's files. Only store.cpp and launch_store.cpp use it.

namespace remote::jobs {

using Step = std::function<void(std::string_view)>;

// What a commit waits for. content: the files are on disk, so a power failure leaves either the old or the
// new ones; names: their new names are on disk too; no: a power failure may leave an empty file.
enum class Sync { no, content, names };

// Replaces several files by rename, and waits for the disk only once: all temporary files are written and
// synced before the first rename. Nothing is visible until commit(). The destructor removes uncommitted
// files.
class FileBatch {
 public:
  // Temporary files are created in `folder`, which is the store's, so that tidy() finds those of a killed
  // process.
  FileBatch(std::filesystem::path folder, Sync sync, const Step& step)
      : folder_(std::move(folder)), sync_(sync), step_(step) {}
  ~FileBatch();
  FileBatch(const FileBatch&) = delete;
  FileBatch& operator=(const FileBatch&) = delete;

  // Returns the file's identity. Throws Error with the file's name, in which case the file is not in the
  // batch.
  Fingerprint put(const std::filesystem::path& path, std::string_view content);
  // If it throws Error, the files before the failed one are replaced and the others are not. With
  // `all_or_none`, which is for files that did not exist before, none of them exist then.
  void commit(bool all_or_none);

 private:
  struct File {
    std::filesystem::path path;
    std::filesystem::path temporary;
    UniqueFd fd;
    bool renamed = false;
  };
  void sync();

  std::filesystem::path folder_;
  Sync sync_;
  const Step& step_;
  std::vector<File> files_;
  std::size_t synced_ = 0;
};

struct StoredJob {
  Fingerprint print;
  Job job;
  bool from_index = false;
};

struct Loaded {
  std::vector<StoredJob> jobs;         // sorted by key
  std::vector<std::string> problems;   // like those of Store::Listing
  std::vector<JobId> bare;             // folders without a record, left by a killed process
  std::vector<std::string> leftovers;  // obsolete names in the store's folder
  int max_key = 0;
  bool stale = false;  // the index lacks existing jobs, or has many that do not exist
};

// Reads the store. Skips the records of jobs that the filter excludes and that are over according to the
// index. A missing folder has no jobs. Throws Error if the folder cannot be read.
Loaded load_jobs(const std::filesystem::path& folder, const Store::Filter& filter);

// Reads one record; nullopt if it does not exist. Throws Error with the file's name and the problem.
std::optional<StoredJob> load_record(const std::filesystem::path& folder, const JobId& id);

// The index is a cache, so it is not an error if it cannot be read or written.
std::string read_index(const std::filesystem::path& folder);
void append_index(const std::filesystem::path& folder, const std::string& lines, const Step& step,
                  std::string_view header = index_header);
void write_index(const std::filesystem::path& folder, const std::string& lines, const Step& step,
                 std::string_view header = index_header);

}  // namespace remote::jobs
