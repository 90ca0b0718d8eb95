#include <memory>

#include "cli/commands.hpp"
#include "cli/completion.hpp"

// remote completion bash|zsh|fish: the script that asks `remote __complete` at each TAB.

namespace remote::cli {

void add_completion(CLI::App& app, Context& context) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print the completion script of a shell");
  command->add_option("shell", *shell, "The shell")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([shell, &context] { context.terminal.out(completion_script(*shell)); });
}

}  // namespace remote::cli
