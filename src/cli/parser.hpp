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

struct ParsedLine {
  std::string command;                                     // "job-run"; "" if none
  std::map<std::string, std::vector<std::string>> values;  // of options ("--server") and arguments ("keys")
  std::optional<CommandWords> program;                     // the command to run, if given as separate words
  bool is_accepted = false;

  bool has(const std::string& option) const { return values.contains(option); }
};

// Parses the words after the program's name, starting with the command, without running anything.
ParsedLine parse_line(const std::vector<std::string>& words);

// The words starting with the first one that belongs to no option of the command, such as {"train.py", "x"}
// in {"--nproc-per-node", "2", "train.py", "x"}; includes the preceding "--", if any.
std::vector<std::string> words_behind_options(const std::string& command,
                                              const std::vector<std::string>& words);

}  // namespace remote::cli
