#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "config/init.hpp"

// Imports the servers of a new project from another tool's file. The file is untrusted: nothing in it is
// executed, files that it names are not read, and every value is validated as in `remote init`.

namespace remote::project {

enum class ServerListForm { hostfile, ssh_config, skypilot, dstack, ansible_ini, ansible_yaml };

struct ServerList {
  ServerListForm form = ServerListForm::hostfile;
  std::vector<config::NewServer> servers;  // in the order of the file, without repetitions
  std::vector<std::string> left_out;       // settings that are not imported: "gpu-1: ansible_password"
};

// Detects the form from the contents. `file`: the name in error messages; `folder`: relative paths in the
// file start there; `project`: the folder of the new project. Throws Error (usage), with the line if
// possible, for invalid contents or a file without servers.
ServerList read_server_list(std::string_view text, const std::string& file,
                            const std::filesystem::path& folder, const std::filesystem::path& project);

}  // namespace remote::project
