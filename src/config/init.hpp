#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// What `remote init` (and `remote sandbox up`) writes: .remote/configs.yaml, .remote/exclude.txt and
// .remote/.gitignore.

namespace remote::config {

struct NewServer {
  std::string name;
  std::string hostname;
  std::optional<std::string> username;
  std::optional<int> port;
  std::optional<std::string> private_key;  // as configs.yaml is to have it
  std::optional<std::string> proxy_jump{};
  std::optional<std::string> internal_address{};
};

struct NewProject {
  std::filesystem::path folder;
  std::optional<std::string> name;  // default: the folder's name
  std::vector<NewServer> servers;
  std::string manager{};  // of the Python environment; "": the usual one
};

// The two parts of "NAME=ADDRESS". Throws Error (usage).
std::pair<std::string, std::string> split_new_server(const std::string& text);
// "NAME=[USER@]HOST[:PORT]"; an IPv6 address as [ADDRESS] or [ADDRESS]:PORT. Throws Error (usage).
NewServer parse_new_server(const std::string& text);
// The same, the two parts given apart.
NewServer make_new_server(const std::string& name, const std::string& address);

// The server of an address, or of the ssh command that a provider shows. `here` is the current folder, for a
// relative key. Adds the options that configs.yaml has no key for to `left_out`. Throws Error (usage).
NewServer read_new_server(const std::string& name, const std::string& address,
                          const std::filesystem::path& here, const std::filesystem::path& project,
                          std::vector<std::string>& left_out);

// A key's path as it is written into configs.yaml: relative to the project where it lies inside, else with
// "~/" where it lies in the home folder, else absolute. A relative `key` is relative to `here`.
std::string private_key_value(const std::string& key, const std::filesystem::path& here,
                              const std::filesystem::path& project);

// The text of configs.yaml: the values given, and every other key as a comment. Throws Error (usage) when
// the values would not load.
std::string new_config_text(const NewProject& project);

struct InitResult {
  std::vector<std::string> created;   // ".remote/configs.yaml", …
  std::vector<std::string> existing;  // left as they were
};

// Writes the files that are missing, each whole or not at all; never touches one that exists. Throws Error
// (usage) before anything is written when the values would not load.
InitResult init_project(const NewProject& project);

// Writes .remote/.gitignore where it is missing; false where it is there.
bool write_gitignore(const std::filesystem::path& project);

// A text as a YAML scalar that every reader reads as a text.
std::string yaml_text(const std::string& text);

}  // namespace remote::config
