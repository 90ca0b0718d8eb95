#pragma once

#include <string>
#include <string_view>

// Lines of shell text for servers, each with a newline. They throw Error (usage) for values that a shell
// cannot hold.

namespace remote::servers {

// Formats NAME='VALUE'.
std::string assign(std::string_view name, std::string_view value);
// Assigns a path on the server. "~/x" is relative to the home directory.
std::string assign_path(std::string_view name, std::string_view path);
// Formats export 'NAME=VALUE'.
std::string export_variable(const std::string& name, std::string_view value);
// Sources a file of src/server. Requires $remote_program, the folder of these files.
std::string source_file(std::string_view file);

}  // namespace remote::servers
