#pragma once

#include <string>
#include <string_view>

namespace remote::project {

// The lines of one rank out of what an agent of torchrun writes, where each line of a rank stands behind
// "[RANK] " (src/server/torch_agent.py). The label is taken away; lines without one are the agent's own, and
// stay. One stream of one job; one thread.
class RankLines {
 public:
  explicit RankLines(int rank);
  // What is to be shown of this piece.
  std::string take(std::string_view piece);
  // The same of what may have been the beginning of a label when the stream came to its end.
  std::string finish();

 private:
  enum class Line { begins, shown, hidden };

  std::string label_;
  Line line_ = Line::begins;
  std::string begin_;  // of a line that may have a label
};

// How long the label is that stands before a line of a rank; 0: there is none.
std::size_t label_length(std::string_view line);

}  // namespace remote::project
