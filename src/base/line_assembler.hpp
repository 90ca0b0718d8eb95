#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace remote {

// Assembles whole lines from the pieces of a stream, so that several sources can print on one screen. Each
// line gets a prefix. The carriage returns of a progress bar are reduced to the last state, and to its state
// every `bar_every`, because a bar may take an hour. Lines longer than `max_line` are split, so that memory
// use is bounded. Other bytes are passed unchanged. Not thread-safe.
class LineAssembler {
 public:
  explicit LineAssembler(std::string prefix, std::size_t max_line = std::size_t{64} << 10U,
                         std::chrono::milliseconds bar_every = std::chrono::seconds(5))
      : prefix_(std::move(prefix)), max_line_(max_line), bar_every_(bar_every) {}

  // Adds a piece. Returns the lines that are now complete, each with its prefix and newline, and possibly the
  // state of a progress bar.
  std::string take(std::string_view piece);
  // The rest at the end of the stream, with a newline; "" if there is none.
  std::string finish();

 private:
  void emit(std::string& out);

  std::string prefix_;
  std::size_t max_line_;
  std::chrono::milliseconds bar_every_;
  std::chrono::steady_clock::time_point shown_ = std::chrono::steady_clock::now();
  std::string line_;
  bool bar_ = false;             // the line was restarted after a '\r'
  std::string shown_state_;      // the progress bar's
  bool return_pending_ = false;  // a '\r' was read: unless the next character is '\n', it restarts the line
};

}  // namespace remote
