#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "base/files.hpp"

namespace remote::servers {

// Threads wait here for each other, any number of times, but not for those that have left. Any thread.
class Barrier {
 public:
  explicit Barrier(std::size_t members);

  // A place in it, for one thread; gives it up when it goes.
  class Member {
   public:
    Member(Barrier& barrier, std::size_t index) : barrier_(barrier), index_(index) {}
    ~Member() { barrier_.leave(round_); }
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

    // This thread has reached the next point.
    void arrive();
    // Whether all other members have reached it.
    bool complete();
    // Readable from that moment on, until complete() is asked.
    int wake() const { return barrier_.pipes_[index_].read.get(); }

   private:
    Barrier& barrier_;
    std::size_t index_;
    std::size_t round_ = 0;
  };

 private:
  void leave(std::size_t round);
  void check();  // with the lock held

  std::mutex mutex_;
  std::vector<Pipe> pipes_;
  std::size_t members_;
  std::size_t arrived_ = 0;
  std::size_t round_ = 0;
};

}  // namespace remote::servers
