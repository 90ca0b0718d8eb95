#include "project/import/import.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/strings.hpp"
#include "config/validate.hpp"
#include "project/import/parts.hpp"

namespace remote::project {
namespace {

constexpr std::size_t most_servers = 4096;

void check(const std::optional<std::string>& problem, const std::string& where, const char* what,
           const std::string& value) {
  if (problem) {
    throw Error::usage(where, fmt::format("{} '{}': {}", what, config::printable(value), *problem),
                       "fix the line, or leave that server out of the file");
  }
}

bool is_section(std::string_view line) {
  // "[::1]" is a host.
  return line.starts_with('[') && line.find(']') != std::string_view::npos &&
         std::ranges::count(line, ':') < 2;
}

// Detects the form of a text that is not YAML, from the first distinctive line.
ServerListForm form_of_lines(std::string_view text) {
  for (const std::string& raw : split(text, '\n')) {
    const std::string_view line = trim(raw);
    const std::vector<std::string> words = split_words(std::string(line));
    if (words.empty() || words.front().starts_with('#') || words.front().starts_with(';')) {
      continue;
    }
    const std::string first = lower_case(words.front());
    if (words.size() > 1 && words[1] != "=" && !words[1].starts_with("slots") &&
        (first == "host" || first == "match" || first == "include")) {
      return ServerListForm::ssh_config;
    }
    if (first.starts_with("host=")) {
      return ServerListForm::ssh_config;
    }
    if (is_section(line) || line.find(" ansible_") != std::string_view::npos) {
      return ServerListForm::ansible_ini;
    }
  }
  return ServerListForm::hostfile;
}

bool has_kind(const config::YamlNode& map, const char* key, config::YamlNode::Kind kind) {
  const auto* entry = map.find(key);
  return entry != nullptr && entry->value->kind == kind;
}

// The form of a YAML map; nullopt: unknown.
std::optional<ServerListForm> form_of_map(const config::YamlNode& root) {
  using Kind = config::YamlNode::Kind;
  if (has_kind(root, "ssh_config", Kind::map)) {
    return ServerListForm::dstack;
  }
  for (const auto& entry : root.entries) {
    const config::YamlNode& value = *entry.value;
    if (value.kind != Kind::map) {
      continue;
    }
    if (has_kind(value, "hosts", Kind::list)) {
      return ServerListForm::skypilot;
    }
    if (has_kind(value, "hosts", Kind::map) || has_kind(value, "children", Kind::map)) {
      return ServerListForm::ansible_yaml;
    }
  }
  return std::nullopt;
}

// Whether to try parsing a text as YAML: it has a line "key:" or "key: value", and is neither ssh_config nor
// INI.
bool looks_like_yaml(std::string_view text) {
  for (const std::string& raw : split(text, '\n')) {
    const std::string_view line = trim(raw);
    if (line.empty() || line.starts_with('#')) {
      continue;
    }
    if (line == "---" || line.ends_with(':') || line.find(": ") != std::string_view::npos) {
      return true;
    }
    if (!line.starts_with('%')) {
      return false;
    }
  }
  return false;
}

}  // namespace

ServerListBuilder::ServerListBuilder(ServerListForm form, std::string file, std::filesystem::path folder,
                                     std::filesystem::path project)
    : file_(std::move(file)), folder_(std::move(folder)), project_(std::move(project)) {
  list_.form = form;
}

void ServerListBuilder::add(const FoundServer& found) {
  // YAML aliases can make a short file repeat a host very often.
  if (++count_ > 20 * most_servers) {
    throw Error::usage(found.where, "it names servers too often", "name each server once");
  }
  if (!names_.insert(found.name).second) {
    return;
  }
  if (names_.size() > most_servers) {
    throw Error::usage(found.where, fmt::format("it names more than {} servers", most_servers),
                       "give a file with fewer of them");
  }
  config::NewServer server;
  server.name = found.name;
  server.hostname = found.hostname.empty() ? found.name : found.hostname;
  check(config::host_problem(server.hostname), found.where, "the host", server.hostname);
  for (std::size_t n = list_.servers.size() + 1;
       config::server_name_problem(server.name).has_value() ||
       std::ranges::find(list_.servers, server.name, &config::NewServer::name) != list_.servers.end();
       ++n) {
    server.name = fmt::format("server-{}", n);
  }
  if (!found.user.empty()) {
    check(config::user_problem(found.user), found.where, "the user", found.user);
    server.username = found.user;
  }
  if (!found.port.empty()) {
    server.port = parse_number<int>(found.port);
    if (!server.port || *server.port < 1 || *server.port > 65535) {
      throw Error::usage(found.where, fmt::format("the port '{}' is not a number from 1 to 65535",
                                                  config::printable(found.port)));
    }
  }
  if (!found.key.empty()) {
    server.private_key = config::private_key_value(found.key, folder_, project_);
  }
  if (!found.internal_address.empty()) {
    check(config::host_problem(found.internal_address), found.where, "the internal address",
          found.internal_address);
    server.internal_address = found.internal_address;
  }
  if (!found.proxy_jump.empty()) {
    check(config::proxy_jump_problem(found.proxy_jump), found.where, "the jump host", found.proxy_jump);
    server.proxy_jump = found.proxy_jump;
  }
  list_.servers.push_back(std::move(server));
}

void ServerListBuilder::leave_out(const std::string& server, const std::string& what) {
  std::string text = fmt::format("{}: {}", config::printable(server), config::printable(what));
  if (list_.left_out.size() < 1000 && std::ranges::find(list_.left_out, text) == list_.left_out.end()) {
    list_.left_out.push_back(std::move(text));
  }
}

ServerList ServerListBuilder::take() {
  if (list_.servers.empty()) {
    throw Error::usage(
        file_, "it names no server",
        "is it a hostfile, an ssh_config, an inventory of Ansible, or a list of SkyPilot or dstack?");
  }
  return std::move(list_);
}

std::string scalar_text(const config::YamlNode& node, const std::string& file) {
  if (node.kind == config::YamlNode::Kind::null) {
    return "";
  }
  if (node.kind != config::YamlNode::Kind::scalar) {
    throw config::config_error(file, node.mark, "a text is expected here");
  }
  return node.text;
}

std::string value_of(const config::YamlNode& map, const std::string& key, const std::string& file) {
  const auto* entry = map.find(key);
  return entry == nullptr ? "" : scalar_text(*entry->value, file);
}

ServerList read_server_list(std::string_view text, const std::string& file,
                            const std::filesystem::path& folder, const std::filesystem::path& project) {
  if (text.size() > config::max_config_bytes) {
    throw Error::usage(file, "it is larger than 1 MiB",
                       "is it the right file? give one that only lists servers");
  }
  if (text.find('\0') != std::string_view::npos) {
    throw Error::usage(file, "it is not text: it has NUL bytes",
                       "is it the right file? give one that lists servers as text");
  }
  const auto builder = [&](ServerListForm form) { return ServerListBuilder(form, file, folder, project); };
  if (looks_like_yaml(text)) {
    const config::NodePtr root = config::read_yaml(std::string(text), file);
    const auto form = form_of_map(*root);
    if (!form) {
      throw Error::usage(file, "it is YAML, but of no known form",
                         "known are an Ansible inventory, SkyPilot's SSH node pools and dstack's SSH fleet");
    }
    ServerListBuilder list = builder(*form);
    (*form == ServerListForm::dstack     ? read_dstack
     : *form == ServerListForm::skypilot ? read_skypilot
                                         : read_ansible_yaml)(*root, list);
    return list.take();
  }
  const ServerListForm form = form_of_lines(text);
  ServerListBuilder list = builder(form);
  (form == ServerListForm::ssh_config    ? read_ssh_hosts
   : form == ServerListForm::ansible_ini ? read_ansible_ini
                                         : read_hostfile)(text, list);
  return list.take();
}

}  // namespace remote::project
