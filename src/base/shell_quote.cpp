#include "base/shell_quote.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

#include <remote/error.hpp>

#include "base/strings.hpp"

namespace remote {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Letters, digits, and characters without a special meaning in any shell. '~' and '=' have one at the start
// of a word, so they are quoted; but "--lr=0.1" is an option, not an assignment.
bool is_plain(std::string_view value) {
  const bool option = value.starts_with('-');
  return !value.empty() && std::ranges::all_of(value, [&](char c) {
    return is_letter(c) || is_digit(c) || std::string_view("_-./:,@%+").find(c) != std::string_view::npos ||
           (option && c == '=');
  });
}

}  // namespace

void check_value(std::string_view value) {
  if (value.find('\0') != std::string_view::npos) {
    throw Error::usage("cannot pass a value to a server", "it contains a NUL byte", "take the byte out");
  }
}

std::string shell_quote(std::string_view value) {
  check_value(value);
  if (is_plain(value)) {
    return std::string(value);
  }
  std::string quoted = "'";
  for (const char c : value) {
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return quoted + "'";
}

std::string quote_for_typing(std::string_view value) {
  if (value.find('\n') == std::string_view::npos) {
    return shell_quote(value);
  }
  std::string quoted = "$'";
  for (const char c : value) {
    quoted += c == '\n' ? "\\n" : c == '\'' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
  }
  return quoted + "'";
}

std::string shell_join(std::span<const std::string> words) {
  std::vector<std::string> quoted;
  std::ranges::transform(words, std::back_inserter(quoted), shell_quote);
  return join(quoted, " ");
}

bool is_plain_in_every_shell(std::string_view text) {
  return std::ranges::none_of(text, [](char c) {
    return static_cast<unsigned char>(c) < ' ' || c == '\x7f' ||
           std::string_view("'\"\\$`!").find(c) != std::string_view::npos;
  });
}

void check_variable(const std::string& name) {
  if (name.empty() || is_digit(name.front()) || !std::ranges::all_of(name, is_name_character)) {
    throw Error::usage("cannot set the variable '" + name + "'",
                       "a name has letters, digits and '_', and does not begin with a digit");
  }
  for (const char* read_only : {"BASHOPTS", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID"}) {
    if (name == read_only) {
      throw Error::usage("cannot set the variable '" + name + "'", "bash keeps it read-only",
                         "choose another name");
    }
  }
}

std::string remote_path_word(std::string_view path) {
  if (path == "~" || path.empty()) {
    return "\"$HOME\"";
  }
  if (path.starts_with('/')) {
    return shell_quote(path);
  }
  if (path.starts_with("~/")) {
    path.remove_prefix(2);
  }
  return "\"$HOME\"/" + shell_quote(path);
}

}  // namespace remote
