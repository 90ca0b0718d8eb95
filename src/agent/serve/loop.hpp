#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include <poll.h>

namespace remote::agent {

// Waits for descriptors, in its own thread or as part of another loop.
class Loop {
 public:
  Loop();
  virtual ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Returns false if no thread can be started. In that case the owner has to call prepare(), poll() and
  // step() repeatedly.
  bool start_thread();
  // Stops the thread. Derived classes must call it in their destructors.
  void stop();
  bool has_thread() const { return thread_.joinable(); }
  void wake() const;

  // Appends the descriptors that step() waits for. Returns how long to wait, in milliseconds; -1: forever.
  int prepare(std::vector<pollfd>& fds);
  void step();

 private:
  // Like prepare(), but without the descriptor for wake().
  virtual int prepare_more(std::vector<pollfd>& fds) = 0;
  virtual void do_step() = 0;
  void run();

  int wake_ = -1;
  std::atomic<bool> is_stopping_ = false;
  std::thread thread_;
};

}  // namespace remote::agent
