#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "agent/host/processes.hpp"
#include "agent/job/record.hpp"

namespace remote::agent {

// Excludes other processes that read the stacks of these jobs, because a rank that answers the signal of one
// appears busy to the other. The file `looker` in each job's folder identifies the reading process.
class Looker {
 public:
  // Waits for other processes, at most 20 s in total. `asks`: writes `looker.next` while it waits, which
  // makes a process with a long time between its samples yield.
  Looker(const Host& host, const JobsFolder& folder, const std::vector<std::string>& ids, bool asks = true);
  ~Looker() { release(); }
  Looker(const Looker&) = delete;
  Looker& operator=(const Looker&) = delete;

  // Whether another process asks to look first.
  bool is_asked() const;
  // Lets that process look. Returns when it has, or after 75 s.
  void let_other_look();

 private:
  void acquire(std::chrono::seconds limit, bool asks);
  void release();

  const Host& host_;
  std::vector<Path> folders_{};  // of the jobs
  std::vector<Path> files_{};    // created by this object
};

}  // namespace remote::agent
