#include "launch/command.hpp"

#include <algorithm>
#include <cctype>

#include "base/strings.hpp"

namespace remote::launch {
namespace {

constexpr std::string_view blanks = " \t\r\n";

// One word of a command: where it stands, and what the shell would make of it.
struct Word {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string text;
};

std::vector<Word> read_words(std::string_view command) {
  std::vector<Word> words;
  std::size_t at = 0;
  while ((at = command.find_first_not_of(blanks, at)) != std::string_view::npos) {
    Word word;
    word.begin = at;
    char quote = 0;
    for (; at < command.size(); ++at) {
      const char c = command[at];
      if (quote == 0 && blanks.find(c) != std::string_view::npos) {
        break;
      }
      if (c == '\\' && quote != '\'' && at + 1 < command.size()) {
        word.text += command[++at];
      } else if (quote != 0 && c == quote) {
        quote = 0;
      } else if (quote == 0 && (c == '\'' || c == '"')) {
        quote = c;
      } else {
        word.text += c;
      }
    }
    word.end = at;
    words.push_back(std::move(word));
  }
  return words;
}

// The name in "--api-key", "api_key" or "API-KEY", as looks_secret takes it.
bool names_secret(std::string_view word) {
  std::string name(word.substr(std::min(word.find_first_not_of('-'), word.size())));
  std::replace(name.begin(), name.end(), '-', '_');
  std::replace(name.begin(), name.end(), '.', '_');
  return looks_secret(name);
}

// How a word is shown: as it is, with what is behind its '=' masked, or masked whole.
struct Shown {
  std::string text;
  bool masked = false;
};

Shown show_word(const std::vector<Word>& words, std::size_t i) {
  const std::string& text = words[i].text;
  const std::size_t equals = text.find('=');
  if (equals != std::string::npos && equals > 0 && names_secret(text.substr(0, equals))) {
    return {text.substr(0, equals + 1) + std::string(secret_mask), true};
  }
  if (i > 0 && !text.starts_with("-")) {
    const std::string& before = words[i - 1].text;
    if (before.starts_with("-") && before.find('=') == std::string::npos && names_secret(before)) {
      return {std::string(secret_mask), true};
    }
  }
  return {text, false};
}

}  // namespace

std::vector<std::string> shell_words(std::string_view command) {
  std::vector<std::string> words;
  for (Word& word : read_words(command)) {
    words.push_back(std::move(word.text));
  }
  return words;
}

std::size_t first_word_length(std::string_view command) {
  const auto words = read_words(command);
  return words.empty() ? command.size() : words.front().end;
}

bool is_python(std::string_view word) {
  if (const std::size_t slash = word.rfind('/'); slash != std::string_view::npos) {
    word.remove_prefix(slash + 1);
  }
  return word.starts_with("python") && word.find_first_not_of("0123456789.", 6) == std::string_view::npos;
}

bool is_plain_command(std::string_view command) {
  char quote = 0;
  for (std::size_t at = 0; at < command.size(); ++at) {
    const char c = command[at];
    if (c == '\\' && quote != '\'') {
      ++at;
    } else if (quote != 0) {
      quote = c == quote ? '\0' : quote;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (std::string_view("|&;<>()\n").find(c) != std::string_view::npos) {
      return false;
    } else if (c == '#' && (at == 0 || blanks.find(command[at - 1]) != std::string_view::npos)) {
      return false;  // a comment would swallow what is put behind
    }
  }
  const auto words = read_words(command);
  if (quote != 0 || words.empty()) {
    return false;
  }
  const std::string& first = words.front().text;
  const std::size_t equals = first.find('=');
  const bool assignment = equals != std::string::npos && equals > 0 &&
                          std::all_of(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(equals),
                                      [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
  return !assignment;
}

std::string with_python(const std::string& command) {
  const auto words = read_words(command);
  if (words.empty() || (!words.front().text.ends_with(".py") && !words.front().text.starts_with("-"))) {
    return command;
  }
  return "python " + command.substr(words.front().begin);
}

std::vector<std::string> default_tags(std::string_view command, const std::vector<std::string>& extra) {
  const auto words = read_words(command);
  std::vector<std::string> tags;
  const auto add = [&](const std::string& tag) {
    if (!tag.empty() && std::find(tags.begin(), tags.end(), tag) == tags.end()) {
      tags.push_back(tag);
    }
  };
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string shown = show_word(words, i).text;
    if ((i > 0 || !is_python(words[i].text)) && shown != secret_mask) {
      add(shown);
    }
  }
  for (const std::string& tag : extra) {
    add(tag);
  }
  return tags;
}

std::string mask_command(std::string_view command) {
  const auto words = read_words(command);
  std::string shown;
  std::size_t at = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (const Shown word = show_word(words, i); word.masked) {
      shown += command.substr(at, words[i].begin - at);
      shown += word.text;
      at = words[i].end;
    }
  }
  shown += command.substr(at);
  return shown;
}

}  // namespace remote::launch
