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

// Code that several commands share: how to add a command, and options with the same meaning.
//
// To add a command, write src/cli/commands/NAME.cpp with `void add_NAME(CLI::App& command, Context&
// context)`, which
// calls arguments_of() and adds the options, and add a row to commands.cpp. A command returns its exit code;
// only
// cli.cpp prints thrown errors, and only main exits the process.

namespace remote::cli {

// Returns the arguments for the command's options to fill. When the command runs, calls `run` with them,
// which returns the exit code.
template <typename Arguments>
Arguments& arguments_of(CLI::App& command, Context& context, int (*run)(Context&, const Arguments&),
                        Arguments usual = {}) {
  const auto arguments = std::make_shared<Arguments>(std::move(usual));
  command.callback(
      [arguments, run, &context] { context.exit_code = context.only_parses ? 0 : run(context, *arguments); });
  return *arguments;  // owned by the callback
}

// --server NAME, repeatable, with globs and commas.
CLI::Option* add_server_option(CLI::App& command, Context& context, std::vector<std::string>& globs);

// --env NAME VALUE and -e NAME=VALUE, both repeatable.
struct EnvOptions {
  std::vector<std::pair<std::string, std::string>> words;
  std::vector<std::string> assignments;

  void add(CLI::App& command);
  // All of them, in that order. Throws Error (usage) for an invalid variable.
  Env collect() const;
  // Also prints a notice, once, that '$' is not expanded.
  Env collect(Context& context) const;
};

// The command to run: --cmd C, a line for the server's shell; or words after the options, which are passed on
// exactly. A single word without "--" is also a line for the shell, as in ssh.
struct CommandOption {
  std::optional<std::string> line;
  const CLI::App* command = nullptr;  // the subcommand with this option

  // `names`: "--cmd", and possibly others.
  void add(CLI::App& command, Context& context,
           const std::string& help = "Command, a line for the server's shell",
           const std::string& names = "--cmd");
  // The line for the server's shell; nullopt if no command was given. Throws Error (usage) for an empty
  // command and for two commands. `name`: of the subcommand.
  std::optional<std::string> given(Context& context, const std::string& name) const;
  // As given(), but throws Error (usage) if no command was given. `hint`: what to give.
  std::string required(Context& context, const std::string& name, const std::string& hint) const;
};

// An option for a number with this unit and these limits.
template <typename Number>
void add_number_option(CLI::App& command, const std::string& name, Number& value, const std::string& help,
                       const std::string& unit, int low, int high) {
  command.add_option(name, value, help)->type_name(unit)->check(CLI::Range(low, high));
}

// Parses "90s", "10m", "8h", "7d" or "2w"; nullopt for other text.
std::optional<std::chrono::seconds> parse_span(const std::string& text);
// A time this long ago, "7d" or "12h", or the start of a day, "2026-11-21". Throws Error (usage).
Instant parse_since(const std::string& text);

// A flag and its opposite, such as "--follow,!--no-follow". If neither is given, `value` is unchanged; some
// versions of CLI11 would set a std::optional<bool> to false.
void add_switch(CLI::App& command, const std::string& names, std::optional<bool>& value,
                const std::string& help);

// --tag T, repeatable: the tags of a new job.
void add_new_tag_option(CLI::App& command, std::vector<std::string>& tags, const std::string& help);

// The argument KEY of a command for a recorded launch.
CLI::Option* add_launch_word(CLI::App& command, Context& context, std::string& launch,
                             const std::string& help);

// Selects the jobs for a command: --job KEY, --launch KEY and --tag T, all repeatable.
struct JobOptions {
  std::vector<std::string> words;  // keys given as arguments
  std::vector<std::string> keys;
  std::vector<std::string> launches;
  std::vector<std::string> tags;

  void add(CLI::App& command, Context& context,
           const std::string& tag_help = "Jobs with this tag; repeated, jobs with all of them");
  // Accepts keys as arguments, for commands without other arguments.
  void add_words(CLI::App& command, Context& context);
  // Whether jobs are named, individually or by their launch.
  bool by_name() const { return !words.empty() || !keys.empty() || !launches.empty(); }
  bool named() const { return by_name() || !tags.empty(); }
  JobSelection selection() const;
};

}  // namespace remote::cli
