#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "jobs/store.hpp"

namespace remote::project {

// The sizes of the copies of some jobs' outputs, before more of them is copied.
class LogsBefore {
 public:
  LogsBefore(const jobs::Store& store, const std::vector<JobId>& ids);

  // How many bytes a copy adds if the outputs have these sizes on the server.
  std::uintmax_t count_missing(const JobId& id, std::uintmax_t out_size, std::uintmax_t err_size) const;
  // Removes everything copied since: a failed copy must not keep the disk full.
  void restore() const;

 private:
  const jobs::Store& store_;
  std::map<std::filesystem::path, std::optional<std::uintmax_t>> sizes_;  // nullopt: the file does not exist
};

// The free space of this machine's disk, which copies from several servers share. Any thread.
class FreeSpace {
 public:
  explicit FreeSpace(std::uintmax_t bytes) : left_(bytes) {}
  // The free space of the disk with this folder; without limit if it is unknown.
  explicit FreeSpace(const std::filesystem::path& folder);

  // False, and nothing is reserved, if there is less.
  bool reserve(std::uintmax_t bytes);
  std::uintmax_t left() const;

 private:
  mutable std::mutex mutex_;
  std::uintmax_t left_;
};

}  // namespace remote::project
