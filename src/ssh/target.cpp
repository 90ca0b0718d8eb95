#include "ssh/target.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <utility>

#include <fmt/format.h>
#include <remote/error.hpp>
#include <unistd.h>

#include "base/files.hpp"
#include "base/hashing.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"
#include "base/subprocess.hpp"
#include "config/validate.hpp"
#include "ssh/ssh_config.hpp"

namespace remote::ssh {
namespace fs = std::filesystem;
using config::Setting;
namespace {

constexpr std::size_t longest_chain = 8;
constexpr std::array default_keys{"id_ed25519", "id_ecdsa", "id_rsa"};

int parse_port(const std::string& text, const std::string& origin) {
  const auto port = parse_number<int>(text);
  if (!port || *port < 1 || *port > 65535) {
    throw Error::usage(origin, fmt::format("'{}' is not a port number", text), "give one from 1 to 65535");
  }
  return *port;
}

// Parses "[USER@]HOST[:PORT]" or "ssh://[USER@]HOST[:PORT]".
config::HostPort parse_hop(std::string_view text, const std::string& origin) {
  text = trim(text);
  if (text.starts_with("ssh://")) {
    text.remove_prefix(6);
  }
  return config::parse_host_port(std::string(text), origin);
}

bool is_yes(std::string_view text) {
  return lower_case(text) == "yes" || lower_case(text) == "true";
}

bool is_none(std::string_view text) {
  return lower_case(text) == "none";
}

// Copies the value of a key in ~/.ssh/config to a setting, if there is one.
template <typename Value, typename Convert>
void take(const HostOptions& options, const char* key, Setting<Value>& setting, const Convert& convert) {
  if (const ConfigValue* found = options.find(key)) {
    setting = {convert(found->text), found->origin};
  }
}

class Resolver {
 public:
  Resolver(const config::Config& config, const fs::path& user_config)
      : config_(config), home_(home_folder()), sources_(ssh_config_sources(user_config)) {}

  Target server(const config::Server& server) {
    const auto setting = [&]<typename Value>(const std::optional<Value>& value, const char* key) {
      return value ? Setting<Value>{*value, origin(server, key)} : Setting<Value>();
    };
    Given given;
    given.name = server.name;
    given.host = {server.hostname.empty() ? server.name : server.hostname, origin(server, "hostname")};
    given.user = setting(server.username, "username");
    given.port = setting(server.port, "port");
    given.key = setting(server.private_key, "private_key");
    given.known_hosts = setting(server.known_hosts, "known_hosts");
    given.proxy_jump = setting(server.proxy_jump, "proxy_jump");
    given.default_user = "ubuntu";
    Target target = resolve_one(given, true);
    target.password = setting(server.password, "password");
    target.password_env = setting(server.password_env, "password_env");
    target.password_command = setting(server.password_command, "password_command");
    target.connect_by = setting(server.connect_by, "connection");
    if (!server.connect_by && config_.connect_by != config::ConnectBy::automatic) {
      target.connect_by = {config_.connect_by, "configs.yaml"};
    }
    return target;
  }

 private:
  // Values that are known before ~/.ssh/config is read; empty: unknown.
  struct Given {
    std::string name;
    Setting<std::string> host;
    Setting<std::string> user;
    Setting<int> port;
    Setting<fs::path> key;
    Setting<fs::path> known_hosts;
    bool key_is_spare = false;  // it is the server's key, which is tried on its jump host too
    Setting<std::string> proxy_jump;
    std::string default_user;
  };

  static std::string origin(const config::Server& server, const std::string& key) {
    const auto line = server.key_lines.find(key);
    return fmt::format("configs.yaml:{}", line != server.key_lines.end() ? line->second : server.line);
  }

