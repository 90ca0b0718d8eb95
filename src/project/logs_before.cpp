#include "project/logs_before.hpp"

#include <algorithm>
#include <limits>
#include <system_error>

namespace remote::project {
namespace fs = std::filesystem;
namespace {

std::optional<std::uintmax_t> find_size(const fs::path& file) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  return error ? std::nullopt : std::optional(size);
}

}  // namespace

LogsBefore::LogsBefore(const jobs::Store& store, const std::vector<JobId>& ids) : store_(store) {
  for (const JobId& id : ids) {
    for (const char* name : {"job.out", "job.err"}) {
      const fs::path file = store.job_folder(id) / name;
      sizes_.emplace(file, find_size(file));
    }
  }
}

std::uintmax_t LogsBefore::count_missing(const JobId& id, std::uintmax_t out_size,
                                         std::uintmax_t err_size) const {
  const auto missing = [&](const char* name, std::uintmax_t size) {
    const auto here = sizes_.find(store_.job_folder(id) / name);
    const std::uintmax_t before = here == sizes_.end() ? 0 : here->second.value_or(0);
    return size - std::min(size, before);
  };
  return missing("job.out", out_size) + missing("job.err", err_size);
}

void LogsBefore::restore() const {
  std::error_code ignored;
  for (const auto& [file, before] : sizes_) {
    if (!before) {
      fs::remove(file, ignored);
      fs::remove(file.parent_path(), ignored);  // fails unless it is empty
    } else if (find_size(file).value_or(0) > *before) {
      fs::resize_file(file, *before, ignored);
    }
  }
}

namespace {

std::uintmax_t find_free_bytes(const fs::path& folder) {
  std::error_code error;
  const std::uintmax_t free = fs::space(folder, error).available;
  return error ? std::numeric_limits<std::uintmax_t>::max() : free;
}

}  // namespace

FreeSpace::FreeSpace(const fs::path& folder) : FreeSpace(find_free_bytes(folder)) {}

bool FreeSpace::reserve(std::uintmax_t bytes) {
  const std::lock_guard lock(mutex_);
  const bool fits = bytes <= left_;
  left_ -= fits ? bytes : 0;
  return fits;
}

std::uintmax_t FreeSpace::left() const {
  const std::lock_guard lock(mutex_);
  return left_;
}

}  // namespace remote::project
