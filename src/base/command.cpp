#include "base/command.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/simple_commands.hpp"
#include "base/strings.hpp"

namespace remote {
namespace {

constexpr std::string_view word_gaps = " \t\r\n";

// One word of a command: its position, and its text after the shell's quoting rules.
struct Word {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string text;
};

std::vector<Word> read_words(std::string_view command) {
  std::vector<Word> words;
  std::size_t at = 0;
  while ((at = command.find_first_not_of(word_gaps, at)) != std::string_view::npos) {
    Word word;
    word.begin = at;
    char quote = 0;
    for (; at < command.size(); ++at) {
      const char c = command[at];
      if (quote == 0 && word_gaps.find(c) != std::string_view::npos) {
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

// Whether the name in "--api-key", "api_key" or "API-KEY" looks like that of a secret.
bool names_secret(std::string_view word) {
  std::string name(word.substr(std::min(word.find_first_not_of('-'), word.size())));
  std::replace(name.begin(), name.end(), '-', '_');
  std::replace(name.begin(), name.end(), '.', '_');
  return looks_secret(name);
}

// How to show a word: unchanged, with the part after '=' masked, or masked completely.
struct Shown {
  std::string text;
  bool masked = false;
};

// Masks the text between two offsets.
std::string masked_between(std::string_view text, std::size_t begin, std::size_t end) {
  return fmt::format("{}{}{}", text.substr(0, begin), secret_mask, text.substr(std::min(end, text.size())));
}

bool is_secret_header(const std::string& name) {
  const std::string lower = lower_case(name);
  const auto other = [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '_'; };
  return std::ranges::none_of(name, other) &&
         (names_secret(name) || lower == "cookie" || lower == "set-cookie");
}

// Masks the values of secret parameters in the query of the URL that starts at `at`: "?token=…&sig=…".
void mask_query(std::string& text, std::size_t at) {
  const auto end_of_url = [&] { return std::min(text.find_first_of("'\" \t", at), text.size()); };
  std::size_t mark = text.find('?', at);
  while (mark != std::string::npos && mark < end_of_url()) {
    const std::size_t end = std::min(text.find_first_of("&;#", mark + 1), end_of_url());
    const std::size_t equals = text.find('=', mark);
    if (equals < end && names_secret(std::string_view(text).substr(mark + 1, equals - mark - 1))) {
      text = masked_between(text, equals + 1, end);
    }
    mark = text.find_first_of("&;", mark + 1);
  }
}

// Masks the password of a URL, and the value of a header that contains a secret.
std::string mask_inside(std::string text) {
  constexpr std::size_t shortest_token =
      20;  // a user name without a password that is longer than this is a token; in web URLs, any is
  for (std::size_t at = text.find("://"); at != std::string::npos; at = text.find("://", at + 3)) {
    const std::size_t user = at + 3;
    mask_query(text, user);
    const std::size_t end = text.find_first_of("/?#'\" \t", user);
    const std::size_t sign = text.substr(0, end).rfind('@');
    if (sign == std::string::npos || sign <= user) {
      continue;
    }
    const std::size_t colon = text.find(':', user);
    if (colon < sign) {
      text = masked_between(text, colon + 1, sign);
    } else if (sign - user >= shortest_token || text.substr(0, at).ends_with("http") ||
               text.substr(0, at).ends_with("https")) {
      text = masked_between(text, user, sign);
    }
  }
  // "X-Api-Key: VALUE", as in a header option of curl.
  if (const std::size_t colon = text.find(':'); colon != std::string::npos &&
                                                text.compare(colon, 3, "://") != 0 &&
                                                is_secret_header(text.substr(0, colon))) {
    return masked_between(text, std::min(text.find_first_not_of(' ', colon + 1), text.size()), text.size());
  }
  const std::string lower = lower_case(text);
  for (const std::string_view scheme : {"bearer ", "authorization: basic ", "authorization: token "}) {
    if (const std::size_t at = lower.find(scheme); at != std::string::npos) {
      const std::size_t token = lower.find_first_not_of(' ', at + scheme.size());
      if (token != std::string::npos) {
        return masked_between(text, token, lower.find_first_of(" '\"", token));
      }
    }
  }
  return text;
}

// Programs whose -p is not a password option.
constexpr std::array<std::string_view, 14> plain_p = {"mkdir", "cp",    "ls",   "install", "rsync",
                                                      "scp",   "touch", "read", "ps",      "bash",
                                                      "sh",    "time",  "tee",  "patch"};

// Guesses the program that an option belongs to: the nearest preceding word that is not an option.
std::string program_before(const std::vector<Word>& words, std::size_t i) {
  while (i-- > 0) {
    if (const std::string& word = words[i].text; !word.starts_with("-")) {
      return word.substr(word.rfind('/') + 1);
    }
  }
  return {};
}
bool has_plain_p(const std::string& program) {
  return std::ranges::find(plain_p, program) != plain_p.end();
}
bool is_number(std::string_view text) {
  return text.find_first_not_of("0123456789.") == std::string::npos;
}

// Programs with a password option of the form -pX.
constexpr std::array<std::string_view, 12> attached_p = {
    "sshpass",      "mysql", "mysqldump", "mysqladmin", "mysqlimport", "mariadb",
    "mariadb-dump", "7z",    "7za",       "7zr",        "rar",         "unrar"};

// Whether the word is X in "-p X", where X is a password unless it is a number (a port, a count) or the
// program is known to use -p for something else.
bool follows_password_flag(const std::vector<Word>& words, std::size_t i) {
  return words[i - 1].text == "-p" && !is_number(words[i].text) && !has_plain_p(program_before(words, i - 1));
}
// Whether the word is "-pX" of a program with such a password option. For other programs, X must not be a
// number, a path, or a word in lower case, which would be a different option (-print, -pthread).
bool is_password_flag(const std::vector<Word>& words, std::size_t i) {
  if (i == 0 || words[i].text.size() <= 2 || !words[i].text.starts_with("-p")) {
    return false;
  }
  const std::string program = program_before(words, i);
  if (std::ranges::find(attached_p, program) != attached_p.end()) {
    return true;
  }
  const std::string value = words[i].text.substr(2);
  return !has_plain_p(program) && !is_number(value) && value.find('/') == std::string::npos &&
         value.find('=') == std::string::npos &&
         value.find_first_not_of("abcdefghijklmnopqrstuvwxyz-_") != std::string::npos;
}
// The offset of the password in curl's "-u NAME:X" and "--user=NAME:X". Numbers are user ids.
std::size_t password_after_user(const std::vector<Word>& words, std::size_t i) {
  const std::string& text = words[i].text;
  std::size_t begin = 0;
  if (const std::size_t equals = text.find('='); text.starts_with("--") && equals != std::string::npos) {
    const std::string flag = text.substr(0, equals);
    begin = flag == "--user" || flag == "--proxy-user" ? equals + 1 : text.size();
  } else if (text.starts_with("-u") && text.size() > 2) {
    begin = 2;
  } else if (i == 0 || (words[i - 1].text != "-u" && words[i - 1].text != "-U" &&
                        words[i - 1].text != "--user" && words[i - 1].text != "--proxy-user")) {
    return 0;
  }
  const std::size_t colon = text.find(':', begin);
  return colon == std::string::npos || is_number(text.substr(colon + 1)) ? 0 : colon + 1;
}

Shown show_word(const std::vector<Word>& words, std::size_t i) {
  const std::string& text = words[i].text;
  const std::size_t equals = text.find('=');
  if (equals != std::string::npos && equals > 0 && names_secret(text.substr(0, equals))) {
    return {text.substr(0, equals + 1) + std::string(secret_mask), true};
  }
  if (i > 0 && !text.starts_with("-")) {
    const std::string& before = words[i - 1].text;
    if ((before.starts_with("-") && before.find('=') == std::string::npos && names_secret(before) &&
         !is_password_flag(words, i - 1)) ||
        follows_password_flag(words, i) || lower_case(before).ends_with("bearer") ||
        (before.ends_with(':') && is_secret_header(before.substr(0, before.size() - 1)))) {
      return {std::string(secret_mask), true};
    }
  }
  if (is_password_flag(words, i)) {
    return {"-p" + std::string(secret_mask), true};
  }
  if (const std::size_t at = password_after_user(words, i); at > 0) {
    return {text.substr(0, at) + std::string(secret_mask), true};
  }
  std::string inside = mask_inside(text);
  return {inside, inside != text};
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

namespace {

bool is_script(std::string_view word) {
  return word.ends_with(".py") && !is_assignment(word);  // such as "CONFIG=configs/base.py"
}

}  // namespace

bool script_alone(std::string_view line) {
  const std::string_view first = line.substr(0, line.find(' '));
  return is_script(first) && first.find('/') == std::string_view::npos;
}

namespace {

// The offset of the first of these characters at or after `from` that is not quoted or escaped. Returns the
// line's size if there is none, and npos if a quote is not closed. `from` must be outside quotes.
std::size_t find_unquoted(std::string_view line, std::string_view characters, std::size_t from = 0) {
  char quote = 0;
  for (std::size_t at = from; at < line.size(); ++at) {
    const char c = line[at];
    if (c == '\\' && quote != '\'') {
      ++at;
    } else if (quote != 0) {
      quote = c == quote ? '\0' : quote;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (characters.find(c) != std::string_view::npos) {
      return at;
    }
  }
  return quote != 0 ? std::string_view::npos : line.size();
}

}  // namespace

std::size_t end_of_command(std::string_view line) {
  constexpr std::string_view ends = "|&;<>()\n#";
  std::size_t at = find_unquoted(line, ends);
  while (at < line.size() && line[at] == '#' && at > 0 &&
         word_gaps.find(line[at - 1]) == std::string_view::npos) {
    at = find_unquoted(line, ends, at + 1);
  }
  return at;
}

bool is_plain_command(std::string_view command) {
  if (end_of_command(command) != command.size()) {  // a comment would also swallow any appended text
    return false;
  }
  const auto words = read_words(command);
  return !words.empty() && !is_assignment(words.front().text);
}

bool is_assignment(std::string_view word) {
  const std::size_t equals = word.find('=');
  return equals != std::string_view::npos && equals > 0 &&
         std::isdigit(static_cast<unsigned char>(word[0])) == 0 &&
         std::ranges::all_of(word.substr(0, equals), is_name_character);
}

namespace {

// Whether the next word can be a command, because this word is not one.
bool is_before_command(std::string_view word) {
  constexpr std::array<std::string_view, 18> words{"&&",   "||",  "|",    ";",     "&",     "(",
                                                   "{",    "!",   "do",   "then",  "else",  "if",
                                                   "time", "env", "exec", "nohup", "while", "until"};
  return is_assignment(word) || std::ranges::find(words, word) != words.end();
}

}  // namespace

std::string insert_python(std::string_view line, bool with_paths) {
  std::string all;
  std::size_t copied = 0;
  bool begins = true;
  bool in_comment = false;
  const std::vector<Word> words = read_words(line);
  const std::vector<std::string> texts = shell_words(line);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t gap = i == 0 ? 0 : words[i - 1].end;
    const bool is_new_line = line.substr(gap, words[i].begin - gap).find('\n') != std::string_view::npos;
    in_comment = (in_comment && !is_new_line) || line[words[i].begin] == '#';
    if (in_comment) {
      continue;
    }
    begins = begins || is_new_line;
    if (const std::size_t behind = begins && words[i].text != "uv" ? skip_starter(texts, i) : i;
        behind != i) {
      i = behind - 1;
      begins = true;
      continue;
    }
    std::string_view name = words[i].text;
    const bool ends = name.ends_with(';');
    name.remove_suffix(ends ? 1 : 0);
    name.remove_suffix(name.ends_with(')') ? 1 : 0);
    const std::size_t bracket = name.starts_with('(') ? 1 : 0;
    name.remove_prefix(bracket);
    if ((begins || bracket > 0) && is_script(name) &&
        (with_paths || name.find('/') == std::string_view::npos)) {
      const std::size_t at = words[i].begin + bracket;
      all.append(line.substr(copied, at - copied)).append("python ");
      copied = at;
    }
    begins = ends || ((begins || !is_assignment(name)) && is_before_command(name));
  }
  return all.append(line.substr(copied));
}

std::string last_of_pipe(std::string_view line) {
  std::size_t pipe = std::string_view::npos;  // offset of the last program in a pipe
  constexpr std::string_view ends = "|&;\n";
  for (std::size_t at = find_unquoted(line, ends); at < line.size(); at = find_unquoted(line, ends, at + 1)) {
    const char c = line[at];
    const bool twice = at + 1 < line.size() && line[at + 1] == c;
    if (c == '|' && !twice) {
      pipe = at + 1 + (at + 1 < line.size() && line[at + 1] == '&' ? 1 : 0);
      at = pipe - 1;
    } else if (c == ';' || c == '\n' || twice) {
      const bool is_last = line.find_first_not_of("; \t\n", at) == std::string_view::npos;
      pipe = is_last ? pipe : std::string_view::npos;
      at += twice ? 1 : 0;
    }
  }
  if (pipe == std::string_view::npos || line.find("pipefail") != std::string_view::npos) {
    return "";
  }
  const std::vector<Word> words = read_words(line.substr(pipe));
  const auto program =
      std::ranges::find_if(words, [](const Word& word) { return !is_assignment(word.text); });
  return program == words.end() ? "" : program->text;
}

std::string with_failures_of_list(std::string_view line) {
  constexpr std::string_view list_ends = ";\n";
  line = trim(line);
  while (line.ends_with(';')) {
    line = trim(line.substr(0, line.size() - 1));
  }
  std::size_t last = line.size();
  for (std::size_t at = find_unquoted(line, list_ends); at < line.size();
       at = find_unquoted(line, list_ends, at + 1)) {
    last = at;
  }
  const std::string_view head = line.substr(0, last);
  const bool has_python = head.find("python") != head.npos || head.find(".py") != head.npos;
  if (last == line.size() || !has_python || line.find("set -e") != std::string_view::npos) {
    return "";
  }
  const std::string_view tail = trim(line.substr(last + 1));
  const std::string_view program = tail.substr(0, tail.find(' '));
  constexpr std::array<std::string_view, 3> harmless{"echo", "printf", "date"};
  // In a head with other operators, a failure may be ignored on purpose.
  if (std::ranges::find(harmless, program) == harmless.end() || find_unquoted(head, "|&") < head.size() ||
      find_unquoted(tail, "|&<>(){}`") < tail.size()) {
    return "";
  }
  return std::string(trim(head)) + " && " + std::string(tail);
}

namespace {

// The text after the first '&' that puts a command into the background; nullopt if there is none.
std::optional<std::string_view> behind_ampersand(std::string_view line) {
  for (std::size_t at = find_unquoted(line, "&"); at < line.size(); at = find_unquoted(line, "&", at + 1)) {
    const char before = at > 0 ? line[at - 1] : ' ';
    const char next = at + 1 < line.size() ? line[at + 1] : ' ';
    if (next == '&') {
      ++at;
    } else if (std::string_view("<>|").find(before) == std::string_view::npos && next != '>') {
      return line.substr(at + 1);
    }
  }
  return std::nullopt;
}

bool starts_detached(const std::vector<std::string>& words) {
  const auto has = [&](std::string_view begin) {
    return std::ranges::any_of(words, [&](const std::string& word) { return word.starts_with(begin); });
  };
  const std::string program = words.empty() ? "" : words.front();
  return (program == "tmux" && has("new") && has("-d")) || (program == "screen" && has("-dm")) ||
         (program == "setsid" && words.size() > 1 && has_name(" -f --fork ", words[1]));
}

}  // namespace

bool goes_into_background(std::string_view line) {
  if (const auto rest = behind_ampersand(line)) {
    return std::ranges::all_of(simple_commands(*rest), [](const std::string& command) {
      const std::vector<std::string> words = shell_words(command);
      return words.empty() || has_name(" echo disown exit true } ", words.front());
    });
  }
  const std::vector<std::string> commands = simple_commands(line);
  return std::ranges::any_of(
      commands, [](const std::string& command) { return starts_detached(shell_words(command)); });
}

std::string with_python(const std::string& command) {
  const auto words = read_words(command);
  if (words.empty() || (!is_script(words.front().text) && !words.front().text.starts_with("-"))) {
    return command;
  }
  return "python " + command.substr(words.front().begin);
}

std::string mask_line(std::string line) {
  return mask_inside(std::move(line));
}

std::string OutputMask::take(std::string_view piece) {
  constexpr std::size_t longest = std::size_t{64} << 10U;
  std::string all;
  while (!piece.empty()) {
    const std::size_t end = piece.find_first_of("\r\n");
    line_ += piece.substr(0, end);
    if (end == std::string_view::npos && line_.size() < longest) {
      break;
    }
    all += mask_line(std::exchange(line_, {}));
    if (end == std::string_view::npos) {
      break;
    }
    all += piece[end];
    piece.remove_prefix(end + 1);
  }
  return all;
}

std::string OutputMask::finish() {
  return mask_line(std::exchange(line_, {}));
}

std::string mask_value(std::string_view name, std::string_view value) {
  return looks_secret(name) ? std::string(secret_mask) : mask_inside(std::string(value));
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

}  // namespace remote
