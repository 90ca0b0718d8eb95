#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "agent/host/descriptor.hpp"
#include "agent/job/record.hpp"

namespace remote::agent {

// Stops jobs in a forked process, so that a supervisor can watch the other servers meanwhile.
class Killer {
 public:
  explicit Killer(const JobsFolder& folder) : folder_(folder) {}

  bool is_running() const { return pid_ > 0; }
  // Readable when the process has ended; -1 while none runs.
  int fd() const { return end_.get(); }
  // Stops the jobs by TERM and, after 5 s of grace, KILL. `by`: as of run_stop(). Call it only while none
  // runs.
  void start(const std::string& by, const std::vector<std::string>& ids);
  // nullopt while it runs. Else whether no process of the jobs is left.
  std::optional<bool> check_end();

 private:
  const JobsFolder& folder_;
  Descriptor end_;
  pid_t pid_ = -1;
};

}  // namespace remote::agent
