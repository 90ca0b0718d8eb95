#pragma once

#include <memory>

namespace remote {

// A cancellation token: it signals to every thread that the user wants to stop. Copies share one state. All
// members are thread-safe; cancel() may also be called from a signal handler. fd() becomes readable on cancel
// and stays readable: include it in every poll(2) that waits.
class Cancel {
 public:
  Cancel();  // a new token, not cancelled

  void cancel() noexcept;
  bool cancelled() const noexcept;
  int fd() const noexcept;
  // Throws Interrupted if cancelled.
  void check() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace remote
