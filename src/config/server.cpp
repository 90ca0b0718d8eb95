#include <algorithm>

#include "base/files.hpp"
#include "base/strings.hpp"
#include "config/section.hpp"
#include "config/validate.hpp"

namespace remote::config {
namespace {

// Accepts "[::1]", as an IPv6 address is written with a port, and removes the brackets.
std::optional<std::string> host(const Section& section, const std::string& key) {
  const auto found = section.text(key);
  if (found && found->value.starts_with('[') && found->value.ends_with(']')) {
    const std::string inner = found->value.substr(1, found->value.size() - 2);
    if (inner.find(':') != std::string::npos && !host_problem(inner)) {
      return inner;
    }
  }
  return section.checked(key, host_problem);
}

std::optional<std::filesystem::path> file_path(const Section& section, const char* key,
                                               const Config& config) {
  const auto found = section.text(key);
  if (!found) {
    return std::nullopt;
  }
  const std::string& path = found->value;
  if (path.starts_with('~') && path != "~" && !path.starts_with("~/")) {
    throw section.unfit(key, *found, "only your own home can be named by '~'");
  }
  return (config.project / expand_home(path)).lexically_normal();
}

void read_gpus(const Section& section, Server& server) {
  const YamlNode* node = section.node("gpus");
  if (node == nullptr || node->kind != YamlNode::Kind::list) {
    server.gpus = section.number("gpus", 0, 1024);
    return;
  }
  for (const auto& found : section.texts("gpus")) {
    const auto index = parse_number<int>(found.value);
    if (!index || *index < 0 || *index > 1023 || std::ranges::count(server.gpu_indices, *index) > 0) {
      throw section.unfit("gpus", found, "a list holds the indices of GPUs, from 0 up, each once");
    }
    server.gpu_indices.push_back(*index);
  }
}

void read_passwords(const Section& section, Server& server) {
  std::string first;
  for (const auto& [key, target] : {std::pair{"password", &server.password},
                                    {"password_env", &server.password_env},
                                    {"password_command", &server.password_command}}) {
    const auto found = section.text(key);
    if (!found) {
      continue;
    }
    if (!first.empty()) {
      throw section.error(found->mark, "both '" + first + "' and '" + key + "' are given",
                          "keep one of password, password_env and password_command");
    }
    first = key;
    *target = found->value;
    if (first == "password_env" && found->value.find_first_of("= $") != std::string::npos) {
      throw section.error(found->mark, "'password_env' must be the name of a variable",
                          "write it without '$', and without its value");
    }
  }
}

}  // namespace

std::vector<std::pair<std::string, std::string>> Server::variables() const {
  std::vector<std::pair<std::string, std::string>> all;
  if (!gpu_indices.empty()) {
    std::vector<std::string> indices;
    std::ranges::transform(gpu_indices, std::back_inserter(indices),
                           [](int index) { return std::to_string(index); });
    all.emplace_back("CUDA_VISIBLE_DEVICES", join(indices, ","));
  }
  all.insert(all.end(), env.begin(), env.end());
  return all;
}

std::string to_string(ConnectBy what) {
  return what == ConnectBy::libssh ? "libssh" : what == ConnectBy::openssh ? "openssh" : "auto";
}

std::optional<ConnectBy> read_connect_by(const Section& section) {
  const auto found = section.text("connection");
  if (!found) {
    return std::nullopt;
  }
  for (const ConnectBy what : {ConnectBy::automatic, ConnectBy::libssh, ConnectBy::openssh}) {
    if (found->value == to_string(what)) {
      return what;
    }
  }
  throw section.error(found->mark,
                      "'connection' must be auto, libssh or openssh, not '" + printable(found->value) + "'");
}

namespace {

// Throws Error for "trainer@10.0.0.7". A user name may have a domain: "ada@corp.example".
void check_user(const Section& section, const Server& server) {
  const auto found = section.text("username");
  const std::size_t at = found ? found->value.rfind('@') : std::string::npos;
  if (at == std::string::npos) {
    return;
  }
  const std::string behind = found->value.substr(at + 1);
  const bool is_address =
      std::ranges::count(behind, '.') == 3 && behind.find_first_not_of("0123456789.") == std::string::npos;
  if (is_address || behind == server.hostname) {
    throw section.unfit("username", *found,
                        "it has the address, too: write username: " + printable(found->value.substr(0, at)));
  }
}

}  // namespace

Server read_server(const YamlNode::Entry& entry, const Config& config, const std::string& file,
                   Warnings& warnings) {
  if (const auto problem = server_name_problem(entry.key)) {
    throw config_error(file, entry.mark, "'" + printable(entry.key) + "' cannot be a server's name",
                       *problem);
  }
  const Section section(*entry.value, Level::server, "server '" + entry.key + "'", file, warnings);
  Server server;
  server.name = entry.key;
  server.line = entry.mark.line;
  for (const YamlNode::Entry& key : section.entries()) {
    server.key_lines[key.key] = key.mark.line;
  }
  const auto hostname = host(section, "hostname");
  if (!hostname) {
    if (const YamlNode::Entry* other = section.misnamed("hostname")) {
      throw config_error(file, other->mark,
                         "server '" + entry.key + "' has no 'hostname', and '" + printable(other->key) +
                             "' is not a key of a server",
                         "write hostname: " + printable(other->value->text));
    }
    throw config_error(file, entry.mark, "server '" + entry.key + "' has no 'hostname'",
                       "give an address, a name, or an alias from ~/.ssh/config");
  }
  server.hostname = *hostname;
  server.username = section.checked("username", user_problem);
  check_user(section, server);
  server.private_key = file_path(section, "private_key", config);
  server.known_hosts = file_path(section, "known_hosts", config);
  read_passwords(section, server);
  server.connect_by = read_connect_by(section);
  server.port = section.number("port", 1, 65535);
  server.proxy_jump = section.checked("proxy_jump", proxy_jump_problem);
  server.internal_address = host(section, "internal_address");
  read_gpus(section, server);
  server.env = section.variables("env");
  server.remote_path = section.checked("remote_path", remote_path_problem);
  server.agent_folder = section.checked("agent", agent_folder_problem);
  server.prologue = read_prologue(section);
  server.slurm = read_slurm(section);
  server.container = read_container(section, config.container, file, warnings);
  return server;
}

}  // namespace remote::config
