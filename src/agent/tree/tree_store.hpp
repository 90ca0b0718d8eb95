#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/host/descriptor.hpp"
#include "agent/job/record.hpp"
#include "agent/tree/tree_list.hpp"

namespace remote::agent {

// The folder .trees of a project (docs/protocol.md, "Trees"). Functions throw std::runtime_error if a folder
// cannot be read. Lock it before changing anything.
class TreeStore {
 public:
  TreeStore(const Host& host, const JobsFolder& folder);

  const Path& project() const { return project_; }
  const Path& jobs() const { return jobs_; }
  const Path& folder() const { return folder_; }
  // The path of the tree or, with a suffix, of one of the files next to it.
  Path path(const std::string& digest, const char* suffix = "") const { return folder_ / (digest + suffix); }
  Path new_path(const std::string& digest) const { return folder_ / (".new." + digest); }
  // The list of the tree's files as it was sent; "" if it is missing.
  std::string read_list(const std::string& digest) const;

  // Waits until no other process uses the folder, at most 5 s unless `is_patient`. Returns false after that,
  // or if `host` is cancelled.
  bool lock(const Host& host, bool is_patient);
  // Whether a job is running in the tree, as far as this machine can see.
  bool is_in_use(const std::string& digest) const;
  // Moves files that ended launches have written to the tree to the project. Does nothing if a job runs there
  // or is going to, unless this process is starting it. Returns "", or the reason of a failure.
  std::string land(const std::string& digest, bool is_starting = false) const;
  // Does the same for all trees except one. Failures are retried by the next call.
  void land_all(const std::string& except = "") const;
  // Removes trees that no job needs, except for one.
  void drop_all(const std::string& except = "") const;
  // Removes trees whose creation or removal was interrupted.
  void drop_new() const;

 private:
  std::vector<std::string> list_trees() const;
  std::vector<std::string> list_users(const std::string& digest) const;
  bool is_young(const Path& path) const;
  bool lives(const std::string& digest, const std::string& job) const;
  bool is_needed(const std::string& digest) const;

  const Host& host_;
  Path project_;
  Path jobs_;
  Path folder_;
  std::string machine_;
  std::string boot_;
  Descriptor lock_{};
};

}  // namespace remote::agent
