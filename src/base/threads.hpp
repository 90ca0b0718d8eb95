#pragma once

#include <thread>

#include <remote/cancel.hpp>

namespace remote {

// Like std::jthread, which macOS's C++ library lacks, but without a stop token.
class JoiningThread : public std::thread {
 public:
  using std::thread::thread;
  JoiningThread(JoiningThread&&) = default;
  JoiningThread& operator=(JoiningThread&&) = default;
  ~JoiningThread() {
    if (joinable()) {
      join();
    }
  }
};

// Cancels the token in its destructor. If it is declared after the threads that the token stops, it cancels
// before they are joined.
struct CancelAtEnd {
  Cancel& token;
  ~CancelAtEnd() { token.cancel(); }
};

}  // namespace remote
