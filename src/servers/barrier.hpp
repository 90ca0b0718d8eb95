#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "base/files.hpp"

namespace remote::servers {

// A reusable barrier for threads. It does not wait for members that have left. Thread-safe.
class Barrier {
 public:
  explicit Barrier(std::size_t members);

  // One thread's membership. The destructor leaves the barrier.
  class Member {
   public:
    Member(Barrier& barrier, std::size_t index) : barrier_(barrier), index_(index) {}
    ~Member() { barrier_.leave(round_); }
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

    // Call it when this thread has reached the next point.
    void arrive();
    // Whether all other members have reached it.
    bool complete();
    // Readable once complete() would return true, until complete() is called.
    int wake() const { return barrier_.pipes_[index_].read.get(); }

   private:
    Barrier& barrier_;
    std::size_t index_;
    std::size_t round_ = 0;
  };

 private:
  void leave(std::size_t round);
  void check();  // the caller must hold the lock

  std::mutex mutex_;
  std::vector<Pipe> pipes_;
  std::size_t members_;
  std::size_t arrived_ = 0;
  std::size_t round_ = 0;
};

}  // namespace remote::servers
