#include "base/shell_quote.hpp"

#include <algorithm>

#include <remote/error.hpp>

namespace remote {
namespace {

bool is_plain(char c) {
  // Only ASCII letters and digits and marks that no shell gives a meaning to, in any position but the first
  // ('~' and '=' are left out: both have a meaning at the start of a word).
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_-./:,@%+").find(c) != std::string_view::npos;
}

}  // namespace

std::string shell_quote(std::string_view value) {
  if (value.find('\0') != std::string_view::npos) {
    throw Error::usage("cannot pass a value to a server", "it contains a NUL byte");
  }
  if (!value.empty() && std::all_of(value.begin(), value.end(), is_plain)) {
    return std::string(value);
  }
  std::string quoted = "'";
  for (const char c : value) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  quoted += '\'';
  return quoted;
}

std::string shell_join(std::span<const std::string> words) {
  std::string joined;
  for (const std::string& word : words) {
    if (!joined.empty()) {
      joined += ' ';
    }
    joined += shell_quote(word);
  }
  return joined;
}

void check_variable(const std::string& name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto good = [&](char c) { return letter(c) || (c >= '0' && c <= '9'); };
  if (name.empty() || !letter(name.front()) || !std::ranges::all_of(name, good)) {
    throw Error::usage("cannot set the variable '" + name + "'",
                       "a name has letters, digits and '_', and does not begin with a digit");
  }
  for (const char* read_only : {"BASHOPTS", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID"}) {
    if (name == read_only) {
      throw Error::usage("cannot set the variable '" + name + "'", "bash keeps it read-only");
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
