#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "jobs/store.hpp"

namespace remote::project {

// The sizes of the copies of some jobs' outputs, before more of them is copied.
class LogsBefore {
 public:
  LogsBefore(const jobs::Store& store, const std::vector<JobId>& ids);

  // Removes everything copied since: a failed copy must not keep the disk full.
  void restore() const;

 private:
  std::map<std::filesystem::path, std::optional<std::uintmax_t>> sizes_;  // nullopt: the file does not exist
};

}  // namespace remote::project
