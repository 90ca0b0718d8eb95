#include "base/first_script.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/command.hpp"
#include "base/simple_commands.hpp"

namespace remote {
namespace {

using CommandWordList = std::vector<std::string>;

// How to parse an option of a program: it is complete, takes the next word, or selects another program than a
// script.
enum class ScriptOption { alone, takes_word, no_script };

ScriptOption read_python_option(const std::string& option) {
  for (std::size_t i = 1; i < option.size(); ++i) {
    if (option[i] == 'c' || option[i] == 'm') {
      return ScriptOption::no_script;
    }
    if (option[i] == 'W' || option[i] == 'X') {
      return i + 1 == option.size() ? ScriptOption::takes_word : ScriptOption::alone;
    }
  }
  return option == "-" || option == "--check-hash-based-pycs" ? ScriptOption::no_script : ScriptOption::alone;
}

ScriptOption read_shell_option(const std::string& option) {
  if (option.starts_with("--")) {  // some of these take a word
    return option == "--" ? ScriptOption::alone : ScriptOption::no_script;
  }
  if (option.find_first_of("cs") != std::string::npos || option == "-") {
    return ScriptOption::no_script;
  }
  return option.ends_with('o') || option.ends_with('O') ? ScriptOption::takes_word : ScriptOption::alone;
}

// The script in the arguments of torchrun, which begin at `at`; "" if it runs something else, or if an option
// is unknown.
std::string find_torchrun_script(const CommandWordList& words, std::size_t at) {
  constexpr std::string_view flags = " --standalone --use-env ";
  constexpr std::string_view with_value =
      " --nnodes --nproc-per-node --rdzv-backend --rdzv-endpoint --rdzv-id --rdzv-conf --max-restarts "
      "--monitor-interval --start-method --role --log-dir -r --redirects -t --tee --local-ranks-filter "
      "--node-rank --master-addr --master-port --local-addr --logs-specs ";
  for (; at < words.size() && words[at].starts_with('-'); ++at) {
    std::string name = words[at].substr(0, words[at].find('='));
    std::ranges::replace(name, '_', '-');
    const bool takes_value = has_name(with_value, name);
    if (!takes_value && !has_name(flags, name)) {
      return "";
    }
    at += takes_value && name.size() == words[at].size() ? 1 : 0;
  }
  return at < words.size() ? words[at] : "";
}

// The words of a command without leading variables and programs that only start it. Empty if one of these
// starts it in another folder.
CommandWordList without_starters(const CommandWordList& words) {
  std::size_t begin = 0;
  for (std::size_t next = 0; begin < words.size(); begin = next) {
    next = is_assignment(words[begin]) ? begin + 1 : skip_starter(words, begin);
    if (next == begin) {
      break;
    }
  }
  begin = std::min(begin, words.size());
  const auto command = words.begin() + static_cast<std::ptrdiff_t>(begin);
  const bool is_moved = std::any_of(words.begin(), command, [&](const std::string& word) {
    return has_name(" --chdir --cwd --directory ", word.substr(0, word.find('='))) ||
           (word == "-C" && words.front() != "numactl");
  });
  return is_moved ? CommandWordList() : CommandWordList(command, words.end());
}

// Whether a command creates no files and keeps the folder: the next one finds the files that exist now.
bool keeps_files(std::string_view text) {
  constexpr std::string_view harmless =
      " export set unset ulimit umask mkdir echo printf date hostname pwd true : . source module ";
  if (text.find_first_of("`>") != text.npos || text.find("$(") != text.npos) {
    return false;
  }
  const CommandWordList words = shell_words(text);
  const bool activates = words.size() > 1 && words[0] == "conda" && words[1] == "activate";
  return activates || std::ranges::all_of(words, is_assignment) || has_name(harmless, words.front());
}

bool is_sourcing(const CommandWordList& words) {
  return words.size() > 1 && has_name(" . source ", words.front());
}

// Other words are expanded by the shell, in a way that is unknown here.
bool is_unexpanded(const std::string& word) {
  return word.find_first_of("$`*?[{") == std::string::npos;
}

std::string in_folder(const std::string& folder, const std::string& name) {
  return name.starts_with('/') || name.starts_with('~') ? name : folder + name;
}

// What a line runs after its harmless commands and changes of the folder.
struct FirstProgram {
  std::string folder;  // in which it runs, as written, with "/" at the end; "" if unchanged
  std::vector<std::string> sourced;
  CommandWordList words;  // empty: unknown
};

FirstProgram find_first_program(std::string_view line) {
  FirstProgram found;
  for (bool has_made_folders = false;;) {
    const std::size_t end = end_of_command(line);
    if (end == std::string_view::npos || line.substr(end).starts_with("||")) {
      return found;  // the rest of the line is for the case that it fails
    }
    const std::string_view text = line.substr(0, end);
    const CommandWordList typed = shell_words(text);
    const CommandWordList words = without_starters(typed);
    const bool moves = words.size() == 2 && words[0] == "cd" && is_unexpanded(words[1]) &&
                       !words[1].starts_with('-') && !has_made_folders;
    if (!moves && !keeps_files(text)) {
      found.words = words;
      return found;
    }
    const bool is_and = line.substr(end).starts_with("&&");
    if (end >= line.size() || (!is_and && line[end] != ';' && line[end] != '\n')) {
      return found;
    }
    if (moves) {
      found.folder = in_folder(found.folder, words[1]) + "/";
    } else if (is_sourcing(typed)) {
      found.sourced.push_back(in_folder(found.folder, typed[1]));
    }
    has_made_folders = has_made_folders || (!typed.empty() && typed[0] == "mkdir");
    line.remove_prefix(end + (is_and ? 2 : 1));
  }
}

FirstScript find_script_in(std::string_view command, int depth);

// The script of a command of Python or of a shell.
FirstScript find_script_of_interpreter(const CommandWordList& words, bool is_shell, int depth) {
  std::size_t i = 1;
  for (; i < words.size() && words[i].starts_with('-'); ++i) {
    const std::string& option = words[i];
    const ScriptOption kind = is_shell ? read_shell_option(option) : read_python_option(option);
    const std::string behind = i + 1 < words.size() ? words[i + 1] : "";
    if (kind == ScriptOption::no_script && is_shell) {
      // The files that a login shell reads may change the folder.
      const bool has_line =
          option.find('c') != option.npos && option.find_first_not_of("ceux", 1) == option.npos;
      constexpr int deepest = 3;
      return has_line && !behind.starts_with('-') && depth < deepest ? find_script_in(behind, depth + 1)
                                                                     : FirstScript();
    }
    if (kind == ScriptOption::no_script) {
      const bool is_module = option.ends_with('m') && option.find('c') == option.npos;
      const bool is_torchrun =
          is_module && has_name(" torch.distributed.run torch.distributed.launch ", behind);
      return {is_torchrun ? find_torchrun_script(words, i + 2) : ""};
    }
    i += kind == ScriptOption::takes_word ? 1 : 0;
  }
  return {i < words.size() ? words[i] : ""};
}

FirstScript find_script_in(std::string_view command, int depth) {
  constexpr std::string_view shells = " sh bash dash zsh ksh ";
  const FirstProgram first = find_first_program(command);
  if (first.words.empty()) {
    return {};
  }
  const std::string& program = first.words.front();
  const std::string name = program.substr(program.rfind('/') + 1);
  const bool is_shell = has_name(shells, name);
  FirstScript found;
  if (is_python(program) || is_shell) {
    found = find_script_of_interpreter(first.words, is_shell, depth);
  } else if (name == "torchrun") {
    found.name = find_torchrun_script(first.words, 1);
  } else if (!program.starts_with('/') && program.find('/') != program.npos) {
    found.name = program;
  }
  if (found.name.empty() || !is_unexpanded(found.name)) {
    return {};
  }
  found.name = in_folder(first.folder, found.name);
  for (std::string& file : found.sourced) {
    file = in_folder(first.folder, file);
  }
  found.sourced.insert(found.sourced.end(), first.sourced.begin(), first.sourced.end());
  return found;
}

}  // namespace

FirstScript find_first_script(std::string_view command) {
  return find_script_in(command, 0);
}

std::string script_of(std::string_view command) {
  return find_first_script(command).name;
}

bool only_sets_variables(std::string_view text) {
  return text.find_first_of("`>") == text.npos && text.find("$(") == text.npos &&
         std::ranges::all_of(simple_commands(text), [](const std::string& command) {
           return keeps_files(command) && !is_sourcing(shell_words(command));
         });
}

}  // namespace remote
