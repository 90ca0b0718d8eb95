#pragma once

#include <memory>

namespace remote {

// Tells every thread that the user wants to stop. Copies share one state; all members may be called from
// any thread, cancel() also from a signal handler. fd() becomes readable on cancel and stays so: put it into
// every poll(2) that waits.
class Cancel {
 public:
  Cancel();  // a token of its own, not cancelled

  void cancel() noexcept;
  bool cancelled() const noexcept;
  int fd() const noexcept;
  // Throws Interrupted when cancelled.
  void check() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace remote
