#include "base/strings.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/format.h>
#include <fnmatch.h>
#include <unistr.h>

namespace remote {
namespace {

bool is_control(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0);
}

bool changes_direction(char32_t code) {
  return (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

std::string visible(std::string_view text, std::size_t longest, std::string_view kept) {
  if (text.size() <= longest && std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; })) {
    return std::string(text);  // almost all of the cells of a table
  }
  std::string shown;
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) {
    if (count == longest) {
      return shown + "…";
    }
    const Utf8Char c = utf8_at(text, at);
    const std::string_view bytes = text.substr(at, c.length);
    if (c.code >= ' ' && c.code < 0x7F && c.valid) {
      shown += text[at];
    } else if (!c.valid) {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(bytes[0]));
    } else if (kept.find(bytes) != std::string_view::npos ||
               (!is_control(c.code) && !changes_direction(c.code))) {
      shown += bytes;
    } else if (c.code == '\n' || c.code == '\t' || c.code == '\r') {
      shown += c.code == '\n' ? "\\n" : c.code == '\t' ? "\\t" : "\\r";
    } else if (is_control(c.code)) {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned>(c.code));
    } else {
      shown += fmt::format("\\u{:04x}", static_cast<unsigned>(c.code));
    }
    at += c.length;
  }
  return shown;
}

}  // namespace

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
  return fmt::format("{}", fmt::join(parts, separator));
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

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return result;
}

std::string counted(std::size_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : thing.ends_with("ch") ? "es" : "s");
}

bool glob_match(const std::string& pattern, const std::string& name) {
  return ::fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.size() > 64) {
    return "";  // longer than any candidate, and comparing takes long
  }
  // The Damerau-Levenshtein distance to each.
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

void append_end(std::string& text, std::string_view data) {
  constexpr std::size_t kept = 65536;
  text += data;
  if (text.size() > 2 * kept) {
    text.erase(0, text.size() - kept);
  }
}

Utf8Char utf8_at(std::string_view text, std::size_t at) {
  if (const auto byte = static_cast<unsigned char>(text[at]); byte < 0x80) {
    return {byte, 1, true};  // a list of ten thousand lines is a million of these
  }
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  ucs4_t code = 0;
  const int length = ::u8_mbtoucr(&code, bytes + at, text.size() - at);
  return length > 0 ? Utf8Char{code, static_cast<std::size_t>(length), true} : Utf8Char{};
}

std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  const std::uint8_t* bad = ::u8_check(bytes, text.size());
  return bad == nullptr ? std::nullopt : std::optional(static_cast<std::size_t>(bad - bytes));
}

std::string visible_line(std::string_view text, std::size_t longest) {
  return visible(text, longest, "");
}

std::string visible_text(std::string_view text, std::size_t longest) {
  return visible(text, longest, "\n\t");
}

bool looks_secret(std::string_view name) {
  const std::string lower = lower_case(name);
  for (const std::string_view word :
       {"password", "passwd", "passphrase", "secret", "credential", "apikey", "sshpass"}) {
    if (lower.find(word) != std::string::npos) {
      return true;
    }
  }
  // KEY, TOKEN and such only as whole words of the name: API_KEY and HF_TOKEN are secrets, KEYBOARD and
  // TOKENIZER are none; nor are KEY_SIZE and MAX_TOKEN, which count something.
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
        word == "auth" || word == "pat") {
      return lower != "pwd" && lower != "oldpwd";
    }
  }
  return false;
}

}  // namespace remote
