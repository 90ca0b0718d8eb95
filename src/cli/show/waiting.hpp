#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "ui/terminal.hpp"

namespace remote::cli {

// While it exists, shows the reason for waiting on a terminal, with the elapsed time, after the first second.
// Other live rows are not allowed at the same time.
class Waiting {
 public:
  // `for_what`: "for 2 servers".
  Waiting(ui::Terminal& terminal, std::string for_what);
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  // Changes the reason. Thread-safe.
  void set(std::string for_what);

 private:
  void watch();

  ui::Terminal& terminal_;
  std::string for_what_;
  bool over_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_;
};

}  // namespace remote::cli
