#pragma once

#include <filesystem>
#include <string>

#include "config/init.hpp"

// Changes of `servers:` in the text of configs.yaml. Comments, the order of keys and all other settings stay.
// Each result was parsed, and differs from the old settings in nothing else. All throw Error (usage) for a
// text that does not load, or that cannot be changed in this way, because it has aliases, for example.

namespace remote::config {

struct EditedConfig {
  std::string text;
  bool is_new = false;  // the server was added
};

// Adds a server at the end, or changes the address of the server with this name: hostname, port (22 if there
// is none), and the given ones of user, key and jump host. `project` is the folder with the file.
EditedConfig put_server(const std::string& text, const std::filesystem::path& project,
                        const NewServer& server);

// Throws Error (usage) also if there is no such server.
std::string remove_server(const std::string& text, const std::filesystem::path& project,
                          const std::string& name);

}  // namespace remote::config
