#include "project/rank_lines.hpp"

#include <algorithm>

#include "base/strings.hpp"

namespace remote::project {
namespace {

constexpr std::size_t longest_label = 12;

// Whether more input could complete a label.
bool may_become_label(std::string_view text) {
  const std::string_view digits = text.substr(1, text.size() - (text.ends_with(']') ? 2 : 1));
  return text.front() == '[' && text.size() < longest_label &&
         digits.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

std::optional<int> take_label(std::string_view& line) {
  const std::size_t end = line.substr(0, longest_label).find("] ");
  if (!line.starts_with('[') || end == std::string_view::npos) {
    return std::nullopt;
  }
  const auto rank = parse_number<unsigned>(line.substr(1, end - 1));
  if (rank) {
    line.remove_prefix(end + 2);
  }
  return rank;
}

void RankLines::take(std::string_view piece, const Give& give) {
  while (!piece.empty()) {
    if (!within_ && begin_.empty() && piece.front() != '[') {
      within_ = true;
      rank_.reset();
    }
    if (!within_) {
      begin_ += piece.front();
      piece.remove_prefix(1);
      std::string_view line = begin_;
      if ((rank_ = take_label(line))) {
        within_ = true;
        begin_.clear();
      } else if (!may_become_label(begin_)) {
        within_ = !begin_.ends_with('\n');
        give(rank_, begin_);
        begin_.clear();
      }
      continue;
    }
    const std::size_t end = piece.find('\n');
    const std::size_t count = std::min(end, piece.size() - 1) + 1;
    give(rank_, piece.substr(0, count));
    within_ = end == std::string_view::npos;
    piece.remove_prefix(count);
  }
}

void RankLines::finish(const Give& give) {
  if (!begin_.empty()) {
    give(std::nullopt, begin_);
  }
  *this = {};
}

}  // namespace remote::project
