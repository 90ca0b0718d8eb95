#include "cli/parser.hpp"

#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/context.hpp"

namespace remote::cli {
namespace {

void add_global_options(CLI::App& app, Context& context) {
  app.add_option("--project", context.options.project,
                 "Project folder (default: this folder or one above it)")
      ->type_name("DIR");
  app.add_option("--color", context.options.color, "Colors (default: auto)")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  app.add_flag("-v,--verbose", context.options.verbose, "Log to stderr (-vv: more)");
  app.add_flag("--quiet", context.options.quiet, "Print only data and errors");
  app.add_flag("--json", context.options.json, "Print data as one JSON value");
  app.add_flag("--jsonl", context.options.jsonl, "Print events as JSON, one per line");
  app.add_flag("--strict", context.options.strict, "Treat an unknown key in configs.yaml as an error");
}

}  // namespace

void add_commands(CLI::App& app, Context& context, std::string_view only) {
  app.require_subcommand(0, 1);
  app.fallthrough();  // global options are also accepted after the subcommand
  add_global_options(app, context);
  for (const Command& command : all_commands()) {
    if (only.empty() || command.name == only) {
      command.add(*app.add_subcommand(std::string(command.name), std::string(command.about)), context);
    }
  }
}

ParsedLine parse_line(const std::vector<std::string>& words) {
  ParsedLine parsed;
  if (words.empty() || find_command(words.front()) == nullptr) {
    return parsed;
  }
  Context context{Environment{}};
  context.only_parses = true;
  CLI::App app("", "remote");
  add_commands(app, context, words.front());
  try {
    const CommandLine line = read_command_line(app, context.with_command, words);
    parsed.program = line.command;
    app.parse(std::vector<std::string>(line.words.rbegin(), line.words.rend()));
    parsed.is_accepted = true;
  } catch (const CLI::ParseError&) {
    parsed.is_accepted = false;
  }
  if (app.get_subcommands().empty()) {
    return parsed;
  }
  const CLI::App& command = *app.get_subcommands().front();
  parsed.command = command.get_name();
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() > 0) {
      parsed.values[option->get_name()] = option->results();
    }
  }
  return parsed;
}

std::vector<std::string> words_behind_options(const std::string& command,
                                              const std::vector<std::string>& words) {
  Context context{Environment{}};
  CLI::App app("", "remote");
  add_commands(app, context, command);
  std::vector<std::string> all{command};
  all.insert(all.end(), words.begin(), words.end());
  const auto line = read_command_line(app, {app.get_subcommand(command)}, all);
  const std::size_t count = line.command ? line.command->words.size() + (line.command->marked ? 1 : 0) : 0;
  return {words.end() - static_cast<std::ptrdiff_t>(count), words.end()};
}

}  // namespace remote::cli
