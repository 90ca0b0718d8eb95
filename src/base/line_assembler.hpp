#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace remote {

// Makes whole lines out of pieces of a stream, for output of several sources on one screen: each line gets a
// prefix, a progress bar's carriage returns are reduced to the last state (and to its state every
// `bar_every`, for a bar may take an hour), and a line longer than `max_line` is broken so that memory stays
// bounded. Bytes are passed as they are otherwise. One thread.
class LineAssembler {
 public:
  explicit LineAssembler(std::string prefix, std::size_t max_line = std::size_t{64} << 10U,
                         std::chrono::milliseconds bar_every = std::chrono::seconds(5))
      : prefix_(std::move(prefix)), max_line_(max_line), bar_every_(bar_every) {}

  // Takes a piece; returns the lines that are complete now, prefixed, each with its newline, and perhaps the
  // state of a progress bar.
  std::string take(std::string_view piece);
  // What is left at the end of the stream, with a newline; "" when nothing is.
  std::string finish();

 private:
  void emit(std::string& out);

  std::string prefix_;
  std::size_t max_line_;
  std::chrono::milliseconds bar_every_;
  std::chrono::steady_clock::time_point shown_ = std::chrono::steady_clock::now();
  std::string line_;
  bool bar_ = false;             // the line was begun anew behind a '\r'
  std::string shown_state_;      // of the bar
  bool return_pending_ = false;  // a '\r' was seen: the next character but '\n' starts the line anew
};

}  // namespace remote
