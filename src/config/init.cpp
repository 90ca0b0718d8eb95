#include "config/init.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include <remote/error.hpp>
#include <unistd.h>

#include "base/files.hpp"
#include "base/random.hpp"
#include "config/config.hpp"
#include "config/init_templates.hpp"
#include "config/report.hpp"
#include "config/validate.hpp"

namespace remote::config {
namespace fs = std::filesystem;
namespace {

// Whether YAML readers of all versions take the text for a text without quotes.
bool is_plain(const std::string& text) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  constexpr std::string_view others = "0123456789_./@+-";
  const bool address = std::count(text.begin(), text.end(), '.') >= 2;  // 3.19.32.53 is no number
  if (text.empty() || (letters.find(text[0]) == std::string_view::npos && text[0] != '/' && text[0] != '_' &&
                       !text.starts_with("./") && !text.starts_with("~/") && !address)) {
    return false;
  }
  const std::string_view rest = std::string_view(text).substr(1);
  if (std::any_of(rest.begin(), rest.end(), [&](char c) {
        return letters.find(c) == std::string_view::npos && others.find(c) == std::string_view::npos;
      })) {
    return false;
  }
  constexpr std::array words = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"};
  return std::none_of(words.begin(), words.end(), [&](std::string_view word) {
    return std::equal(word.begin(), word.end(), text.begin(), text.end(),
                      [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b); });
  });
}

// Creates a file with this content, whole or not at all; false when the name is taken. rename(2) would
// replace what another process made meanwhile, link(2) does not.
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
  throw Error("cannot write " + path.string(), std::strerror(error));
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

NewServer parse_new_server(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) {
    throw Error::usage("server " + printable(text), "there is no '='",
                       "write it as NAME=[USER@]HOST[:PORT], such as first-server=ubuntu@3.19.32.53");
  }
  return make_new_server(text.substr(0, equals), text.substr(equals + 1));
}

std::string private_key_value(const std::string& key, const fs::path& here, const fs::path& project) {
  const fs::path path = (here / expand_home(key)).lexically_normal();
  const fs::path in_project = path.lexically_relative(project.lexically_normal());
  if (!in_project.empty() && *in_project.begin() != ".." && in_project != ".") {
    return "./" + in_project.string();
  }
  const fs::path in_home = path.lexically_relative(home_folder().lexically_normal());
  if (!in_home.empty() && *in_home.begin() != ".." && in_home != ".") {
    return "~/" + in_home.string();
  }
  return path.string();
}

std::string new_config_text(const NewProject& project) {
  std::string text(config_head);
  const std::string folder_name = project.folder.filename().string();
  if (project.name) {
    text += "name: " + yaml_text(*project.name) + "\n";
  } else if (!name_problem(folder_name)) {
    text += "name: " + yaml_text(folder_name) + "\n";
  }
  text += "\n";
  if (project.servers.empty()) {
    text += config_server_example;
  } else {
    text += "servers:\n";
  }
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
  }
  text += config_tail;
  parse(text, project.folder);
  return text;
}

InitResult init_project(const NewProject& project) {
  const std::string config_text = new_config_text(project);
  const fs::path folder = project.folder / ".remote";
  make_folders(folder);
  InitResult result;
  // configs.yaml comes last: with it, the folder is a project. It is the owner's alone: it may get a
  // password.
  for (const auto& [name, content, mode] :
       {std::tuple{".gitignore", std::string_view(gitignore_text), mode_t{0644}},
        {"exclude.txt", exclude_text, mode_t{0644}},
        {"configs.yaml", std::string_view(config_text), mode_t{0600}}}) {
    const bool created = create_file(folder / name, content, mode);
    (created ? result.created : result.existing).push_back(std::string(".remote/") + name);
  }
  return result;
}

std::optional<fs::path> enclosing_project(const fs::path& folder) {
  std::error_code ignored;
  for (fs::path above = folder.parent_path(); above.has_relative_path(); above = above.parent_path()) {
    if (fs::exists(above / ".remote/configs.yaml", ignored)) {
      return above;
    }
  }
  return std::nullopt;
}

}  // namespace remote::config
