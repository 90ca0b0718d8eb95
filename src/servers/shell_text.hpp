#pragma once

#include <string>
#include <string_view>

// Lines of sh text for servers. Each ends with a line break. They throw Error (usage) for values that a shell
// cannot have.

namespace remote::servers {

// NAME='VALUE'
std::string assign(std::string_view name, std::string_view value);
// Assigns a path on the server. "~/x" is in the home folder.
std::string assign_path(std::string_view name, std::string_view path);
// export 'NAME=VALUE'
std::string export_variable(const std::string& name, std::string_view value);
// Sources a file of src/server. Needs $remote_program, the folder of these files.
std::string source_file(std::string_view file);

}  // namespace remote::servers
