#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/context.hpp"

// Completions for the word at the cursor, found by walking the command tree: new subcommands and options are
// completed automatically.

namespace CLI {
class App;
}

namespace remote::cli {

struct Completion {
  // files, folders: use the shell's own completion.
  enum class Kind { words, files, folders };
  struct Word {
    std::string text;
    std::string description;  // may be ""
    bool minor = false;       // only offered once its beginning has been typed
  };
  Kind kind = Kind::words;
  std::vector<Word> words;  // those that start with the last word
};

using Names = std::function<std::vector<Completion::Word>(NameKind)>;

// `words`: the words after the program's name; the last one is to be completed and may be "". `completers`:
// the options with names as values; `names`: returns these names. `with_command`: the subcommands that end
// with a command.
Completion complete(const CLI::App& root, const std::vector<std::string>& words,
                    const std::map<const CLI::Option*, NameKind>& completers, const Names& names,
                    const std::set<const CLI::App*>& with_command = {});

// The value of --project on the line, without quotes and backslashes; "" if it is not given.
std::string project_on_line(const std::vector<std::string>& words);

// The completion script for bash, zsh or fish: the file with this name in this folder ("remote.bash"),
// compiled in.
std::string_view completion_script(std::string_view name);

}  // namespace remote::cli
