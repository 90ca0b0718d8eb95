#pragma once

#include <span>
#include <string_view>

namespace CLI {
class App;
}

namespace remote::cli {

class Context;

// A command of `remote`, declared once: the command line, its help, the completion, the manual pages and the
// README's table (which a test compares) follow from this.
struct Command {
  std::string_view name;
  std::string_view group;                            // the heading under which `remote --help` has it
  std::string_view about;                            // what it does: a verb and its object
  std::string_view example;                          // one a line
  void (*add)(CLI::App& command, Context& context);  // adds its options, and what it does
};

// In the order of `remote --help`.
std::span<const Command> all_commands();
// nullptr for none.
const Command* find_command(std::string_view name);

}  // namespace remote::cli
