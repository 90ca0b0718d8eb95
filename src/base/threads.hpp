#pragma once

#include <thread>

#include <remote/cancel.hpp>

namespace remote {

// std::jthread without a stop token: the C++ library of a Mac has none.
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

// Declared after the threads that the token stops, it cancels before they are joined.
struct CancelAtEnd {
  Cancel& token;
  ~CancelAtEnd() { token.cancel(); }
};

}  // namespace remote
