#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "ui/terminal.hpp"

namespace remote::ui {

struct Transfer {
  std::uint64_t bytes = 0;
  std::uint64_t total = 0;  // 0: unknown
  double bytes_per_second = 0;
  std::chrono::seconds left{0};  // 0: unknown
};

// Shows the progress on several servers at once, on stderr. On a terminal, there is one live line per server
// (step, time, progress) at the bottom, and below them the sum of the transfers if there are several;
// finished lines move above them and stay. Otherwise, prints a plain line for the beginning and end of each
// step, without details except waits. With --quiet, only failures are shown. Thread-safe.
class Progress {
 public:
  Progress(Terminal& terminal, std::vector<std::string> names, bool quiet);
  // Removes the live lines. Unfinished steps leave nothing behind.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(std::size_t index, const std::string& name);
  void detail(std::size_t index, const std::string& text, std::optional<double> fraction);
  // A detail that is also printed, once, if lines are not redrawn: the reason for a long wait.
  void wait(std::size_t index, const std::string& text);
  // Replaces the detail until the next step or detail.
  void transfer(std::size_t index, const Transfer& transfer);
  void done(std::size_t index, const std::string& summary);
  // `lines`: the part of the failed command's stderr to show; `log`: the location of the complete log. Both
  // may be empty.
  void failed(std::size_t index, const std::string& reason, const std::string& lines, const std::string& log);

 private:
  using Clock = std::chrono::steady_clock;
  struct Line {
    std::string name;
    std::string step;
    std::string detail;
    std::string waits_for;  // the last printed reason for a wait
    std::optional<double> fraction;
    std::optional<Transfer> transfer;  // the last transfer, kept for the sum
    bool transferring = false;
    Clock::time_point begun = Clock::now();
    Clock::time_point printed = Clock::now();  // if lines are not redrawn: when the transfer was last printed
    bool ended = false;
  };

  static void end_transfer(Line& line);
  void finish(std::size_t index, const std::string& text);
  void redraw_loop();
  std::string draw() const;  // the live lines
  std::string live_line(const Line& line, std::size_t columns) const;
  std::string total_line(std::size_t columns) const;  // empty if there is nothing to add up

  Terminal& terminal_;
  const bool live_;
  const bool quiet_;
  std::size_t name_width_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Line> lines_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace remote::ui
