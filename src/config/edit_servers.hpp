#pragma once

#include <filesystem>
#include <string>

#include "config/init.hpp"

// Edits `servers:` in the text of configs.yaml. Comments, the order of keys and all other settings are kept:
// each result is parsed, and compared with the old settings. All functions throw Error (usage) if the text is
// invalid, or cannot be edited this way, for example because it has aliases.

namespace remote::config {

struct EditedConfig {
  std::string text;
  bool is_new = false;  // the server was added
};

// Adds a server at the end, or changes the address of the server with this name: hostname, port (22 if not
// given), and user, key and jump host if given. `project`: the project's folder.
EditedConfig put_server(const std::string& text, const std::filesystem::path& project,
                        const NewServer& server);

// Also throws Error (usage) if the server does not exist.
std::string remove_server(const std::string& text, const std::filesystem::path& project,
                          const std::string& name);

}  // namespace remote::config
