#pragma once

#include <string>
#include <vector>

#include "agent/host/processes.hpp"
#include "agent/job/record.hpp"

namespace remote::agent {

// Excludes other processes that read the stacks of these jobs, because a rank that answers the signal of one
// appears busy to the other. The file `looker` in each job's folder identifies the reading process.
class Looker {
 public:
  // Waits for other processes, at most 20 s in total.
  Looker(const Host& host, const JobsFolder& folder, const std::vector<std::string>& ids);
  ~Looker();
  Looker(const Looker&) = delete;
  Looker& operator=(const Looker&) = delete;

 private:
  std::vector<Path> files_{};  // created by this object
};

}  // namespace remote::agent