  Target resolve_one(const Given& given, bool with_proxy) {
    ConfigQuery query;
    query.host = given.host.value;
    query.user = given.user.value;
    query.local_user = local_user();
    query.home = home_;
    query.exec = [](const std::string& command) {
      SubprocessSpec spec;
      spec.argv = {"sh", "-c", command};
      return run_subprocess(std::move(spec)).status.success();
    };
    const HostOptions options = read_ssh_config(sources_, query);

    Target target;
    target.name = given.name;
    target.alias = given.host.value;
    target.host = given.host;
    take(options, "hostname", target.host, [&](const std::string& text) {
      return expand_tokens(text, {{'h', given.host.value}});
    });
    target.user = {given.default_user};
    take(options, "user", target.user, std::identity());
    if (!given.user.value.empty()) {
      target.user = given.user;
    }
    if (given.port.value != 0) {
      target.port = given.port;
    } else if (const ConfigValue* port = options.find("port")) {
      target.port = {parse_port(port->text, port->origin), port->origin};
    }
    const std::string machine = local_host();
    const Tokens tokens{{'h', target.host.value},
                        {'n', given.host.value},
                        {'p', std::to_string(target.port.value)},
                        {'r', target.user.value},
                        {'u', query.local_user},
                        {'d', home_.string()},
                        {'i', std::to_string(::getuid())},
                        {'l', machine},
                        {'L', machine.substr(0, machine.find('.'))}};
    read_identities(target, given, options, tokens);
    read_host_keys(target, given, options, tokens);
    if (const ConfigValue* timeout = options.find("connecttimeout")) {
      const auto seconds = parse_number<int>(timeout->text);
      if (seconds && *seconds > 0) {
        target.connect_timeout_s = {*seconds, timeout->origin};
      }
    }
    if (config_.connect_timeout_s > 0) {
      target.connect_timeout_s = {config_.connect_timeout_s, "configs.yaml"};
    }
    if (with_proxy) {
      read_proxy(target, given, options, tokens);
    }
    read_control_path(target, options, tokens);
    return target;
  }

  void read_control_path(Target& target, const HostOptions& options, Tokens tokens) const {
    const ConfigValue* path = options.find("controlpath");
    if (path == nullptr || is_none(path->text)) {
      return;
    }
    const std::string jump = target.jumps.empty() ? "" : target.jumps.back().alias;
    tokens['j'] = jump;
    tokens['k'] = target.host_key_alias.value.empty() ? target.alias : target.host_key_alias.value;
    const std::string base = tokens['l'] + target.host.value + tokens['p'] + target.user.value;
    // Since version 9.6, OpenSSH's hash of the connection includes the jump host.
    for (const std::string& text : {base + jump, base}) {
      tokens['C'] = sha1_hex(text);
      fs::path expanded = expand_path(path->text, tokens, home_);
      if (std::ranges::find(target.control_paths, expanded) == target.control_paths.end()) {
        target.control_paths.push_back(std::move(expanded));
      }
    }
  }

  void read_identities(Target& target, const Given& given, const HostOptions& options,
                       const Tokens& tokens) const {
    if (!given.key.value.empty()) {
      target.identities.push_back(given.key);
      target.identities_given = !given.key_is_spare;
    }
    if (!target.identities_given) {
      for (const ConfigValue& file : options.all("identityfile")) {
        if (!is_none(file.text)) {
          target.identities.push_back({expand_path(file.text, tokens, home_), file.origin});
        }
        target.identities_given = true;
      }
    }
    if (!target.identities_given) {
      for (const char* name : default_keys) {
        target.identities.push_back({home_ / ".ssh" / name});
      }
    }
    for (const ConfigValue& file : options.all("certificatefile")) {
      target.certificates.push_back({expand_path(file.text, tokens, home_), file.origin});
    }
    take(options, "identitiesonly", target.identities_only, is_yes);
    take(options, "identityagent", target.identity_agent, [&](const std::string& text) -> std::string {
      if (text == "SSH_AUTH_SOCK") {
        return "";
      }
      if (text.starts_with('$') && !text.starts_with("${")) {
        const char* value = std::getenv(text.c_str() + 1);
        return value != nullptr ? value : "none";
      }
      return is_none(text) ? "none" : expand_path(text, tokens, home_).string();
    });
  }

