#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace remote {

// Whether a list of names, each with a blank around it, has this one.
bool has_name(std::string_view names, std::string_view name);

// The simple commands of a shell line: the parts between its operators, without comments and the targets of
// redirections.
std::vector<std::string> simple_commands(std::string_view line);

// Returns the index of the command that the program at `at` starts ("env", "nice -n 5", "timeout 60", "conda
// run"); `at` if it starts none. May be past the end.
std::size_t skip_starter(const std::vector<std::string>& words, std::size_t at);

// The variables that a shell line sets for its Python programs, or for its first program if none is Python:
// by "NAME=VALUE program", export or env, also within `bash -c`. Values with "$" or "`" are skipped.
std::vector<std::pair<std::string, std::string>> find_set_variables(std::string_view line);

// `env`, and these variables after it.
std::vector<std::pair<std::string, std::string>> with_set_variables(
    std::vector<std::pair<std::string, std::string>> env, std::string_view line);

}  // namespace remote
