#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "jobs/store.hpp"

namespace remote::project {

// The sizes of the local copies of some jobs' outputs before more is copied.
class LogsBefore {
 public:
  LogsBefore(const jobs::Store& store, const std::vector<JobId>& ids);

  // Number of bytes that a copy adds if the outputs have these sizes on the server.
  std::uintmax_t count_missing(const JobId& id, std::uintmax_t out_size, std::uintmax_t err_size) const;
  // Removes everything copied since then: a failed copy must not fill the disk.
  void restore() const;

 private:
  const jobs::Store& store_;
  std::map<std::filesystem::path, std::optional<std::uintmax_t>> sizes_;  // nullopt: the file does not exist
};

// Free space on this machine's disk, shared by copies from several servers. Thread-safe.
class FreeSpace {
 public:
  explicit FreeSpace(std::uintmax_t bytes) : left_(bytes) {}
  // The free space of the disk with this folder; unlimited if unknown.
  explicit FreeSpace(const std::filesystem::path& folder);

  // Returns false, without reserving anything, if less is available.
  bool reserve(std::uintmax_t bytes);
  std::uintmax_t left() const;

 private:
  mutable std::mutex mutex_;
  std::uintmax_t left_;
};

}  // namespace remote::project
