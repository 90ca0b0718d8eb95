#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "config/init.hpp"

// The servers of a new project, out of a file that other tools use. The file may come from anybody: nothing
// in it is run, no other file is read because it names one, and every value is checked as `remote init`
// checks it.

namespace remote::project {

enum class ServerListForm { hostfile, ssh_config, skypilot, dstack, ansible_ini, ansible_yaml };

struct ServerList {
  ServerListForm form = ServerListForm::hostfile;
  std::vector<config::NewServer> servers;  // in the order of the file, each name once
  std::vector<std::string> left_out;       // what configs.yaml does not get: "gpu-1: ansible_password"
};

// Recognizes the form by the content. `file` is the file's name in messages, `folder` the one that its
// relative paths start at, `project` the one of the new project. Throws Error (usage), with the line where
// there is one, for what is not understood and for a file that names no server.
ServerList read_server_list(std::string_view text, const std::string& file,
                            const std::filesystem::path& folder, const std::filesystem::path& project);

}  // namespace remote::project
