#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include <sys/stat.h>

#include "base/beneath.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"
#include "config/section.hpp"
#include "config/trust.hpp"
#include "config/validate.hpp"

namespace remote::config {
namespace fs = std::filesystem;
namespace {

std::string read_name(const Section& top, const Config& config) {
  if (const auto name = top.checked("name", name_problem)) {
    return *name;
  }
  std::string folder = config.project.filename().string();
  if (const auto problem = name_problem(folder)) {
    throw top.error({},
                    "'name' is missing, and the folder's name '" + printable(folder) +
                        "' cannot be used instead: " + *problem,
                    "add a line such as name: my_project");
  }
  return folder;
}

std::vector<Server> read_servers(const Section& top, const Config& config, const std::string& file,
                                 Warnings& warnings) {
  std::vector<Server> servers;
  const YamlNode* node = top.node("servers");
  if (node == nullptr || (node->kind == YamlNode::Kind::list && node->items.empty())) {
    return servers;  // missing, or "servers: []"
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
    const bool is_read = target == &config.exclude_file;
    if (const auto path = top.checked(key, is_read ? inside_problem : written_folder_problem)) {
      *target = fs::path(*path).lexically_normal().string();
    }
  }
  for (const auto& [key, target] :
       {std::pair{"remote_scripts_folder_name", &config.remote_scripts_folder_name},
        {"remote_jobs_folder_name", &config.remote_jobs_folder_name}}) {
    *target = top.checked(key, component_problem).value_or(*target);
  }
}

// NAME, NAME=VERSION or NAME:ARCHITECTURE. Nothing else is allowed, because apt removes a package given as
// "name-".
bool is_package(const std::string& text) {
  constexpr std::string_view small = "abcdefghijklmnopqrstuvwxyz0123456789";
  constexpr std::string_view alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  const auto is_word = [](std::string_view word, std::string_view first, const std::string& all) {
    return !word.empty() && first.find(word[0]) != std::string_view::npos &&
           word.find_first_not_of(all) == std::string_view::npos && !word.ends_with('-');
  };
  const std::string_view whole = text;
  const std::size_t equals = whole.find('=');
  const std::string_view before = whole.substr(0, equals);
  const std::size_t colon = before.find(':');
  return text.size() <= 200 && is_word(before.substr(0, colon), small, std::string(small) + "+.-") &&
         (colon == std::string_view::npos || is_word(before.substr(colon + 1), small, std::string(small))) &&
         (equals == std::string_view::npos ||
          is_word(whole.substr(equals + 1), alphanumeric, std::string(alphanumeric) + ".+:~-"));
}

void read_packages(const Section& top, Config& config) {
  for (const auto& found : top.texts("system_packages")) {
    // These words become arguments of a command that runs as root.
    if (!is_package(found.value)) {
      throw top.error(found.mark, "'" + printable(found.value) + "' is not the name of a package",
                      "give one package an item of the list, as NAME or NAME=VERSION");
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
                      "'host_keys' must be accept-new or strict, not '" + printable(found->value) + "'");
    }
  }
  config.connect_timeout_s = top.number("connect_timeout", 1, 3600).value_or(0);  // 0: not set
  config.connect_by = read_connect_by(top).value_or(ConnectBy::automatic);
}

// The file's text. The size is limited, so that a device or a huge file does no harm.
std::string read_bounded(const fs::path& file) {
  const std::string what = "cannot read " + file.string();
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  if (status.type() == fs::file_type::not_found) {
    if (fs::is_symlink(fs::symlink_status(file, error))) {
      throw Error::usage(what, "it is a broken link",
                         "remove the link, or create the file that it points to");
    }
    throw Error::usage(what, "there is no such file").mended_by(Remedy::make_project);
  }
  if (!error && !fs::is_regular_file(status)) {
    throw Error::usage(what, "it is not a regular file", "move it away, and create it again")
        .mended_by(Remedy::make_project);
  }
  std::ifstream stream(file, std::ios::binary);
  std::string text(max_config_bytes + 1, '\0');
  if (!stream.read(text.data(), static_cast<std::streamsize>(text.size())) && !stream.eof()) {
    throw Error::usage(what, std::generic_category().message(errno),
                       "do you have permission to read the file?");
  }
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return remove_byte_order_mark(std::move(text), file);
}

}  // namespace

