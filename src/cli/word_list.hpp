#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/command.hpp"

// The words of a command line.

namespace remote::cli {

using WordList = std::vector<std::string>;

inline WordList tail_of(const WordList& words, std::size_t count = 1) {
  return {words.begin() + static_cast<std::ptrdiff_t>(std::min(count, words.size())), words.end()};
}

// The first words, without `rest`, which is the end of `words`.
inline WordList head_of(const WordList& words, const WordList& rest) {
  return {words.begin(), words.end() - static_cast<std::ptrdiff_t>(rest.size())};
}

inline WordList joined(WordList words, const WordList& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// The words before the first `word`; all of them if there is none.
inline WordList words_before(const WordList& words, std::string_view word) {
  return {words.begin(), std::ranges::find(words, word)};
}

// "" if there are fewer words.
inline std::string word_at(const WordList& words, std::size_t at) {
  return at < words.size() ? words[at] : "";
}

inline WordList without_mark(const WordList& words) {
  return tail_of(words, word_at(words, 0) == "--" ? 1 : 0);
}

inline bool is_number(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
}

inline bool is_python_program(const WordList& program) {
  return is_python(word_at(program, 0)) || word_at(program, 0).ends_with(".py");
}

// The command with its options, and the program after "--".
inline WordList start_program(const std::string& command, const WordList& options, const WordList& program) {
  const WordList line = joined({command}, options);
  return program.empty() ? line : joined(joined(line, {"--"}), without_mark(program));
}

}  // namespace remote::cli
