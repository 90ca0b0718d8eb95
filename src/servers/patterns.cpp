#include "servers/patterns.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/paths.hpp"
#include "base/strings.hpp"
#include "config/project_files.hpp"
#include "ssh/rsync_tunnel.hpp"

namespace remote::servers {
namespace {

using Why = UselessPattern::Why;
constexpr std::size_t longest_pattern =
    1000;  // rsync drops rules that are longer than the longest possible path
constexpr std::string_view blanks = " \t";

// `letter` is H (hide) or S (show) for the sender, P (protect) or R (risk) for the receiver.
std::string rule(char letter, const std::string& pattern) {
  return std::string(1, letter) + ' ' + pattern + '\0';
}

// Names that are never sent to a server, whatever exclude.txt contains.
std::vector<std::string> never_sent(const config::Config& config) {
  std::vector<std::string> patterns = {
      "/" + ssh::rsync_pattern(config.remote_jobs_folder_name),
      "/" + ssh::rsync_pattern(config.remote_scripts_folder_name),
      // Keys, passwords in configs.yaml, logs and jobs, none of which are needed there.
      "/.remote", ".rsync-partial"};
  if (!config.outputs.empty()) {
    patterns.emplace_back("/results");  // copied here by `remote pull`
  }
  const bool in_project = config.python.manager == config::PythonManager::venv ||
                          config.python.manager == config::PythonManager::uv;
  const std::string folder = config.python.environment.empty() ? ".venv" : config.python.environment;
  if (in_project && !folder.starts_with('/') && !folder.starts_with('~')) {
    patterns.push_back("/" + ssh::rsync_pattern(folder));  // each server creates its own
  }
  return patterns;
}

bool is_quoted(const std::string& text) {
  return text.size() > 1 && text.front() == text.back() &&
         (text.front() == '"' || text.front() == '\'' || text.front() == '`');
}

// A backslash before a letter or at the end indicates a Windows path.
bool has_windows_separator(const std::string& text) {
  const std::size_t at = text.find('\\');
  return at != std::string::npos &&
         (at + 1 == text.size() || std::string_view("*?[]\\").find(text[at + 1]) == std::string_view::npos);
}

bool has_comment(const std::string& text) {
  constexpr const char* begins[] = {" #", "\t#", " //", "\t//", " ; "};
  return std::ranges::any_of(begins, [&](const char* begin) { return text.find(begin) != text.npos; });
}

// Whether a '[' has no ']', which rsync's matching needs. A ']' that comes first is one of the characters.
bool has_open_bracket(const std::string& text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '[') {
      at += at + 1 < text.size() && (text[at + 1] == '!' || text[at + 1] == '^') ? 1 : 0;
      for (at += 2; at < text.size() && text[at] != ']'; ++at) {
        at += text[at] == '\\' ? 1 : 0;
      }
      if (at >= text.size()) {
        return true;
      }
    }
  }
  return false;
}

bool is_variable(const std::string& part) {
  const bool braced = part.starts_with("${") && part.ends_with('}');
  const std::string name =
      braced ? part.substr(2, part.size() - 3) : part.substr(part.starts_with('$') ? 1 : part.size());
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::ranges::all_of(name, is_name_character);
}

// "~bob/data"
bool has_home(const std::string& text) {
  const std::string user = text.substr(0, text.find('/'));
  return text.size() > user.size() && user.starts_with('~') &&
         std::ranges::all_of(user.substr(1),
                             [](char c) { return is_name_character(c) || c == '-' || c == '.'; });
}

std::optional<Why> reason_useless(const config::Config& config, const Pattern& pattern) {
  const std::string& text = pattern.text;
  if (text.empty() || text.size() > longest_pattern) {
    return text.empty() ? Why::empty : Why::too_long;
  }
  const std::string parts = "/" + text + "/";
  const std::vector<std::pair<bool, Why>> found = {
      {text.starts_with('!'), Why::negated},
      {has_comment(text), Why::comment},
      {blanks.find(text.front()) != std::string_view::npos ||
           blanks.find(text.back()) != std::string_view::npos,
       Why::blank},
      {is_quoted(text), Why::quoted},
      {parts.find("/./") != std::string::npos || parts.find("/../") != std::string::npos, Why::dots},
      {has_home(text) || text.starts_with(config.project.string() + "/"), Why::absolute},
      {text.starts_with('+') || text.starts_with('-'), Why::sign},
      {text.find('{') < text.find(',') && text.find(',') < text.rfind('}') &&
           text.rfind('}') != std::string::npos,
       Why::braces},
      {has_windows_separator(text), Why::backslash},
      {text.find("//") != std::string::npos, Why::slashes},
      {has_open_bracket(text), Why::bracket},
      {std::ranges::any_of(split(text, '/'), is_variable), Why::variable},
  };
  const auto first = std::ranges::find(found, true, &std::pair<bool, Why>::first);
  if (first == found.end()) {
    return std::nullopt;
  }
  // There may be a file with exactly this name.
  const bool never =
      first->second == Why::dots || first->second == Why::slashes || first->second == Why::bracket;
  const bool named = !never && is_there(config.project / text.substr(text.starts_with('/') ? 1 : 0));
  return named ? std::nullopt : std::optional(first->second);
}

}  // namespace

std::vector<Pattern> parse_patterns(std::string_view text) {
  std::vector<Pattern> patterns;
  int number = 1;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\r\n"), text.size());
    std::string_view line = text.substr(0, end);
    const bool is_comment = line.starts_with('#') || line.starts_with(';');
    if (line == "!") {
      patterns.clear();
    } else if (!line.empty() && !is_comment) {
      const bool shows = line.starts_with("+ ");
      line.remove_prefix(shows || line.starts_with("- ") ? 2 : 0);
      patterns.push_back({std::string(line), shows, number});
    }
    const std::size_t length = text.substr(end).starts_with("\r\n") ? 2 : 1;
    text.remove_prefix(std::min(end + length, text.size()));
    ++number;
  }
  return patterns;
}

std::vector<UselessPattern> useless_patterns(const config::Config& config) {
  std::vector<UselessPattern> found;
  for (const Pattern& pattern : parse_patterns(config::read_exclude_file(config).value_or(""))) {
    if (const auto why = reason_useless(config, pattern)) {
      found.push_back({pattern.text, pattern.line, *why});
    }
  }
  return found;
}

std::string selection_rules(const config::Config& config, const std::vector<std::string>& leave) {
  std::string rules;
  for (const std::string& name : leave) {
    rules += rule('H', "/" + ssh::rsync_pattern(name));
  }
  for (const std::string& pattern : never_sent(config)) {
    rules += rule('H', pattern);
  }
  for (const Pattern& pattern : parse_patterns(config::read_exclude_file(config).value_or(""))) {
    if (!pattern.text.empty() && pattern.text.size() <= longest_pattern) {
      rules += rule(pattern.shows ? 'S' : 'H', pattern.text);
    }
  }
  return rules;
}

std::string deletion_rules(const std::vector<std::string>& names) {
  std::string rules;
  for (const std::string& name : names) {
    rules += rule('R', "/" + ssh::rsync_pattern(name));
  }
  return rules + rule('P', "*");
}

}  // namespace remote::servers
