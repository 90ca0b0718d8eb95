#include "base/simple_commands.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "base/command.hpp"

namespace remote {
namespace {

constexpr std::string_view between_words = " \t\r\n";

// Programs that start a command.
struct Starter {
  std::string_view names;
  std::string_view options;   // those whose value is the next word
  std::size_t arguments = 0;  // before the command, such as the time of "timeout 60 CMD"
};
constexpr std::array starters = {
    Starter{" exec nohup setsid command ", " -a "},
    Starter{" env ", " -u --unset -C --chdir "},
    Starter{" time ", " -f --format -o --output "},
    Starter{" nice ionice ", " -n --adjustment -c --class --classdata "},
    Starter{" timeout ", " -k --kill-after -s --signal ", 1},
    Starter{" taskset ", "", 1},
    Starter{" stdbuf ", " -i -o -e --input --output --error "},
    Starter{" xargs ",
            " -n -I -P -L -s -a -d -E --max-args --max-procs --max-lines --max-chars --arg-file "
            "--delimiter "},
    Starter{" numactl ", " -N -m -C -i --cpunodebind --membind --physcpubind --interleave "},
    Starter{" conda mamba micromamba ", " -n --name -p --prefix -r --root-prefix --cwd "},
    Starter{" uv ",
            " -p --python -i --index-url --with-editable --with-requirements --project --directory "
            "--extra --group --only-group --no-group --package --env-file --with "},
    Starter{" poetry pipenv pdm pixi ", " -C --directory -P --project -p -e --environment --manifest-path "}};

using Variables = std::vector<std::pair<std::string, std::string>>;

void set_variable(Variables& variables, const std::string& assignment) {
  const std::size_t equals = assignment.find('=');
  const std::string name = assignment.substr(0, equals);
  std::erase_if(variables, [&](const auto& one) { return one.first == name; });
  if (assignment.find_first_of("$`") == std::string::npos) {
    variables.emplace_back(name, assignment.substr(equals + 1));
  }
}

struct SimpleCommand {
  std::string program;  // "" if there are only assignments
  Variables own;        // set only for this program
  std::string line;     // the script of `bash -c`
};

SimpleCommand read_command(const std::string& text, Variables& shell) {
  SimpleCommand command;
  const std::vector<std::string> words = shell_words(text);
  std::vector<std::string> assignments;
  std::size_t at = 0;
  while (at < words.size()) {
    if (is_assignment(words[at])) {
      assignments.push_back(words[at++]);
    } else if (has_name(" if then else elif while until do { ! ", words[at])) {
      ++at;
    } else if (const std::size_t behind = skip_starter(words, at); behind != at) {
      at = behind;
    } else {
      break;
    }
  }
  const std::string first = at < words.size() ? words[at] : "";
  const bool is_export = first == "export";
  for (std::size_t i = at + 1; is_export && i < words.size(); ++i) {
    if (is_assignment(words[i])) {
      assignments.push_back(words[i]);
    }
  }
  command.program = is_export ? "" : first;
  command.own = shell;
  for (const std::string& assignment : assignments) {
    set_variable(command.program.empty() ? shell : command.own, assignment);
  }
  const std::string name = first.substr(first.rfind('/') + 1);
  if (at + 2 < words.size() && has_name(" sh bash dash zsh ", name) && has_name(" -c -lc ", words[at + 1])) {
    command.line = words[at + 2];
  }
  return command;
}

bool is_python_program(const SimpleCommand& command) {
  return is_python(command.program) || command.program.ends_with(".py");
}

// The Python program in a line, with the variables that all of its Python programs have; otherwise the first
// program.
std::optional<SimpleCommand> find_program(std::string_view line, Variables& shell, int depth) {
  constexpr std::string_view builtins =
      " cd [ [[ test true false : set unset source . echo printf ulimit wait ";
  constexpr int deepest = 3;
  std::optional<SimpleCommand> found;
  for (const std::string& text : simple_commands(line)) {
    SimpleCommand command = read_command(text, shell);
    if (!command.line.empty() && depth < deepest) {
      Variables inner = command.own;
      if (const auto within = find_program(command.line, inner, depth + 1)) {
        command = *within;
      }
    }
    if (found && is_python_program(*found) && is_python_program(command)) {
      std::erase_if(found->own, [&](const auto& one) {
        return std::ranges::find(command.own, one) == command.own.end();
      });
    } else if (is_python_program(command) ||
               (!found && !command.program.empty() && !has_name(builtins, command.program))) {
      found = std::move(command);
    }
  }
  return found;
}

}  // namespace

bool has_name(std::string_view names, std::string_view name) {
  return !name.empty() && names.find(fmt::format(" {} ", name)) != std::string_view::npos;
}

std::vector<std::string> simple_commands(std::string_view line) {
  std::vector<std::string> commands(1);
  char quote = 0;
  bool target = false;  // within the word after '<' or '>'
  for (std::size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    const bool word_begins = at == 0 || between_words.find(line[at - 1]) != std::string_view::npos;
    if (c == '\\' && quote != '\'' && at + 1 < line.size()) {
      commands.back() += target ? "" : std::string{c, line[at + 1]};
      ++at;
      continue;
    }
    if (quote != '\'' && line.substr(at, 3) == "$((") {
      commands.back() += target ? "" : "$";  // arithmetic contains no commands
      at = std::min(line.find("))", at), line.size() - 2) + 1;
      continue;
    }
    if (quote != 0) {
      quote = c == quote ? '\0' : quote;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '#' && word_begins) {
      at = std::min(line.find('\n', at), line.size()) - 1;
      continue;
    } else if (c == '<' || c == '>' || (c == '&' && at > 0 && line[at - 1] == '>')) {
      std::string& command = commands.back();
      while (!target && !command.empty() && command.back() >= '0' && command.back() <= '9') {
        command.pop_back();  // the descriptor in "2>"
      }
      target = true;
      at = std::min(line.find_first_not_of(" \t<>&", at + 1), line.size()) - 1;
      continue;
    } else if (std::string_view("|&;()\n").find(c) != std::string_view::npos) {
      commands.emplace_back();
      target = false;
      continue;
    } else if (between_words.find(c) != std::string_view::npos) {
      target = false;
    }
    if (!target) {
      commands.back() += c;
    }
  }
  return commands;
}

std::size_t skip_starter(const std::vector<std::string>& words, std::size_t at) {
  if (at >= words.size()) {
    return at;
  }
  const std::string name = words[at].substr(words[at].rfind('/') + 1);
  const auto* starter =
      std::ranges::find_if(starters, [&](const Starter& one) { return has_name(one.names, name); });
  const bool only_asks = name == "command" && at + 1 < words.size() && has_name(" -v -V ", words[at + 1]);
  if (starter == starters.end() || only_asks) {
    return at;
  }
  ++at;
  while (at < words.size() && (words[at].starts_with('-') || words[at] == "run")) {
    const bool has_value = has_name(starter->options, words[at]);
    if (words[at] == "-m" && !has_value) {
      break;  // "uv run -m MODULE"
    }
    at += has_value ? 2 : 1;
  }
  return at + starter->arguments;
}

Variables find_set_variables(std::string_view line) {
  Variables shell;
  const auto program = find_program(line, shell, 0);
  return program ? program->own : Variables();
}

Variables with_set_variables(Variables env, std::string_view line) {
  const Variables set = find_set_variables(line);
  env.insert(env.end(), set.begin(), set.end());
  return env;
}

}  // namespace remote
