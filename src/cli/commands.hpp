#pragma once

#include <span>
#include <string_view>

namespace CLI {
class App;
}

namespace remote::cli {

class Context;

// A command of `remote`. This single declaration determines the command line, its help, the completion, the
// manual pages and the README's table (checked by a test).
struct Command {
  std::string_view name;
  std::string_view group;                            // the heading in `remote --help`
  std::string_view about;                            // description: a verb and its object
  std::string_view example;                          // one per line
  void (*add)(CLI::App& command, Context& context);  // adds its options and its callback
};

// In the order of `remote --help`.
std::span<const Command> all_commands();
// nullptr if there is none.
const Command* find_command(std::string_view name);

}  // namespace remote::cli
