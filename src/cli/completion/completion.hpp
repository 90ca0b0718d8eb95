#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/context.hpp"

// What the shell may offer for the word at the cursor, found by walking the command tree itself: a new
// subcommand or option completes without an entry anywhere.

namespace CLI {
class App;
}

namespace remote::cli {

struct Completion {
  // files, folders: the shell's own completion takes over.
  enum class Kind { words, files, folders };
  struct Word {
    std::string text;
    std::string description;  // may be ""
    bool minor = false;       // offered only when its beginning was typed
  };
  Kind kind = Kind::words;
  std::vector<Word> words;  // those that begin as the last word does
};

using Names = std::function<std::vector<Completion::Word>(NameKind)>;

// `words` stand behind the program's name; the last is the one to complete and may be "". `completers` says
// which options take names, and `names` has those. `with_command`: the subcommands that end with a command.
Completion complete(const CLI::App& root, const std::vector<std::string>& words,
                    const std::map<const CLI::Option*, NameKind>& completers, const Names& names,
                    const std::set<const CLI::App*>& with_command = {});

// The value of --project on the line, if it is given; "" otherwise. Quotes and backslashes taken off.
std::string project_on_line(const std::vector<std::string>& words);

// What bash, zsh or fish reads: the text of the file of this name beside this one, "remote.bash", compiled
// in.
std::string_view completion_script(std::string_view name);

}  // namespace remote::cli
