#pragma once

#include <cstddef>
#include <vector>

#include "agent/host/descriptor.hpp"
#include "agent/launch/thread_task.hpp"
#include "agent/launch/watched_job.hpp"

namespace remote::agent {

// Checks jobs in a thread, because their files may be on slow storage, while the links still need attention.
class JobLooker {
 public:
  struct Order {
    std::size_t index;
    WatchedJob* job;
    int rank;
  };
  struct Found {
    std::size_t index;
    JobLook look;
  };

  JobLooker();

  bool is_busy() const { return is_busy_; }
  // Readable when the checks are done. Call take() then.
  int fd() const { return wake_.get(); }
  // Must not be called while it is busy.
  void start(std::vector<Order> orders, rules::Seconds now);
  std::vector<Found> take();
  // The start of the last checks.
  rules::Seconds began() const { return began_; }

 private:
  Descriptor wake_;
  bool is_busy_ = false;
  std::vector<Found> found_;
  rules::Seconds began_{0};
  ThreadTask task_;  // must be the last member, because its thread uses the others
};

}  // namespace remote::agent
