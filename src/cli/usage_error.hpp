#pragma once

#include <CLI/CLI.hpp>
#include <remote/error.hpp>

namespace remote::cli {

// What the parser of the command line found wrong, for a person: names the command, and what was probably
// meant.
Error usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace remote::cli
