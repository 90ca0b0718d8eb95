#include "config/missing_colon.hpp"

#include <vector>

#include "base/strings.hpp"

namespace remote::config {
namespace {

constexpr int lines_to_try = 3;

std::size_t indentation(const std::string& line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

bool is_content(const std::string& line) {
  const std::string_view text = trim(line);
  return !text.empty() && !text.starts_with('#');
}

// A line that YAML reads as a string without a key, but that may have been meant as a key.
bool may_lack_colon(const std::string& line) {
  const std::string_view text = trim(line);
  constexpr std::string_view others = "-?:,[]{}&*!|>'\"%@`";
  return is_content(line) && others.find(text.front()) == std::string_view::npos && !text.ends_with(':') &&
         text.find(": ") == std::string_view::npos;
}

std::string joined(const std::vector<std::string>& lines, std::size_t at, const std::string& instead) {
  std::vector<std::string> all = lines;
  all[at] = instead;
  return join(all, "\n");
}

}  // namespace

std::optional<MissingColon> find_missing_colon(const std::string& text, int line,
                                               const std::function<int(const std::string&)>& error_line) {
  const std::vector<std::string> lines = split(text, '\n');
  int tried = 0;
  for (int number = std::min(line, static_cast<int>(lines.size())); number > 0 && tried < lines_to_try;
       --number) {
    const auto at = static_cast<std::size_t>(number) - 1;
    const std::string& content = lines[at];
    tried += is_content(content) ? 1 : 0;
    if (!may_lack_colon(content)) {
      continue;
    }
    const std::size_t begin = indentation(content);
    const std::size_t end = std::min(content.find_first_of(" :\r", begin), content.size());
    const std::string word = content.substr(begin, end - begin);
    const bool colon = end < content.size() && content[end] == ':';
    const std::string rest(
        trim(std::string_view(content).substr(std::min(end + (colon ? 1 : 0), content.size()))));
    const std::string mended = content.substr(0, end) + ":" + (rest.empty() ? "" : " " + rest);
    const int next = error_line(joined(lines, at, mended));
    if (next == 0 || next > line) {
      return MissingColon{{number, static_cast<int>(end) + 1},
                          colon ? "a blank is missing after '" + printable(word) + ":'"
                                : "a ':' is missing after '" + printable(word) + "'",
                          "write " + printable(std::string(trim(mended)))};
    }
  }
  return std::nullopt;
}

}  // namespace remote::config
