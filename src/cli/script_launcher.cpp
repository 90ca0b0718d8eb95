#include "cli/script_launcher.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/beneath.hpp"
#include "base/command.hpp"
#include "base/first_script.hpp"
#include "base/has_any.hpp"
#include "base/simple_commands.hpp"
#include "base/strings.hpp"
#include "cli/guide_words.hpp"

namespace remote::cli {
namespace fs = std::filesystem;
namespace {

// Whether a launcher in this text receives the addresses of the other servers.
bool knows_others(std::string_view text) {
  return has_any(text, {"MASTER_ADDR", "NODE_RANK", "GROUP_RANK"});
}

// Returns the text of a file in the project; "" if it is not a text file in the project.
std::string read_project_text(const fs::path& project, const fs::path& file) {
  if (file.is_absolute()) {
    return "";
  }
  try {
    constexpr std::uintmax_t most_bytes = std::uintmax_t{128} << 10U;
    std::string text = read_beneath(project, file, most_bytes).value_or("");
    return text.find('\0') == std::string::npos ? text : "";
  } catch (const Error&) {
    return "";
  }
}

// The lines without comments; lines that end with a backslash are joined with the next one.
std::vector<std::string> read_lines(const std::string& text) {
  std::vector<std::string> lines;
  bool continues = false;
  for (std::string line : split(text, '\n')) {
    const bool ends_open = line.ends_with('\\');
    line.erase(line.size() - (ends_open ? 1 : 0));
    if (continues) {
      lines.back() += ' ' + line;
    } else {
      lines.push_back(std::move(line));
    }
    continues = ends_open;
  }
  std::erase_if(lines, [](const std::string& line) { return trim(line).starts_with('#'); });
  return lines;
}

bool uses_variable(std::string_view line, const std::string& name) {
  for (std::size_t at = line.find('$'); at != line.npos; at = line.find('$', at + 1)) {
    const std::string_view rest = line.substr(at + (line.substr(at).starts_with("${") ? 2 : 1));
    const bool goes_on = rest.size() > name.size() && is_name_character(rest[name.size()]);
    if (rest.starts_with(name) && !goes_on) {
      return true;
    }
  }
  return false;
}

// The command in a variable, CMD="torchrun train.py" or CMD=(torchrun train.py), if a line uses it.
std::string find_command_in_variable(const std::string& line, const std::vector<std::string>& lines) {
  std::vector<std::string> words = shell_words(line);
  if (!words.empty() && (words[0] == "export" || words[0] == "local" || words[0] == "readonly")) {
    words.erase(words.begin());
  }
  if (words.empty() || !is_assignment(words[0])) {
    return "";
  }
  const std::size_t equals = words[0].find('=');
  const std::string name = words[0].substr(0, equals);
  std::string value = words[0].substr(equals + 1);
  if (value.starts_with('(')) {
    words[0] = value.substr(1);
    value = join(words, " ");
  }
  if (other_launcher(value).empty()) {
    return "";
  }
  const auto is_user = [&](const std::string& other) { return uses_variable(other, name); };
  const bool is_told = std::ranges::any_of(
      lines, [&](const std::string& other) { return is_user(other) && knows_others(other); });
  return !is_told && std::ranges::any_of(lines, is_user) ? value : "";
}

using Found = std::optional<ScriptLauncher>;

Found find_in_shell(const std::string& file, const std::string& text) {
  const std::vector<std::string> lines = read_lines(text);
  for (const std::string& line : lines) {
    for (const std::string& command : {line, find_command_in_variable(line, lines)}) {
      if (std::string name = other_launcher(command); !name.empty() && !knows_others(command)) {
        return ScriptLauncher{file, std::move(name), command};
      }
    }
  }
  return std::nullopt;
}

// The string literals in a line of Python, joined by blanks.
std::string join_literals(std::string_view line) {
  std::string all;
  for (std::size_t at = line.find_first_of("'\""); at != line.npos; at = line.find_first_of("'\"", at)) {
    const std::size_t end = line.find(line[at], at + 1);
    if (end == line.npos) {
      break;
    }
    all.append(all.empty() ? "" : " ").append(line.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return all;
}

Found find_in_python(const std::string& file, const std::string& text) {
  if (knows_others(text)) {
    return std::nullopt;
  }
  for (const std::string& line : read_lines(text)) {
    if (!has_any(line, {"subprocess.", "os.system(", "os.exec", "Popen(", "check_call(", "check_output(",
                        " run(", "=run("})) {
      continue;
    }
    std::string command = join_literals(line);
    if (std::string name = other_launcher(command); !name.empty()) {
      return ScriptLauncher{file, std::move(name), std::move(command)};
    }
  }
  return std::nullopt;
}

Found find_in_file(const fs::path& project, std::string_view command) {
  const std::string file = script_of(command);
  if (file.empty()) {
    return std::nullopt;
  }
  const std::string text = read_project_text(project, file);
  const std::string first = text.starts_with("#!") ? text.substr(0, text.find('\n')) : "";
  const std::vector<std::string> words = shell_words(command);
  const auto is_file = [&](const std::string& word) { return file.ends_with(word); };
  const auto end = std::ranges::find_if(words, is_file);
  if (file.ends_with(".py") || std::any_of(words.begin(), end, is_python) || has_any(first, {"python"})) {
    return find_in_python(file, text);
  }
  return first.empty() || has_any(first, {"sh"}) ? find_in_shell(file, text) : std::nullopt;
}

struct Target {
  std::vector<std::string> needs;
  std::vector<std::string> recipe;
};

struct Makefile {
  std::map<std::string, Target> targets;
  std::map<std::string, std::string> variables;
  std::string first;  // the default target
};

Makefile read_makefile(const std::string& text) {
  Makefile makefile;
  std::vector<std::string> current;
  for (const std::string& line : read_lines(text)) {
    if (line.starts_with('\t')) {
      for (const std::string& target : current) {
        makefile.targets[target].recipe.push_back(line);
      }
      continue;
    }
    const std::size_t equals = line.find('=');
    const std::size_t colon = line.find(':');
    if (equals != line.npos && equals <= (colon == line.npos ? equals : colon + 1)) {
      std::string name = line.substr(0, equals);
      name.erase(name.find_last_not_of(":?+! \t") + 1);
      makefile.variables[std::string(trim(name))] = trim(line.substr(equals + 1));
    } else if (colon != line.npos) {
      constexpr std::size_t most_of_a_rule = 20;
      current = shell_words(line.substr(0, colon));
      current.resize(std::min(current.size(), most_of_a_rule));
      for (const std::string& target : current) {
        const std::vector<std::string> needs = shell_words(line.substr(colon + 1));
        makefile.targets[target].needs.insert(makefile.targets[target].needs.end(), needs.begin(),
                                              needs.end());
        makefile.first = makefile.first.empty() && !target.starts_with('.') ? target : makefile.first;
      }
    }
  }
  return makefile;
}

// A line of a recipe, with variables expanded.
std::string expand(const Makefile& makefile, std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of("\t @-+"), line.size()));
  constexpr std::size_t longest = 4096;
  std::string all;
  while (!line.empty() && all.size() < longest) {
    const std::size_t at = std::min(line.find('$'), line.size());
    all.append(line.substr(0, at));
    line.remove_prefix(at);
    const char closing = line.starts_with("$(") ? ')' : '}';
    const std::size_t end = line.starts_with("$(") || line.starts_with("${") ? line.find(closing) : line.npos;
    const auto variable = end == line.npos ? makefile.variables.end()
                                           : makefile.variables.find(std::string(line.substr(2, end - 2)));
    if (variable != makefile.variables.end()) {
      all.append(variable->second);
      line.remove_prefix(end + 1);
    } else if (!line.empty()) {
      all += line.front();
      line.remove_prefix(1);
    }
  }
  return all;
}

// `seen`: targets that have been searched.
Found find_in_target(const fs::path& project, const Makefile& makefile, const std::string& name,
                     std::set<std::string>& seen) {
  const auto target = makefile.targets.find(name);
  constexpr std::size_t most_targets = 50;
  if (target == makefile.targets.end() || seen.size() > most_targets || !seen.insert(name).second) {
    return std::nullopt;
  }
  for (const std::string& line : target->second.recipe) {
    const std::string command = expand(makefile, line);
    if (std::string launcher = other_launcher(command); !launcher.empty() && !knows_others(command)) {
      return ScriptLauncher{"make " + name, std::move(launcher), command};
    }
    if (Found found = find_in_file(project, command)) {
      return found;
    }
  }
  for (const std::string& need : target->second.needs) {
    if (Found found = find_in_target(project, makefile, need, seen)) {
      return found;
    }
  }
  return std::nullopt;
}

// "make train", "A=1 make -j 4 train"
Found find_in_make(const fs::path& project, std::string_view command) {
  const std::vector<std::string> words = shell_words(simple_commands(command).front());
  auto word = std::ranges::find_if(words, [](const std::string& one) { return !is_assignment(one); });
  if (word == words.end() || *word != "make") {
    return std::nullopt;
  }
  std::string target;
  std::vector<std::string> files{"GNUmakefile", "makefile", "Makefile"};
  for (++word; word != words.end(); ++word) {
    if (has_name(" -C -I --directory ", *word)) {
      return std::nullopt;  // a Makefile in another folder
    }
    const bool is_number = word->find_first_not_of("0123456789") == std::string::npos;  // the argument of -j
    if (has_name(" -f --file ", *word) && word + 1 != words.end()) {
      files = {*++word};
    } else if (!word->starts_with('-') && !is_assignment(*word) && !is_number && target.empty()) {
      target = *word;
    }
  }
  for (const std::string& file : files) {
    if (const std::string text = read_project_text(project, file); !text.empty()) {
      const Makefile makefile = read_makefile(text);
      std::set<std::string> seen;
      return find_in_target(project, makefile, target.empty() ? makefile.first : target, seen);
    }
  }
  return std::nullopt;
}

}  // namespace

Found find_script_launcher(const fs::path& project, std::string_view command) {
  Found found = find_in_make(project, command);
  return found ? found : find_in_file(project, command);
}

std::string find_own_launcher(const fs::path& project, std::string_view command) {
  if (std::string name = other_launcher(command); !name.empty()) {
    return knows_others(command) ? "" : name;
  }
  const Found found = find_script_launcher(project, command);
  return found ? found->name : "";
}

}  // namespace remote::cli
