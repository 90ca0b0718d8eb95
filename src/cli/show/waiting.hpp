#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "ui/terminal.hpp"

namespace remote::cli {

// Says on a terminal that a command still waits, and how long, from the first second on, as long as the
// object lives. Nothing else may have live rows meanwhile.
class Waiting {
 public:
  // `for_what`: "for 2 servers".
  Waiting(ui::Terminal& terminal, std::string for_what);
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  // From now on it is for this. Any thread.
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
