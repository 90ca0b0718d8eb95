#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace remote {

// Splits at the separators; "a,,b" has three pieces. An empty text has none.
std::vector<std::string> split(std::string_view text, char separator);
// Splits at runs of spaces, tabs and newlines.
std::vector<std::string> split_words(std::string_view text);
std::string_view trim(std::string_view text);
// ASCII only.
bool is_alphanumeric(char c);
// Changes only ASCII letters.
std::string lower_case(std::string_view text);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
// Two lower-case digits for each byte.
std::string to_hex(std::span<const unsigned char> bytes);
// `from` must not be empty.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);
// "1 job", "3 jobs".
std::string counted(std::size_t count, std::string_view thing);

// Whether the pattern matches the whole name: * ? [abc] [a-z] [!a]. '/', '\\' and a leading '.' are ordinary
// characters, and so is a '[' without a ']', so every pattern is valid.
bool glob_match(std::string_view pattern, std::string_view name);

// "did you mean 'X'?", where X is the candidate closest to `word`, if it is close enough to be a likely typo;
// otherwise "".
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

// Parses a text that consists only of a decimal number.
template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) {
    return std::nullopt;
  }
  return value;
}

// Like parse_number(), for octal numbers.
std::optional<unsigned> parse_octal(std::string_view text);

// The last `count` lines of a text, without a trailing newline.
std::string last_lines(std::string_view text, std::size_t count);

// Appends to a text of which only the end is needed. Keeps between `kept` and twice as many bytes.
void append_end(std::string& text, std::string_view data, std::size_t kept = 65536);

// "a, b, c and 4 more", with at most `most` names.
std::string join_first(const std::vector<std::string>& names, std::size_t most,
                       std::string_view separator = ", ");

// "host:port", or "[::1]:port" for an IPv6 address.
std::string host_and_port(const std::string& host, int port);

// Whether it can be part of a name in C, Python or a shell: an ASCII letter, a digit or an underscore.
bool is_name_character(char c);

// Splits bytes, in pieces of any size, into lines that end with '\n' or '\r', which programs print for
// progress. A line is cut off after `longest` bytes. Not thread-safe.
class LineCutter {
 public:
  static constexpr std::size_t longest = 65536;

  // A line that starts with `mark` ends only at '\n'. If the mark is empty, every line ends at both.
  explicit LineCutter(std::string_view mark = {}) : mark_(mark) {}

  // Calls take(std::string_view) for every complete line, without its line end.
  template <typename Take>
  void add(std::string_view data, const Take& take) {
    while (!data.empty()) {
      const std::size_t end = data.find_first_of("\r\n");
      append(data.substr(0, end));
      if (end == std::string_view::npos) {
        return;
      }
      if (data[end] == '\r' && marked()) {
        append("\r");
      } else {
        const std::string line = std::move(line_);
        line_.clear();
        take(std::string_view(line));
      }
      data.remove_prefix(end + 1);
    }
  }
  // The text after the last line end.
  std::string_view rest() const { return line_; }

 private:
  bool marked() const { return !mark_.empty() && line_.starts_with(mark_); }
  void append(std::string_view data) { line_ += data.substr(0, longest - std::min(line_.size(), longest)); }

  std::string_view mark_;
  std::string line_;
};

// One character of a UTF-8 text. A byte that does not start a well-formed character (truncated, overlong, a
// surrogate, beyond U+10FFFF) is a separate character: length 1, valid false, code U+FFFD.
struct Utf8Char {
  char32_t code = 0xFFFD;
  std::size_t length = 1;
  bool valid = false;
};

// The character at offset `at`, which must be inside the text.
Utf8Char utf8_at(std::string_view text, std::size_t at);

// The offset of the first byte that is not UTF-8; nullopt if the whole text is.
std::optional<std::size_t> first_invalid_utf8(std::string_view text);

// Makes untrusted text (from a server, a job, a file) safe for a terminal, where it could move the cursor,
// change the window's title or reverse the text direction. Control characters become "\x1b" and the like,
// characters that change the direction "\u202e", and bytes that are not UTF-8 "\xff". After `longest`
// characters of the text, the rest becomes "…". Newlines and tabs become "\n" and "\t", so the result is a
// single line.
std::string visible_line(std::string_view text, std::size_t longest = std::string_view::npos);
// Like visible_line(), but keeps newlines and tabs.
std::string visible_text(std::string_view text, std::size_t longest = std::string_view::npos);

// Whether a variable's name suggests a secret (TOKEN, PASSWORD, SECRET, KEY, CREDENTIAL …), and the mask to
// show instead of its value.
bool looks_secret(std::string_view name);
inline constexpr std::string_view secret_mask = "********";

}  // namespace remote
