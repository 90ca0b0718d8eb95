#pragma once

#include <optional>
#include <string>
#include <vector>

#include <remote/error.hpp>

#include "cli/words.hpp"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace remote::cli {

class Context;

// The innermost command on the command line: "remote sandbox up".
std::string name_of_command(const CLI::App& app);

// The parser's error as a message for the user, with the command line that was probably meant.
Error usage_error(Context& context, const CLI::App& app, const CLI::ParseError& error,
                  const std::vector<std::string>& words);

// Throws Error (usage) if --cmd has a line without quotes, such as "--cmd ls --help", and the parser would
// read one of its words as a global option.
void check_quotes(const CLI::App& app, const std::vector<std::string>& words);

// Throws Error (usage) if a word before the command's second word begins with a dash or quote that text
// editors and web pages substitute: "—follow", "“python". `command`: as in CommandLine.
void check_typed_signs(const std::vector<std::string>& words, const std::optional<CommandWords>& command);

// The error of Remedy::name_script with the whole command line that names the script correctly; any other
// error unchanged.
Error with_script_line(const Context& context, const Error& error);

}  // namespace remote::cli