  void read_host_keys(Target& target, const Given& given, const HostOptions& options,
                      const Tokens& tokens) const {
    if (!given.known_hosts.value.empty()) {
      target.known_hosts = {{given.known_hosts.value}, given.known_hosts.origin};
    } else if (const ConfigValue* files = options.find("userknownhostsfile")) {
      target.known_hosts.origin = files->origin;
      std::vector<std::string> words;
      split_arguments(files->text, words);
      for (const std::string& word : words) {
        if (!is_none(word)) {
          target.known_hosts.value.push_back(expand_path(word, tokens, home_));
        }
      }
    } else {
      target.known_hosts.value.push_back(home_ / ".ssh" / "known_hosts");
      if (is_there(home_ / ".ssh" / "known_hosts2")) {
        target.known_hosts.value.push_back(home_ / ".ssh" / "known_hosts2");
      }
    }
    take(options, "hostkeyalias", target.host_key_alias, std::identity());
    // "no" is treated as accept-new, because a changed key is never accepted here. "ask" is treated as
    // strict, because the user does not want keys to be accepted without asking.
    take(options, "stricthostkeychecking", target.host_keys, [](const std::string& text) {
      return is_yes(text) || lower_case(text) == "ask" ? config::HostKeys::strict
                                                       : config::HostKeys::accept_new;
    });
    if (config_.host_keys == config::HostKeys::strict) {
      target.host_keys = {config::HostKeys::strict, "configs.yaml"};
    }
    take(options, "hashknownhosts", target.hash_known_hosts, is_yes);
    take(options, "compression", target.compression, is_yes);
    take(options, "gssapiauthentication", target.gssapi, is_yes);
    for (const char* key : {"pkcs11provider", "securitykeyprovider"}) {
      if (const ConfigValue* found = options.find(key); found != nullptr && !is_none(found->text)) {
        target.openssh_alone = fmt::format("{} ({})", key, found->origin);
      }
    }
    if (!options.warnings().empty() && target.openssh_alone.empty()) {
      target.openssh_alone = options.warnings().front();
    }
  }

  void read_proxy(Target& target, const Given& given, const HostOptions& options, const Tokens& tokens) {
    if (!given.proxy_jump.value.empty()) {
      target.proxy_jump = given.proxy_jump;
    } else if (const ConfigValue* jump = options.find("proxyjump")) {
      target.proxy_jump = {expand_tokens(jump->text, tokens), jump->origin};
    } else if (const ConfigValue* command = options.find("proxycommand");
               command != nullptr && command->text != "none") {
      target.proxy_command = {expand_tokens(command->text, tokens), command->origin};
    }
    if (target.proxy_jump.value.empty() || is_none(target.proxy_jump.value)) {
      return;
    }
    if (++depth_ > longest_chain) {
      throw Error::usage(target.proxy_jump.origin,
                         fmt::format("the jump hosts of '{}' lead in a circle", given.host.value),
                         "check the ProxyJump lines of ~/.ssh/config");
    }
    bool first = true;
    for (const std::string& word : split(target.proxy_jump.value, ',')) {
      const config::HostPort hop = parse_hop(word, target.proxy_jump.origin);
      Given next;
      next.name = hop.host;
      next.host = {hop.host, target.proxy_jump.origin};
      next.user = {hop.user.value_or(""), target.proxy_jump.origin};
      next.port = {hop.port.value_or(0), target.proxy_jump.origin};
      next.key = given.key;
      next.key_is_spare = true;
      next.default_user = local_user();
      // Only the first hop may have jump hosts of its own, as in OpenSSH.
      Target step = resolve_one(next, first);
      first = false;
      std::ranges::move(std::exchange(step.jumps, {}), std::back_inserter(target.jumps));
      target.jumps.push_back(std::move(step));
    }
    --depth_;
  }

  const config::Config& config_;
  fs::path home_;
  std::vector<ConfigSource> sources_;
  std::size_t depth_ = 0;
};

}  // namespace

std::string Target::describe() const {
  return user.value + "@" + host_and_port(host.value, port.value);
}

std::string Target::password_prompt() const {
  std::string text = describe();
  for (const Target& jump : jumps) {
    text += " via " + jump.describe();
  }
  return text;
}

std::string Target::agent_socket() const {
  if (!identity_agent.value.empty()) {
    return identity_agent.value == "none" ? "" : identity_agent.value;
  }
  const char* socket = std::getenv("SSH_AUTH_SOCK");
  return socket != nullptr ? socket : "";
}

Target resolve(const config::Config& config, const config::Server& server, const fs::path& user_config) {
  return Resolver(config, user_config.empty() ? home_folder() / ".ssh" / "config" : user_config)
      .server(server);
}

}  // namespace remote::ssh
