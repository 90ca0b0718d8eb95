#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace remote::cli {

class Context;

// The output of --help for a command, wrapped at `width` columns.
std::string help_text(const CLI::App& command, const std::string& name, std::size_t width);

// The width for help, in columns.
std::size_t help_width(const Context& context);

// Parts of that text that the manual pages also use: "Usage: remote run [OPTIONS]" with a newline, the
// visible options, "-e, --env NAME=VALUE", "COMMAND…", and the examples.
std::string usage_line(const CLI::App& command, const std::string& name);
std::vector<const CLI::Option*> shown_options(const CLI::App& command);
std::string option_name(const CLI::Option& option);
std::string positional_name(const CLI::Option& option);
std::vector<std::string> examples_of(const CLI::App& command);
// The subcommands that are not hidden.
std::vector<const CLI::App*> shown_commands(const CLI::App& command);

}  // namespace remote::cli
