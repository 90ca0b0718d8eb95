#pragma once

#include <cstddef>
#include <string>

namespace CLI {
class App;
}

namespace remote::cli {

class Context;

// What --help prints for a command, in lines of at most `width` columns that end between words.
std::string help_text(const CLI::App& command, const std::string& name, std::size_t width);

// `remote help [COMMAND]`.
void add_help(CLI::App& app, Context& context);

}  // namespace remote::cli
