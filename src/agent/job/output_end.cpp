#include "agent/job/output_end.hpp"

#include <algorithm>
#include <array>

namespace remote::agent {
namespace {

constexpr std::array<std::string_view, 3> attempt_dividers{
    "remote: the ranks begin anew (", "remote: the workers begin anew (", "remote: the point begins again ("};

}  // namespace

std::optional<std::string> read_end_of_file(const Path& path, std::size_t most, Links links) {
  const RegularFile file(path, links);
  if (!file) {
    return std::nullopt;
  }
  std::string text(std::min<std::uint64_t>(file.size(), most), '\0');
  text.resize(file.read(text.data(), text.size(), file.size() - text.size()));
  return text;
}

std::vector<std::string_view> find_last_lines(std::string_view text, std::size_t count) {
  if (text.ends_with('\n')) {
    text.remove_suffix(1);
  } else if (text.empty()) {
    return {};
  }
  std::vector<std::string_view> lines;
  while (lines.size() < count) {
    const std::size_t newline = text.rfind('\n');
    if (newline == std::string_view::npos) {
      lines.push_back(text);
      break;
    }
    lines.push_back(text.substr(newline + 1));
    text = text.substr(0, newline);
  }
  std::ranges::reverse(lines);
  return lines;
}

std::string_view find_last_attempt(std::string_view text) {
  std::size_t begin = 0;
  for (const std::string_view divider : attempt_dividers) {
    for (std::size_t at = text.rfind(divider); at != std::string_view::npos;
         at = at == 0 ? std::string_view::npos : text.rfind(divider, at - 1)) {
      if (at == 0 || text[at - 1] == '\n') {
        const std::size_t newline = text.find('\n', at);
        begin = std::max(begin, newline == std::string_view::npos ? text.size() : newline + 1);
        break;
      }
    }
  }
  return text.substr(begin);
}

std::vector<std::string_view> find_lines_of_last_attempt(std::string_view text, std::size_t count) {
  const std::vector<std::string_view> last = find_last_lines(text, count);
  if (last.empty()) {
    return {};
  }
  const auto begin = static_cast<std::size_t>(last.front().data() - text.data());
  return find_last_lines(find_last_attempt(text.substr(begin)), count);
}

}  // namespace remote::agent
