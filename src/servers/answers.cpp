#include "servers/answers.hpp"

#include <algorithm>

#include "base/strings.hpp"

namespace remote::servers {
namespace {

constexpr std::string_view answer_mark = "@remote1 ";
constexpr std::size_t max_line = 16384;  // longer than any path
constexpr std::size_t max_answers = 1'000'000;

}  // namespace

void Answers::add(std::string_view data) {
  for (const char c : data) {
    if (c == '\n' || c == '\r') {
      take_line();
      line_.clear();
    } else if (line_.size() < max_line) {
      line_ += c;
    }
  }
}

void Answers::take_line() {
  if (!line_.starts_with(answer_mark)) {
    other_(line_);
    return;
  }
  if (lines_.size() >= max_answers) {
    return;
  }
  const std::string_view text = trim(std::string_view(line_).substr(answer_mark.size()));
  const std::size_t space = text.find(' ');
  lines_.emplace_back(text.substr(0, space), space == std::string_view::npos ? "" : text.substr(space + 1));
  if (lines_.back().first == "step") {
    other_(lines_.back().second);
  }
}

std::vector<std::string> Answers::all(std::string_view word) const {
  std::vector<std::string> values;
  for (const auto& [name, value] : lines_) {
    if (name == word) {
      values.push_back(value);
    }
  }
  return values;
}

std::string Answers::last(std::string_view word) const {
  const auto values = all(word);
  return values.empty() ? std::string() : values.back();
}

bool Answers::has(std::string_view word, std::string_view value) const {
  return std::ranges::any_of(lines_,
                             [&](const auto& line) { return line.first == word && line.second == value; });
}

}  // namespace remote::servers
