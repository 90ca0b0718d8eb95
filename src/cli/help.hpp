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

// What --help prints for a command, in lines of at most `width` columns that end between words.
std::string help_text(const CLI::App& command, const std::string& name, std::size_t width);

// In how many columns help is printed.
std::size_t help_width(const Context& context);

// The parts of that text, which the manual pages have too: "Usage: remote run [OPTIONS]" with a line's end,
// the options that are shown, "-e, --env NAME=VALUE", "COMMAND…", and the examples.
std::string usage_line(const CLI::App& command, const std::string& name);
std::vector<const CLI::Option*> shown_options(const CLI::App& command);
std::string option_name(const CLI::Option& option);
std::string positional_name(const CLI::Option& option);
std::vector<std::string> examples_of(const CLI::App& command);
// The subcommands that are no secret.
std::vector<const CLI::App*> shown_commands(const CLI::App& command);

}  // namespace remote::cli
