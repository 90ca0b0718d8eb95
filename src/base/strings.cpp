#include "base/strings.hpp"

#include <algorithm>
#include <array>

#include "base/format.hpp"

namespace remote {
std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; !text.empty() && at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    parts.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::size_t at = 0;
  constexpr std::string_view blanks = " \t\r\n";
  while ((at = text.find_first_not_of(blanks, at)) != std::string_view::npos) {
    const std::size_t end = std::min(text.find_first_of(blanks, at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string joined;
  for (const std::string& part : parts) {
    joined.append(&part == parts.data() ? "" : separator).append(part);
  }
  return joined;
}

std::string to_hex(std::span<const unsigned char> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += digits[byte >> 4U];
    text += digits[byte & 15U];
  }
  return text;
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  std::size_t done = 0;
  for (std::size_t at = text.find(from); at != std::string_view::npos; at = text.find(from, done)) {
    result.append(text.substr(done, at - done)).append(to);
    done = at + from.size();
  }
  return result.append(text.substr(done));
}

bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return result;
}

std::optional<unsigned> parse_octal(std::string_view text) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 8);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

std::string counted(std::size_t count, std::string_view thing) {
  return text::format("{} {}{}", count, thing,
                      count == 1                                       ? ""
                      : thing.ends_with("ch") || thing.ends_with("ss") ? "es"
                                                                       : "s");
}

namespace {

// Matches one character against the '?', bracket expression or character at the beginning of the pattern.
// Returns the length of that in the pattern, or 0 if it does not match.
std::size_t match_character(std::string_view pattern, char c) {
  if (pattern.empty()) {
    return 0;
  }
  const bool is_negated = pattern.size() > 1 && (pattern[1] == '!' || pattern[1] == '^');
  const std::size_t first = is_negated ? 2 : 1;
  const std::size_t end = pattern.find(']', first + 1);  // a ']' at the beginning is a literal character
  if (pattern.front() != '[' || end == std::string_view::npos) {
    return pattern.front() == '?' || pattern.front() == c ? 1 : 0;
  }
  const auto code = [](char each) { return static_cast<unsigned char>(each); };
  bool is_in = false;
  for (std::size_t at = first; at < end; ++at) {
    const bool is_range = at + 2 < end && pattern[at + 1] == '-';
    const char last = pattern[is_range ? at + 2 : at];
    is_in = is_in || (code(pattern[at]) <= code(c) && code(c) <= code(last));
    at += is_range ? 2 : 0;
  }
  return is_in == is_negated ? 0 : end + 1;
}

}  // namespace

// Used instead of fnmatch(), which depends on the locale and needs 10 KB in the agent.
bool glob_match(std::string_view pattern, std::string_view name) {
  std::size_t at = 0;
  std::size_t in_name = 0;
  std::size_t star = std::string_view::npos;  // the last '*', and the length of the name that it matches
  std::size_t taken = 0;
  while (in_name < name.size()) {
    const std::string_view rest = pattern.substr(at);
    if (rest.starts_with('*')) {
      star = at++;
      taken = in_name;
    } else if (const std::size_t length = match_character(rest, name[in_name]); length > 0) {
      at += length;
      ++in_name;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      in_name = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == std::string_view::npos;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.size() > 64) {
    return "";  // it is longer than any candidate, and the comparison would be slow
  }
  // Compute the Damerau-Levenshtein distance to each candidate.
  const std::size_t letters = word.size() - std::min(word.find_first_not_of('-'), word.size());
  std::size_t best = std::max<std::size_t>(1, letters / 3) + 1;
  std::string found;
  for (const std::string& candidate : candidates) {
    std::vector<std::vector<std::size_t>> cost(word.size() + 1,
                                               std::vector<std::size_t>(candidate.size() + 1));
    for (std::size_t i = 0; i <= word.size(); ++i) {
      for (std::size_t j = 0; j <= candidate.size(); ++j) {
        if (i == 0 || j == 0) {
          cost[i][j] = i + j;
          continue;
        }
        const std::size_t change = word[i - 1] == candidate[j - 1] ? 0 : 1;
        cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + change});
        if (i > 1 && j > 1 && word[i - 1] == candidate[j - 2] && word[i - 2] == candidate[j - 1]) {
          cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
        }
      }
    }
    if (cost[word.size()][candidate.size()] < best) {
      best = cost[word.size()][candidate.size()];
      found = candidate;
    }
  }
  return found.empty() ? "" : "did you mean '" + found + "'?";
}

std::string last_lines(std::string_view text, std::size_t count) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  std::size_t at = text.size();
  while (count-- > 0 && at != std::string_view::npos && at != 0) {
    at = text.rfind('\n', at - 1);
  }
  return std::string(at == std::string_view::npos || at == 0 ? text : text.substr(at + 1));
}

std::string join_first(const std::vector<std::string>& names, std::size_t most, std::string_view separator) {
  if (names.size() <= most) {
    return join(names, separator);
  }
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(most);
  return join({names.begin(), end}, separator) +
         (separator == ", " ? " and " : std::string(separator) + "and ") +
         std::to_string(names.size() - most) + " more";
}

std::string host_and_port(const std::string& host, int port) {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return (is_ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

void append_end(std::string& text, std::string_view data, std::size_t kept) {
  text += data;
  if (text.size() > 2 * kept) {
    text.erase(0, text.size() - kept);
  }
}

bool looks_secret(std::string_view name) {
  const std::string lower = lower_case(name);
  for (const std::string_view word :
       {"password", "passwd", "passphrase", "secret", "credential", "apikey", "sshpass"}) {
    if (lower.find(word) != std::string::npos) {
      return true;
    }
  }
  // KEY, TOKEN and similar count only as whole words of the name: API_KEY and HF_TOKEN are secrets, KEYBOARD
  // and TOKENIZER are not. Nor are KEY_SIZE and MAX_TOKEN, which are measures.
  const std::vector<std::string> words = split(lower, '_');
  constexpr std::array<std::string_view, 9> measures{"len", "length", "size", "count", "num",
                                                     "max", "min",    "dim",  "type"};
  if (std::ranges::any_of(words, [&](const std::string& word) {
        return std::ranges::find(measures, word) != measures.end();
      })) {
    return false;
  }
  for (const std::string& word : words) {
    if (word.ends_with("token") || word == "key" || word == "keys" || word == "pass" || word == "pwd" ||
        word == "auth" || word == "pat" || word == "sig" || word == "signature") {
      return lower != "pwd" && lower != "oldpwd";
    }
  }
  return false;
}

}  // namespace remote
