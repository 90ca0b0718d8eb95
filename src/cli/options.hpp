#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <remote/job.hpp>
#include <remote/launch.hpp>

#include "cli/context.hpp"

// What several commands share: how they are added, and options with the same meaning.
//
// To add a command, write src/cli/commands/NAME.cpp with `void add_NAME(CLI::App& command, Context&
// context)`, which calls arguments_of() and adds the options, and add a row to commands.cpp. A command
// returns its exit code; only cli.cpp prints errors that were thrown, and only main ends the process.

namespace remote::cli {

// The arguments that the command's options fill in. `run` is called with them, and returns the exit code.
template <typename Arguments>
Arguments& arguments_of(CLI::App& command, Context& context, int (*run)(Context&, const Arguments&),
                        Arguments usual = {}) {
  const auto arguments = std::make_shared<Arguments>(std::move(usual));
  command.callback(
      [arguments, run, &context] { context.exit_code = context.only_parses ? 0 : run(context, *arguments); });
  return *arguments;  // the callback keeps it
}

// --server NAME, repeatable, with globs and commas.
CLI::Option* add_server_option(CLI::App& command, Context& context, std::vector<std::string>& globs);

// --env NAME VALUE and -e NAME=VALUE, both repeatable.
struct EnvOptions {
  std::vector<std::pair<std::string, std::string>> words;
  std::vector<std::string> assignments;

  void add(CLI::App& command);
  // All of them, in that order. Throws Error (usage) for what is no variable.
  Env collect() const;
  // The same, and says once that a '$' is not expanded.
  Env collect(Context& context) const;
};

// The command to run: --cmd C, a line for the server's shell, or words behind the options, which are taken
// exactly. A single word that stands there without "--" is such a line too, as it is for ssh.
struct CommandOption {
  std::optional<std::string> line;
  const CLI::App* command = nullptr;  // that has the option

  // `names`: "--cmd", and perhaps others.
  void add(CLI::App& command, Context& context,
           const std::string& help = "Command, a line for the server's shell",
           const std::string& names = "--cmd");
  // The line for the server's shell; nullopt where no command was given. Throws Error (usage) for an empty
  // one and for two. `name` is the subcommand's.
  std::optional<std::string> given(Context& context, const std::string& name) const;
  // The same; a usage error where no command was given. `hint`: what to give.
  std::string required(Context& context, const std::string& name, const std::string& hint) const;
};

// An option that takes a number of this unit within these bounds.
template <typename Number>
void add_number_option(CLI::App& command, const std::string& name, Number& value, const std::string& help,
                       const std::string& unit, int low, int high) {
  command.add_option(name, value, help)->type_name(unit)->check(CLI::Range(low, high));
}

// "90s", "10m", "8h", "7d" or "2w"; nullopt for another text.
std::optional<std::chrono::seconds> parse_span(const std::string& text);
// An instant so long ago, "7d" or "12h", or the beginning of a day, "2026-11-21". Throws Error (usage).
Instant parse_since(const std::string& text);

// A flag and its contrary, such as "--follow,!--no-follow". Without either, `value` stays as it is; some
// versions of CLI11 would set a std::optional<bool> to false then.
void add_switch(CLI::App& command, const std::string& names, std::optional<bool>& value,
                const std::string& help);

// The tags that a new job gets: --tag T, repeatable.
void add_new_tag_option(CLI::App& command, std::vector<std::string>& tags, const std::string& help);

// The word KEY of a command about a launch on record.
CLI::Option* add_launch_word(CLI::App& command, Context& context, std::string& launch,
                             const std::string& help);

// Which jobs a command is about: --job KEY, --launch KEY and --tag T, all repeatable.
struct JobOptions {
  std::vector<std::string> words;  // keys without an option
  std::vector<std::string> keys;
  std::vector<std::string> launches;
  std::vector<std::string> tags;

  void add(CLI::App& command, Context& context,
           const std::string& tag_help = "Jobs with this tag; repeated, jobs with all of them");
  // The keys without an option: for commands that take no other words.
  void add_words(CLI::App& command, Context& context);
  // Whether jobs are named, by themselves or with their launch.
  bool by_name() const { return !words.empty() || !keys.empty() || !launches.empty(); }
  bool named() const { return by_name() || !tags.empty(); }
  JobSelection selection() const;
};

}  // namespace remote::cli
