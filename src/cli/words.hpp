#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace remote::cli {

// The option with this name ("--server", "-s") of a command or, for a global option, of a parent command;
// nullptr if none.
const CLI::Option* find_option(const CLI::App* command, const std::string& name);

// The minimum number of values of the option.
std::size_t count_values(const CLI::Option& option);

// A command given as separate words on the command line.
struct CommandWords {
  std::vector<std::string> words;
  bool marked = false;  // it follows "--"
};

// A command line prepared for CLI11.
struct CommandLine {
  std::vector<std::string> words;       // the words that CLI11 parses
  std::optional<CommandWords> command;  // the words that it does not parse
};

// Splits the words after the program's name. For the subcommands in `with_command`, everything after "--", or
// from the first word that belongs to no option, is a command, and its words are never read as options. If
// the subcommand also takes a name (a positional), a first word for which `is_name` is true is that name.
// Also converts spellings of other launchers to CLI11's options: "--nproc_per_node" becomes --nproc-per-node,
// "--env NAME=VALUE" and "--env NAME VALUE" become -e NAME=VALUE.
CommandLine read_command_line(const CLI::App& app, const std::set<const CLI::App*>& with_command,
                              const std::vector<std::string>& words,
                              const std::function<bool(const std::string&)>& is_name = {});

// "`remote run --cmd 'df -h'`", a line that a message suggests, from its words behind "remote". Secrets in it
// are masked, as in stored commands.
std::string write_line(std::vector<std::string> words);

// "put the whole line in quotes: `remote run --cmd 'df -h'`", if the value of --cmd is followed by words that
// belong to no option of `command`: the options of `command` come before it. "" if there are no such words,
// or no such line is valid.
std::string quotes_hint(const CLI::App& command, const std::vector<std::string>& words);

// The flag of `remote` itself directly behind --cmd and a value of one word, which may be meant for that
// program: "-v" in {"run", "--cmd", "echo", "-v"}; "" if none.
std::string find_flag_behind_cmd(const CLI::App& command, const std::vector<std::string>& words);

// --help or --version, if it follows a value of --cmd without blanks, and so probably belongs to that value:
// "--cmd python3 --version". "": none. Other global options are often added at the end.
std::string find_own_option(const CLI::App& command, const std::vector<std::string>& words);

}  // namespace remote::cli
