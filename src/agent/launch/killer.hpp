#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "agent/host/descriptor.hpp"
#include "agent/job/record.hpp"

namespace remote::agent {

// Stops jobs in a forked process, so that a supervisor can keep watching the other servers.
class Killer {
 public:
  explicit Killer(const JobsFolder& folder) : folder_(folder) {}

  bool is_running() const { return pid_ > 0; }
  // Readable when the process has exited; -1 if none is running.
  int fd() const { return end_.get(); }
  // Stops the jobs with TERM and, after 5 s of grace, KILL. `by` is as in run_stop(). Must not be called
  // while it is running.
  void start(const std::string& by, const std::vector<std::string>& ids);
  // nullopt while it is running. Afterwards, whether no process of the jobs is left.
  std::optional<bool> check_end();

 private:
  const JobsFolder& folder_;
  Descriptor end_;
  pid_t pid_ = -1;
};

}  // namespace remote::agent
