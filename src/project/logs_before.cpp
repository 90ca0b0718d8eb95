#include "project/logs_before.hpp"

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

LogsBefore::LogsBefore(const jobs::Store& store, const std::vector<JobId>& ids) {
  for (const JobId& id : ids) {
    for (const char* name : {"job.out", "job.err"}) {
      const fs::path file = store.job_folder(id) / name;
      sizes_.emplace(file, find_size(file));
    }
  }
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

}  // namespace remote::project
