#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace remote {

// Whether a list of names, each surrounded by blanks, contains this one.
bool has_name(std::string_view names, std::string_view name);

// The simple commands in a shell line: the parts between its operators, without comments and the targets of
// redirections.
std::vector<std::string> simple_commands(std::string_view line);

// The index of the command that the program at `at` starts ("env", "nice -n 5", "timeout 60", "conda run");
// `at` if it starts none. May be past the end.
std::size_t skip_starter(const std::vector<std::string>& words, std::size_t at);

// The variables that a shell line sets for its Python programs, or for its first program if none is Python:
// with "NAME=VALUE program", export or env, also within `bash -c`. Skips values with "$" or "`".
std::vector<std::pair<std::string, std::string>> find_set_variables(std::string_view line);

// `env`, followed by these variables.
std::vector<std::pair<std::string, std::string>> with_set_variables(
    std::vector<std::pair<std::string, std::string>> env, std::string_view line);

}  // namespace remote