Config parse(const std::string& text, const fs::path& project, bool strict) {
  Config config;
  config.project = absolute_path(project).lexically_normal();
  if (!config.project.has_filename() && config.project.has_relative_path()) {
    config.project = config.project.parent_path();  // turns "/x/y/" into "/x/y"
  }
  config.file = config.project / ".remote/configs.yaml";
  const std::string file = config.file.string();
  const NodePtr root = read_yaml(text, file);
  Warnings warnings(file, strict);
  const Section top(*root, Level::top, "the file", file, warnings);
  config.name = read_name(top, config);
  config.container = read_container(top, std::nullopt, file, warnings);
  config.servers = read_servers(top, config, file, warnings);
  read_folders(top, config);
  config.remote_path = top.checked("remote_path", remote_path_problem);
  config.agent_folder = top.checked("agent", agent_folder_problem);
  if (const YamlNode* python = top.node("python")) {
    config.python = read_python(*python, file, warnings);
  }
  if (const YamlNode* launch = top.node("launch")) {
    config.launch = read_launch(*launch, "'launch'", config.servers, file, warnings);
    config.launch_node = root->find("launch")->value;
  }
  if (const YamlNode* launches = top.node("launches")) {
    config.launches = read_launches(*launches, config.servers, file);
  }
  config.prologue = read_prologue(top).value_or("");
  read_packages(top, config);
  read_ends_of_launches(top, config, file, warnings);
  read_connection(top, config);
  config.warnings = warnings.take();
  return config;
}

std::optional<fs::path> nearest_project(const fs::path& folder) {
  for (fs::path one = absolute_path(folder).lexically_normal();; one = one.parent_path()) {
    // This includes a file that cannot be accessed or is a dangling link, because a project further up is a
    // different one.
    std::error_code error;
    const fs::file_status status = fs::symlink_status(one / ".remote/configs.yaml", error);
    const bool hidden = status.type() == fs::file_type::none && is_folder(one / ".remote");
    if (fs::exists(status) || hidden) {
      return one;
    }
    if (!one.has_relative_path()) {
      return std::nullopt;
    }
  }
}

fs::path find_project(const fs::path& start) {
  if (auto project = nearest_project(start)) {
    return std::move(*project);
  }
  throw Error::usage(
      "no project here",
      is_folder(start / ".remote")
          ? "there is a folder .remote in " + start.string() + ", but no configs.yaml in it"
          : "there is no .remote/configs.yaml in " + start.string() + " or in a folder above it")
      .mended_by(Remedy::make_project);
}

Config load(const fs::path& project, bool strict) {
  const std::string text = read_bounded(absolute_path(project) / ".remote/configs.yaml");
  check_folder(project);
  Config config = parse(text, project, strict);
  check_own_folders(config);
  struct stat info {};
  const bool password =
      std::ranges::any_of(config.servers, [](const Server& server) { return server.password.has_value(); });
  const bool secret = password || (config.notify && !config.notify->url.empty());
  if (secret && ::stat(config.file.c_str(), &info) == 0 && (info.st_mode & (S_IRGRP | S_IROTH)) != 0) {
    config.warnings.push_back(config.file.string() + ": it holds " +
                              (password ? "a password" : "the URL of notify, a secret") +
                              ", and others on this machine may read it; chmod 600 it");
  }
  return config;
}

std::vector<std::string> launch_names(const fs::path& project) {
  std::vector<std::string> names;
  try {
    const fs::path file = project / ".remote/configs.yaml";
    const NodePtr root = read_yaml(read_bounded(file), file.string());
    if (const YamlNode::Entry* launches = root->find("launches")) {
      std::ranges::transform(launches->value->entries, std::back_inserter(names), &YamlNode::Entry::key);
    }
  } catch (const Error&) {  // reading the whole file reports it
  }
  return names;
}

std::vector<std::string> split_names(const std::vector<std::string>& items) {
  std::vector<std::string> names;
  for (const std::string& item : items) {
    for (const std::string& name : split(item, ',')) {
      if (!trim(name).empty()) {
        names.emplace_back(trim(name));
      }
    }
    if (item.find_first_not_of(", ") == std::string::npos) {
      names.push_back(item);  // an empty name, which is reported later
    }
  }
  return names;
}

std::vector<Server> select_servers(const Config& config, const std::vector<std::string>& given) {
  const std::vector<std::string> globs = split_names(given);
  if (config.servers.empty()) {
    throw Error::usage("no servers", config.file.string() + " has none", "add one under 'servers:'")
        .mended_by(Remedy::add_server);
  }
  std::vector<std::string> names;
  std::ranges::transform(config.servers, std::back_inserter(names), &Server::name);
  for (const std::string& glob : globs) {
    if (std::ranges::any_of(names, [&](const std::string& name) { return glob_match(glob, name); })) {
      continue;
    }
    const std::string behind_user = glob.substr(glob.find('@') + 1);
    const bool has_user = std::ranges::find(names, behind_user) != names.end();
    const std::string near = glob == "all" ? "'*' is all of them"
                             : has_user
                                 ? "name it '" + behind_user + "': its user is `username` in configs.yaml"
                                 : did_you_mean(glob, names);
    throw Error::usage("no server '" + printable(glob) + "'", "there are " + join_first(names, 20), near);
  }
  std::vector<Server> servers;
  std::ranges::copy_if(config.servers, std::back_inserter(servers), [&](const Server& server) {
    return globs.empty() ||
           std::ranges::any_of(globs, [&](const std::string& glob) { return glob_match(glob, server.name); });
  });
  return servers;
}

std::string Config::project_path_on(const Server& server) const {
  if (server.remote_path) {
    return *server.remote_path;
  }
  return remote_path ? *remote_path : "~/" + name;
}

}  // namespace remote::config
