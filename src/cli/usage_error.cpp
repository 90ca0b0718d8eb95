#include "cli/usage_error.hpp"

#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/strings.hpp"

namespace remote::cli {
namespace {

// The innermost subcommand that was named.
const CLI::App& named_command(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
  }
  return *command;
}

std::string full_name(const CLI::App& command) {
  return command.get_parent() != nullptr ? full_name(*command.get_parent()) + " " + command.get_name()
                                         : command.get_name();
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        names.push_back("--" + name);
      }
    }
  }
  return names;
}

std::vector<std::string> command_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* sub : command.get_subcommands([](const CLI::App*) { return true; })) {
    if (!sub->get_group().empty()) {
      names.push_back(sub->get_name());
    }
  }
  return names;
}

// A word that nothing took.
std::optional<std::string> unknown_word(const CLI::App& app, bool option) {
  for (const std::string& word : app.remaining(true)) {
    if (word.starts_with("-") == option) {
      return word;
    }
  }
  return std::nullopt;
}

}  // namespace

Error usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = named_command(app);
  const std::string name = full_name(command);
  const std::string help = fmt::format("{} --help tells what it takes", name);
  const auto subcommands = command_names(command);
  if (const auto unknown = unknown_word(app, false); unknown && !subcommands.empty()) {
    const std::string near = did_you_mean(*unknown, subcommands);
    return Error::usage(fmt::format("{} has no command '{}'", name, *unknown), "",
                        near.empty() ? help : near + " " + help);
  }
  if (const auto unknown = unknown_word(app, true)) {
    const std::string near = did_you_mean(unknown->substr(0, unknown->find('=')), option_names(command));
    return Error::usage(fmt::format("{} has no option {}", name, *unknown), "",
                        near.empty() ? help : near + " " + help);
  }
  if (const auto unknown = unknown_word(app, false)) {
    return Error::usage(fmt::format("{} takes no '{}'", name, *unknown), "",
                        fmt::format("a value with blanks needs quotes; {}", help));
  }
  if (!subcommands.empty() && error.get_name() == "RequiredError") {
    return Error::usage(fmt::format("{} needs a command", name), join(subcommands, ", "), help);
  }
  return Error::usage(fmt::format("{}: {}", name, error.what()), "", help);
}

}  // namespace remote::cli
