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

// How far a transfer is.
struct Transfer {
  std::uint64_t bytes = 0;
  std::uint64_t total = 0;  // 0: not known
  double bytes_per_second = 0;
  std::chrono::seconds left{0};  // 0: not known
};

// What goes on with several servers side by side, on stderr. On a terminal: one live line a server (step,
// time, progress) at the bottom, and below them the sum of what is on its way to several of them; lines that
// are finished move above them and stay. Elsewhere: a plain line for each step that begins and ends, and none
// of the details. All functions may be called from any thread. With --quiet only failures are shown.
class Progress {
 public:
  Progress(Terminal& terminal, std::vector<std::string> names, bool quiet);
  // Takes the live lines away; what was not finished leaves nothing behind.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(std::size_t index, const std::string& name);
  void detail(std::size_t index, const std::string& text, std::optional<double> fraction);
  // Takes the place of the detail until the next step or detail.
  void transfer(std::size_t index, const Transfer& transfer);
  void done(std::size_t index, const std::string& summary);
  // `lines`: what to show of the failed command's stderr; `log`: where all of it is. Both may be empty.
  void failed(std::size_t index, const std::string& reason, const std::string& lines, const std::string& log);

 private:
  using Clock = std::chrono::steady_clock;
  struct Line {
    std::string name;
    std::string step;
    std::string detail;
    std::optional<double> fraction;
    std::optional<Transfer> transfer;  // the last one; it stays for the sum
    bool transferring = false;
    Clock::time_point begun = Clock::now();
    Clock::time_point printed = Clock::now();  // where lines are not redrawn: the last one about the transfer
    bool ended = false;
  };

  static void end_transfer(Line& line);
  void finish(std::size_t index, const std::string& text);
  void redraw_loop();
  std::string draw() const;  // the live lines
  std::string live_line(const Line& line, std::size_t columns) const;
  std::string total_line(std::size_t columns) const;  // empty when there is nothing to sum up

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
