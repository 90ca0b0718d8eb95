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

// How the store's files are written and read. Only store.cpp and launch_store.cpp use it.

namespace remote::jobs {

using Step = std::function<void(std::string_view)>;

// What a commit waits for. content: the disk has the files, so that a power failure leaves the old or the
// new; names: it has their new names as well; no: a power failure may leave an empty file.
enum class Sync { no, content, names };

// Replaces several files, each by rename, and waits for the disk only once: all temporary files are written
// and synced before the first rename. Nothing is visible until commit(); the destructor removes what was not
// committed.
class FileBatch {
 public:
  // Temporary files are made in `folder` (the store's: there tidy() finds those of a killed process).
  FileBatch(std::filesystem::path folder, Sync sync, const Step& step)
      : folder_(std::move(folder)), sync_(sync), step_(step) {}
  ~FileBatch();
  FileBatch(const FileBatch&) = delete;
  FileBatch& operator=(const FileBatch&) = delete;

  // Returns the file's identity. Throws Error that names the file, which is then not in the batch.
  Fingerprint put(const std::filesystem::path& path, std::string_view content);
  // When it throws Error, the files before the failing one are replaced, and the others are not. With
  // `all_or_none`, which is for files that were not there before, none is there then.
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
  std::vector<StoredJob> jobs;         // by key
  std::vector<std::string> problems;   // as Store::Listing's
  std::vector<JobId> bare;             // folders without a record: left by a process that was killed
  std::vector<std::string> leftovers;  // names in the store's folder that nobody needs any more
  int max_key = 0;
  bool stale = false;  // the index lacks something that is there, or has much that is not
};

// Reads the store. What the filter leaves out is not looked at where the index says that it is over. A folder
// that is not there has no jobs. Throws Error when the folder cannot be read.
Loaded load_jobs(const std::filesystem::path& folder, const Store::Filter& filter);

// Reads one record. Throws Error whose message names the file and says what is wrong; nullopt: not there.
std::optional<StoredJob> load_record(const std::filesystem::path& folder, const JobId& id);

// The index is a cache: not being able to read or write it is no error.
std::string read_index(const std::filesystem::path& folder);
void append_index(const std::filesystem::path& folder, const std::string& lines, const Step& step,
                  std::string_view header = index_header);
void write_index(const std::filesystem::path& folder, const std::string& lines, const Step& step,
                 std::string_view header = index_header);

}  // namespace remote::jobs
