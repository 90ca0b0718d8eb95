#include "project/rank_lines.hpp"

#include <utility>

#include <fmt/format.h>

namespace remote::project {
namespace {

constexpr std::size_t longest_label = 12;

// Whether more may make a label of it.
bool may_become_label(std::string_view text) {
  if (text.empty()) {
    return true;
  }
  std::string_view digits = text.substr(1);
  if (text.ends_with(']')) {
    digits.remove_suffix(1);
  }
  return text.front() == '[' && text.size() < longest_label &&
         digits.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

std::size_t label_length(std::string_view line) {
  const std::size_t end = line.substr(0, longest_label).find("] ");
  const bool is_label = line.starts_with('[') && end != std::string_view::npos && end > 1 &&
                        line.substr(1, end - 1).find_first_not_of("0123456789") == std::string_view::npos;
  return is_label ? end + 2 : 0;
}

RankLines::RankLines(int rank) : label_(fmt::format("[{}] ", rank)) {}

std::string RankLines::take(std::string_view piece) {
  std::string shown;
  while (!piece.empty()) {
    if (line_ == Line::begins) {
      begin_ += piece.front();
      piece.remove_prefix(1);
      if (const std::size_t length = label_length(begin_); length > 0) {
        line_ = begin_ == label_ ? Line::shown : Line::hidden;
        begin_.clear();
      } else if (!may_become_label(begin_)) {
        line_ = begin_.ends_with('\n') ? Line::begins : Line::shown;
        shown += begin_;
        begin_.clear();
      }
      continue;
    }
    const std::size_t end = piece.find('\n');
    const std::size_t count = end == std::string_view::npos ? piece.size() : end + 1;
    if (line_ == Line::shown) {
      shown += piece.substr(0, count);
    }
    line_ = end == std::string_view::npos ? line_ : Line::begins;
    piece.remove_prefix(count);
  }
  return shown;
}

std::string RankLines::finish() {
  line_ = Line::begins;
  return std::exchange(begin_, {});
}

}  // namespace remote::project
