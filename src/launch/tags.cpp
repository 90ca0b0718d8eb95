#include "launch/tags.hpp"

#include <algorithm>
#include <array>

#include "base/command.hpp"
#include "base/simple_commands.hpp"
#include "base/strings.hpp"

namespace remote::launch {
namespace {

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

// Whether it is a word of the shell's grammar that precedes a command.
bool precedes_command(std::string_view word) {
  const std::size_t equals = word.find('=');
  const bool assignment = equals != std::string_view::npos && equals > 0 && !word.starts_with('-') &&
                          word.substr(0, equals).find('/') == std::string_view::npos;
  return assignment || is_one_of(word, {"if", "then", "else", "elif", "while", "until", "do", "{", "!",
                                        "time", "exec", "env", "nohup"});
}

// Whether the shell itself runs it, so that it does not describe the job.
bool is_builtin(std::string_view word) {
  return is_one_of(word,
                   {"[",    "[[",    "test",   ":",   "true", "false",  "cd",   "exit",   "return", "export",
                    "set",  "unset", "source", ".",   "echo", "printf", "trap", "ulimit", "umask",  "wait",
                    "read", "shift", "eval",   "for", "case", "done",   "fi",   "esac",   "}"});
}

bool is_shell(std::string_view word) {
  return is_one_of(word.substr(word.rfind('/') + 1), {"sh", "bash", "dash", "zsh"});
}

bool is_program_text(std::string_view word) {
  return word.find_first_of("\n;() ") != std::string_view::npos;
}

void add_tags(std::vector<std::string>& tags, std::string_view line, int depth);

void add_command(std::vector<std::string>& tags, const std::string& command, bool plain, int depth) {
  std::vector<std::string> words = shell_words(mask_command(command));
  while (!plain && !words.empty() && precedes_command(words.front())) {
    words.erase(words.begin());
  }
  if (words.empty() || (!plain && is_builtin(words.front()))) {
    return;
  }
  if (words.size() > 2 && is_shell(words[0]) && words[1].starts_with('-') && words[1].ends_with('c') &&
      depth < 3) {
    return add_tags(tags, words[2], depth + 1);
  }
  const std::size_t before = tags.size();
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const bool code = i > 0 && words[i - 1] == "-c" && is_program_text(word);
    const bool expands = !plain && word.find_first_of("$`*?") != std::string::npos;
    const bool option_of_code = word == "-c" && i + 1 < words.size() && is_program_text(words[i + 1]);
    if ((i == 0 && is_python(word)) || word == secret_mask || code || option_of_code || expands) {
      continue;
    }
    tags.push_back(word);
  }
  if (tags.size() == before && words.size() > 1) {
    tags.push_back(words[0].substr(words[0].rfind('/') + 1));
  }
}

void add_tags(std::vector<std::string>& tags, std::string_view line, int depth) {
  if (is_plain_command(line)) {
    return add_command(tags, std::string(line), true, depth);
  }
  for (const std::string& command : simple_commands(line)) {
    add_command(tags, command, false, depth);
  }
}

}  // namespace

std::vector<std::string> default_tags(std::string_view command, const std::vector<std::string>& extra) {
  std::vector<std::string> all;
  add_tags(all, command, 0);
  all.insert(all.end(), extra.begin(), extra.end());
  std::vector<std::string> tags;
  for (const std::string& tag : all) {
    if (!tag.empty() && std::ranges::find(tags, tag) == tags.end()) {
      tags.push_back(tag);
    }
  }
  return tags;
}

}  // namespace remote::launch
