#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace remote {

// Cuts bytes that come in pieces of any size into lines. They end with '\n' or '\r', as what programs print
// about their progress does. A line is cut off after `longest` bytes. One thread.
class LineCutter {
 public:
  static constexpr std::size_t longest = 65536;

  // A line that begins with `mark` ends only at '\n'. With an empty mark every line ends at both.
  explicit LineCutter(std::string_view mark = {}) : mark_(mark) {}

  // Calls take(std::string_view) for every line that has come to its end, without that end.
  template <typename Take>
  void add(std::string_view data, const Take& take) {
    while (!data.empty()) {
      const std::size_t end = data.find_first_of("\r\n");
      append(data.substr(0, end));
      if (end == std::string_view::npos) {
        return;
      }
      if (data[end] == '\r' && marked()) {
        append("\r");
      } else {
        const std::string line = std::move(line_);
        line_.clear();
        take(std::string_view(line));
      }
      data.remove_prefix(end + 1);
    }
  }
  // What came after the last line's end.
  std::string_view rest() const { return line_; }

 private:
  bool marked() const { return !mark_.empty() && line_.starts_with(mark_); }
  void append(std::string_view data) { line_ += data.substr(0, longest - std::min(line_.size(), longest)); }

  std::string_view mark_;
  std::string line_;
};

}  // namespace remote
