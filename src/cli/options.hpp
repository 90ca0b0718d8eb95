#pragma once

#include <string>
#include <utility>
#include <vector>

#include <remote/job.hpp>
#include <remote/launch.hpp>

#include "cli/context.hpp"

namespace CLI {
class App;
}

// Options with the same meaning in several commands.

namespace remote::cli {

// --server NAME, repeatable, with globs.
void add_server_option(CLI::App& command, Context& context, std::vector<std::string>& globs);

// --env NAME VALUE and -e NAME=VALUE, both repeatable.
struct EnvOptions {
  std::vector<std::pair<std::string, std::string>> words;
  std::vector<std::string> assignments;

  void add(CLI::App& command);
  // All of them, in that order. Throws Error (usage) for what is no variable.
  Env collect() const;
};

// The tags that a new job gets: --tag T, repeatable.
void add_new_tag_option(CLI::App& command, std::vector<std::string>& tags, const std::string& help);

// Which jobs a command is about: --job KEY and --tag T, both repeatable.
struct JobOptions {
  std::vector<std::string> keys;
  std::vector<std::string> tags;

  void add(CLI::App& command, Context& context,
           const std::string& tag_help = "Jobs with this tag; with several, jobs that have all");
  bool named() const { return !keys.empty() || !tags.empty(); }
  JobSelection selection() const;
};
// --tag alone.
void add_tag_option(CLI::App& command, Context& context, std::vector<std::string>& tags,
                    const std::string& help);

}  // namespace remote::cli
