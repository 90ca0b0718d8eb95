#include "cli/options.hpp"

#include <cstdlib>

#include <CLI/App.hpp>

#include "base/shell_quote.hpp"

namespace remote::cli {
namespace {

// An option that is repeated for each name of this kind.
void add_names(CLI::App& command, Context& context, const std::string& option,
               std::vector<std::string>& names, NameKind kind, const std::string& type,
               const std::string& help) {
  context.completers[command.add_option(option, names, help)->type_name(type)->allow_extra_args(false)] =
      kind;
}

}  // namespace

void add_server_option(CLI::App& command, Context& context, std::vector<std::string>& globs) {
  add_names(command, context, "--server", globs, NameKind::servers, "NAME",
            "Only this server; may be repeated and takes globs (default: all)");
}

void EnvOptions::add(CLI::App& command) {
  // allow_extra_args(false): each use takes its two words and no more, and CLI11 does not read a value in
  // brackets as a list.
  command.add_option("--env", words, "Sets a variable for the command: two words, repeatable")
      ->type_name("NAME VALUE")
      ->allow_extra_args(false);
  command
      .add_option("-e", assignments, "The short form of --env; NAME alone takes the value that it has here")
      ->type_name("NAME[=VALUE]")
      ->allow_extra_args(false);
}

Env EnvOptions::collect() const {
  Env all = words;
  for (const std::string& assignment : assignments) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos) {
      const char* value = std::getenv(assignment.c_str());
      if (value == nullptr) {
        throw Error::usage("-e " + assignment, "there is no such variable here, and no '=' in it",
                           "write -e NAME=VALUE, or set the variable");
      }
      all.emplace_back(assignment, value);
      continue;
    }
    all.emplace_back(assignment.substr(0, equals), assignment.substr(equals + 1));
  }
  for (const auto& [name, value] : all) {
    check_variable(name);
  }
  return all;
}

void add_cmd_option(CLI::App& command, std::string& text, const std::string& help) {
  command.add_option("--cmd", text, help)->type_name("C")->required();
}

void add_new_tag_option(CLI::App& command, std::vector<std::string>& tags, const std::string& help) {
  command.add_option("--tag", tags, help)->type_name("T")->allow_extra_args(false);
}

void add_tag_option(CLI::App& command, Context& context, std::vector<std::string>& tags,
                    const std::string& help) {
  add_names(command, context, "--tag", tags, NameKind::tags, "T", help);
}

void add_launch_option(CLI::App& command, Context& context, std::vector<std::string>& launches,
                       const std::string& help) {
  add_names(command, context, "--launch", launches, NameKind::launches, "KEY|last",
            help + "; KEY is that of any of its jobs");
}

void JobOptions::add(CLI::App& command, Context& context, const std::string& tag_help) {
  add_names(command, context, "--job", keys, NameKind::jobs, "KEY",
            "The job with this key, or whose id begins so; may be repeated");
  add_launch_option(command, context, launches, "All jobs of this launch; may be repeated");
  add_tag_option(command, context, tags, tag_help);
}

void JobOptions::add_words(CLI::App& command, Context& context) {
  context.completers[command.add_option("keys", words, "The same as --job KEY; 45-48 is a whole launch")
                         ->type_name("KEY")] = NameKind::jobs;
}

JobSelection JobOptions::selection() const {
  JobSelection selection{.names = {}, .launches = launches, .tags = tags};
  for (const auto* names : {&words, &keys}) {
    for (const std::string& name : *names) {
      // as job-list shows a launch; ids have no '-'
      const bool launch = name.find('-') != std::string::npos && !name.starts_with('-');
      (launch ? selection.launches : selection.names).push_back(name);
    }
  }
  return selection;
}

}  // namespace remote::cli
