#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

// Some jobs run several ranks that write to one file, with "[RANK] " in front of each line of a rank
// (Job::labelled; src/server/python/torch_agent.py, src/agent/mpi/label.hpp). All parsing of these labels is
// here.

namespace remote::project {

// Removes the label from a line and returns its rank; nullopt: the line belongs to no rank.
std::optional<int> take_label(std::string_view& line);

// Splits a stream of one job by rank. The input may come in chunks of any size. Not thread-safe.
class RankLines {
 public:
  // Receives the text of a line without its label, possibly in several pieces; the last one ends with a
  // newline.
  using Give = std::function<void(std::optional<int> rank, std::string_view text)>;

  void take(std::string_view piece, const Give& give);
  // The stream has ended: a partial label is treated as text.
  void finish(const Give& give);

 private:
  bool within_ = false;  // in a line whose label, if any, was already read
  std::optional<int> rank_;
  std::string begin_;  // start of a line that may have a label
};

}  // namespace remote::project
