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

// The option of this name ("--server", "-s") of a command or, as the global ones, of one above it; nullptr
// for none.
const CLI::Option* find_option(const CLI::App* command, const std::string& name);

// The least number of values of the option.
std::size_t count_values(const CLI::Option& option);

// A command that stands on the command line as words.
struct CommandWords {
  std::vector<std::string> words;
  bool marked = false;  // it stands behind "--"
};

// A command line, made ready for CLI11.
struct CommandLine {
  std::vector<std::string> words;       // what CLI11 is to read
  std::optional<CommandWords> command;  // what it is not to read
};

// Takes apart the words behind the program's name. For the subcommands in `with_command`, what stands behind
// "--" or begins with the first word that belongs to no option is a command, whose words are never taken for
// options. Of those that take a name besides (they have a positional), a first word that `is_name` is that
// one. Besides, spellings that other launchers have become those of CLI11's options: "--nproc_per_node" is
// --nproc-per-node, "--env NAME=VALUE" and "--env NAME VALUE" are -e NAME=VALUE.
CommandLine read_command_line(const CLI::App& app, const std::set<const CLI::App*>& with_command,
                              const std::vector<std::string>& words,
                              const std::function<bool(const std::string&)>& is_name = {});

// "put the whole line in quotes: `remote run --cmd 'df -h'`" if words follow the value of --cmd that no
// option of `command` takes: the options of `command` come before it. "" if there are none, or no such line
// works.
std::string quotes_hint(const CLI::App& command, const std::vector<std::string>& words);

// --help or --version, if it follows a value of --cmd without blanks and so probably belongs to the value's
// line: "--cmd python3 --version". "": none. Other global options are often added at the end.
std::string find_own_option(const CLI::App& command, const std::vector<std::string>& words);

}  // namespace remote::cli
