#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.hpp"
#include "base/strings.hpp"
#include "config/sections.hpp"
#include "config/validate.hpp"

namespace remote::config {
namespace fs = std::filesystem;
namespace {

std::string read_name(const Section& top, const Config& config) {
  if (const auto found = top.text("name")) {
    if (const auto problem = name_problem(found->value)) {
      throw top.error(found->mark, "'name' cannot be '" + printable(found->value) + "'", *problem);
    }
    return found->value;
  }
  std::string folder = config.project.filename().string();
  if (const auto problem = name_problem(folder)) {
    throw top.error(
        {},
        "'name' is missing, and the folder's name '" + printable(folder) + "' cannot stand in: " + *problem,
        "add a line such as name: my_project");
  }
  return folder;
}

std::vector<Server> read_servers(const Section& top, const Config& config, const std::string& file,
                                 Warnings& warnings) {
  std::vector<Server> servers;
  const YamlNode* node = top.node("servers");
  if (node == nullptr) {
    return servers;
  }
  if (node->kind == YamlNode::Kind::list && node->items.empty()) {
    return servers;  // "servers: []"
  }
  if (node->kind != YamlNode::Kind::map) {
    throw top.error(node->mark, "'servers' must be a map of names to servers",
                    "write servers: {first-server: {hostname: ADDRESS}}");
  }
  for (const YamlNode::Entry& entry : node->entries) {
    servers.push_back(read_server(entry, config, file, warnings));
  }
  return servers;
}

void read_folders(const Section& top, Config& config) {
  for (const auto& [key, target] : {std::pair{"scripts_folder", &config.scripts_folder},
                                    {"logs_folder", &config.logs_folder},
                                    {"jobs_folder", &config.jobs_folder},
                                    {"exclude_file", &config.exclude_file}}) {
    if (const auto found = top.text(key)) {
      if (const auto problem = inside_problem(found->value)) {
        throw top.error(found->mark, std::string("'") + key + "' cannot be '" + printable(found->value) + "'",
                        *problem);
      }
      *target = fs::path(found->value).lexically_normal().string();
    }
  }
  for (const auto& [key, target] :
       {std::pair{"remote_scripts_folder_name", &config.remote_scripts_folder_name},
        {"remote_jobs_folder_name", &config.remote_jobs_folder_name}}) {
    if (const auto found = top.text(key)) {
      if (const auto problem = component_problem(found->value)) {
        throw top.error(found->mark, std::string("'") + key + "' cannot be '" + printable(found->value) + "'",
                        *problem);
      }
      *target = found->value;
    }
  }
}

void read_packages(const Section& top, Config& config) {
  constexpr std::string_view allowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.:=~_";
  for (const auto& found : top.texts("system_packages")) {
    // These words become arguments of a command that runs as root.
    if (found.value[0] == '-' || found.value.find_first_not_of(allowed) != std::string::npos) {
      throw top.error(found.mark, "'" + printable(found.value) + "' is no name of a package",
                      "give one package an item of the list");
    }
    config.system_packages.push_back(found.value);
  }
}

void read_connection(const Section& top, Config& config) {
  if (const auto found = top.text("host_keys")) {
    if (found->value == "strict") {
      config.host_keys = HostKeys::strict;
    } else if (found->value != "accept-new" && found->value != "accept_new") {
      throw top.error(found->mark,
                      "'host_keys' must be accept-new or strict, and is '" + printable(found->value) + "'");
    }
  }
  if (const auto found = top.number("connect_timeout", 1, 3600)) {
    config.connect_timeout_s = found->value;
  }
}

// The file's text, read only so far as a configuration may go: a device or a giant file costs nothing.
std::string read_bounded(const fs::path& file) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd && (errno == ENOENT || errno == ENOTDIR)) {
    throw Error::usage("cannot read " + file.string(), "there is no such file")
        .mended_by(Remedy::make_project);
  }
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0) {
    throw Error::usage("cannot read " + file.string(), std::strerror(errno));
  }
  if (!S_ISREG(info.st_mode)) {
    throw Error::usage("cannot read " + file.string(), "it is not a regular file");
  }
  std::string text;
  char buffer[65536];
  while (text.size() <= max_config_bytes) {
    const ssize_t count = ::read(fd.get(), buffer, sizeof buffer);
    if (count < 0 && errno != EINTR) {
      throw Error::usage("cannot read " + file.string(), std::strerror(errno));
    }
    if (count == 0) {
      break;
    }
    text.append(buffer, count < 0 ? 0 : static_cast<std::size_t>(count));
  }
  return text;
}

}  // namespace

Config parse(const std::string& text, const fs::path& project) {
  Config config;
  config.project = fs::absolute(project).lexically_normal();
  if (!config.project.has_filename() && config.project.has_relative_path()) {
    config.project = config.project.parent_path();  // "/x/y/" is "/x/y"
  }
  config.file = config.project / ".remote/configs.yaml";
  const std::string file = config.file.string();
  const NodePtr root = read_yaml(text, file);
  Warnings warnings("configs.yaml");
  const Section top(*root, Level::top, "the file", file, warnings);
  config.name = read_name(top, config);
  config.servers = read_servers(top, config, file, warnings);
  read_folders(top, config);
  if (const auto found = top.text("remote_path")) {
    if (const auto problem = remote_path_problem(found->value)) {
      throw top.error(found->mark, "'remote_path' cannot be '" + printable(found->value) + "'", *problem);
    }
    config.remote_path = found->value;
  }
  if (const YamlNode* python = top.node("python")) {
    config.python = read_python(*python, file, warnings);
  }
  read_packages(top, config);
  read_connection(top, config);
  config.warnings = warnings.take();
  return config;
}

Config load(const fs::path& project) {
  return parse(read_bounded(fs::absolute(project) / ".remote/configs.yaml"), project);
}

std::string Config::project_path_on(const Server& server) const {
  if (server.remote_path) {
    return *server.remote_path;
  }
  return remote_path ? *remote_path : "~/" + name;
}

}  // namespace remote::config
