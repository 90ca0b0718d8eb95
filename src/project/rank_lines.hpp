#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

// Some jobs run several ranks that write into one file, each line of a rank behind "[RANK] "
// (Job::labelled; src/server/python/torch_agent.py, src/agent/mpi/label.hpp). Here alone such a label is
// read.

namespace remote::project {

// The rank that a line says it is of, and takes the label off; nullopt: it is no rank's.
std::optional<int> take_label(std::string_view& line);

// Divides what comes in pieces of any size by ranks. One stream of one job; one thread.
class RankLines {
 public:
  // A line's text without its label, perhaps in several pieces, the last one with its newline.
  using Give = std::function<void(std::optional<int> rank, std::string_view text)>;

  void take(std::string_view piece, const Give& give);
  // The stream has come to its end: what may have been the beginning of a label is none.
  void finish(const Give& give);

 private:
  bool within_ = false;  // a line whose label, if it has one, was read
  std::optional<int> rank_;
  std::string begin_;  // of a line that may have a label
};

}  // namespace remote::project
