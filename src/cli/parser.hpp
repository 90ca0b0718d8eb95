#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/words.hpp"

namespace CLI {
class App;
}

namespace remote::cli {

class Context;

// Adds the global options and every command, or `only` this one.
void add_commands(CLI::App& app, Context& context, std::string_view only = {});

// A command line as the parser reads it.
struct ParsedLine {
  std::string command;                                     // "job-run"; "" for none
  std::map<std::string, std::vector<std::string>> values;  // of its options ("--server") and words ("keys")
  std::optional<CommandWords> program;                     // the command that it starts, if given as words
  bool is_accepted = false;

  bool has(const std::string& option) const { return values.contains(option); }
};

// Reads the words behind the program's name, the command first, and runs nothing.
ParsedLine parse_line(const std::vector<std::string>& words);

// The words from the first one on that belongs to no option of the command, such as {"train.py", "x"} of
// {"--nproc-per-node", "2", "train.py", "x"}; with the "--" before it, if there is one.
std::vector<std::string> words_behind_options(const std::string& command,
                                              const std::vector<std::string>& words);

}  // namespace remote::cli
