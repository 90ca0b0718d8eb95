#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// The files that `remote init` (and `remote sandbox up`) writes: .remote/configs.yaml, .remote/exclude.txt
// and .remote/.gitignore.

namespace remote::config {

struct NewServer {
  std::string name;
  std::string hostname;
  std::optional<std::string> username;
  std::optional<int> port;
  std::optional<std::string> private_key;  // as written to configs.yaml
  std::optional<std::string> proxy_jump{};
  std::optional<std::string> internal_address{};
};

struct NewProject {
  std::filesystem::path folder;
  std::optional<std::string> name;  // default: the folder's name
  std::vector<NewServer> servers;
  std::string manager{};  // for the Python environment; "": the default
};

// Splits "NAME=ADDRESS". Throws Error (usage).
std::pair<std::string, std::string> split_new_server(const std::string& text);
// Parses "NAME=[USER@]HOST[:PORT]"; an IPv6 address is written [ADDRESS] or [ADDRESS]:PORT. Throws Error
// (usage).
NewServer parse_new_server(const std::string& text);
// As parse_new_server(), with the two parts already split.
NewServer make_new_server(const std::string& name, const std::string& address);

// Parses an address, or the ssh command that a provider displays. `here`: the current folder, for a relative
// key path. Adds options without a key in configs.yaml to `left_out`. Throws Error (usage).
NewServer read_new_server(const std::string& name, const std::string& address,
                          const std::filesystem::path& here, const std::filesystem::path& project,
                          std::vector<std::string>& left_out);

// The path of a key for configs.yaml: relative to the project if it is inside, otherwise with "~/" if it is
// in the home directory, otherwise absolute. A relative `key` is relative to `here`.
std::string private_key_value(const std::string& key, const std::filesystem::path& here,
                              const std::filesystem::path& project);

// The text of configs.yaml, with the given values, and every other key as a comment. Throws Error (usage) if
// the values are invalid.
std::string new_config_text(const NewProject& project);

struct InitResult {
  std::vector<std::string> created;   // ".remote/configs.yaml", …
  std::vector<std::string> existing;  // existing files, not changed
};

// Writes the missing files, each atomically; never changes an existing one. Throws Error (usage) before
// writing anything if the values are invalid.
InitResult init_project(const NewProject& project);

// Writes .remote/.gitignore; returns false if it exists.
bool write_gitignore(const std::filesystem::path& project);

// A YAML scalar that every reader reads as this string.
std::string yaml_text(const std::string& text);

}  // namespace remote::config
