#include "config/init.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>

#include <remote/error.hpp>
#include <unistd.h>

#include "base/files.hpp"
#include "base/hashing.hpp"
#include "base/strings.hpp"
#include "config/config.hpp"
#include "config/init_templates.hpp"
#include "config/ssh_line.hpp"
#include "config/validate.hpp"
#include "config/yaml_reader.hpp"

namespace remote::config {
namespace fs = std::filesystem;
namespace {

// Whether YAML readers of all versions read this as a string even without quotes.
bool is_plain(const std::string& text) {
  const std::string lower = lower_case(text);
  const bool address = std::ranges::count(text, '.') >= 2;  // 3.19.32.53 is not a number
  if (text.empty() || !((lower[0] >= 'a' && lower[0] <= 'z') || text[0] == '/' || text[0] == '_' ||
                        text.starts_with("./") || text.starts_with("~/") || address)) {
    return false;
  }
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyz0123456789_./@+-";
  constexpr std::array words = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"};
  return lower.find_first_not_of(plain, 1) == std::string::npos &&
         std::ranges::find(words, lower) == words.end();
}

// Creates a file with this content atomically; returns false if it exists. Uses link(2) because rename(2)
// would overwrite a file that another process has just created.
bool create_file(const fs::path& path, std::string_view content, mode_t mode) {
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(path, ignored))) {
    return false;
  }
  const fs::path fresh = path.parent_path() / ("." + path.filename().string() + "." + random_hex(8));
  write_file_atomic(fresh, content, mode);
  if (::link(fresh.c_str(), path.c_str()) == 0) {
    ::unlink(fresh.c_str());
    return true;
  }
  const int error = errno;
  if (error == EEXIST) {
    ::unlink(fresh.c_str());
    return false;
  }
  if ((error == EPERM || error == EOPNOTSUPP || error == ENOSYS) &&
      ::rename(fresh.c_str(), path.c_str()) == 0) {
    return true;  // a file system without hard links
  }
  ::unlink(fresh.c_str());
  throw Error("cannot write " + path.string(), std::generic_category().message(error),
              "can you write to that folder, and does the disk have space?");
}

}  // namespace

std::string yaml_text(const std::string& text) {
  if (is_plain(text)) {
    return text;
  }
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
    }
    quoted += c;
  }
  return quoted + "\"";
}

NewServer make_new_server(const std::string& name, const std::string& address) {
  if (const auto problem = server_name_problem(name)) {
    throw Error::usage("server '" + printable(name) + "'", *problem);
  }
  const HostPort at = parse_host_port(address, "server '" + name + "'");
  return NewServer{name, at.host, at.user, at.port, std::nullopt};
}

std::pair<std::string, std::string> split_new_server(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) {
    throw Error::usage("server " + printable(text), "there is no '='",
                       "write it as NAME=[USER@]HOST[:PORT], such as first-server=ubuntu@3.19.32.53");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

NewServer parse_new_server(const std::string& text) {
  const auto [name, address] = split_new_server(text);
  return make_new_server(name, address);
}

std::string private_key_value(const std::string& key, const fs::path& here, const fs::path& project) {
  const fs::path path = (here / expand_home(key)).lexically_normal();
  for (const auto& [folder, prefix] : {std::pair{project, "./"}, {home_folder(), "~/"}}) {
    const fs::path inside = path.lexically_relative(folder.lexically_normal());
    if (!inside.empty() && *inside.begin() != ".." && inside != ".") {
      return prefix + inside.string();
    }
  }
  return path.string();
}

NewServer read_new_server(const std::string& name, const std::string& address, const fs::path& here,
                          const fs::path& project, std::vector<std::string>& left_out) {
  if (!is_ssh_line(address)) {
    refuse_other_command(address, "server '" + printable(name) + "'");
    return make_new_server(name, address);
  }
  if (const auto problem = server_name_problem(name)) {
    throw Error::usage("server '" + printable(name) + "'", *problem);
  }
  SshLine line = parse_ssh_line(address, "server '" + name + "'");
  left_out.insert(left_out.end(), line.left_out.begin(), line.left_out.end());
  NewServer server{name, line.hostname, line.username, line.port, std::nullopt, line.proxy_jump};
  if (line.private_key) {
    server.private_key = private_key_value(*line.private_key, here, project);
  }
  return server;
}

std::string new_config_text(const NewProject& project) {
  std::string text(config_head);
  const std::string folder_name = project.folder.filename().string();
  if (project.name || !name_problem(folder_name)) {
    text += "name: " + yaml_text(project.name.value_or(folder_name)) + "\n";
  }
  text += "\n";
  text += project.servers.empty() ? config_server_example : "servers:\n";
  for (const NewServer& server : project.servers) {
    text += "  " + yaml_text(server.name) + ":\n    hostname: " + yaml_text(server.hostname) + "\n";
    if (server.username) {
      text += "    username: " + yaml_text(*server.username) + "\n";
    }
    if (server.port) {
      text += "    port: " + std::to_string(*server.port) + "\n";
    }
    if (server.private_key) {
      text += "    private_key: " + yaml_text(*server.private_key) + "\n";
    }
    if (server.proxy_jump) {
      text += "    proxy_jump: " + yaml_text(*server.proxy_jump) + "\n";
    }
    if (server.internal_address) {
      text += "    internal_address: " + yaml_text(*server.internal_address) + "\n";
    }
  }
  if (!project.manager.empty()) {
    text += "\npython: {manager: " + project.manager + "}\n";
  }
  text += config_tail;
  parse(text, project.folder);
  return text;
}

bool write_gitignore(const fs::path& project) {
  return create_file(project / ".remote/.gitignore", gitignore_text, 0644);
}

InitResult init_project(const NewProject& project) {
  const std::string config_text = new_config_text(project);
  const fs::path folder = project.folder / ".remote";
  make_folders(folder);
  InitResult result;
  // configs.yaml is written last, because it makes the folder a project. Only the owner may read it, because
  // it may contain a password.
  for (const auto& [name, content, mode] :
       {std::tuple{".gitignore", std::string_view(gitignore_text), mode_t{0644}},
        {"exclude.txt", exclude_text, mode_t{0644}},
        {"configs.yaml", std::string_view(config_text), mode_t{0600}}}) {
    const bool created = create_file(folder / name, content, mode);
    (created ? result.created : result.existing).push_back(std::string(".remote/") + name);
  }
  return result;
}

}  // namespace remote::config
