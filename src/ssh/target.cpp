#include "ssh/target.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>
#include <pwd.h>
#include <remote/error.hpp>
#include <unistd.h>

#include "base/files.hpp"
#include "base/strings.hpp"
#include "base/subprocess.hpp"
#include "ssh/ssh_config.hpp"

namespace remote::ssh {
namespace fs = std::filesystem;
using config::Setting;
namespace {

constexpr std::size_t longest_chain = 8;
constexpr std::array default_keys{"id_ed25519", "id_ecdsa", "id_rsa"};

std::string local_user() {
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> buffer{};
  if (::getpwuid_r(::getuid(), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) {
    return found->pw_name;
  }
  const char* name = std::getenv("USER");
  return name != nullptr ? name : "root";
}

std::string local_host() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

int parse_port(const std::string& text, const std::string& origin) {
  const auto port = parse_number<int>(text);
  if (!port || *port < 1 || *port > 65535) {
    throw Error::usage(origin, fmt::format("'{}' is not a port number", text), "give one from 1 to 65535");
  }
  return *port;
}

// "[USER@]HOST[:PORT]" or "ssh://[USER@]HOST[:PORT]".
struct Hop {
  std::string user;
  std::string host;
  std::optional<int> port;
};

Hop parse_hop(std::string_view text, const std::string& origin) {
  Hop hop;
  std::string_view rest = trim(text);
  if (rest.starts_with("ssh://")) {
    rest.remove_prefix(6);
  }
  if (const std::size_t at = rest.rfind('@'); at != std::string_view::npos) {
    hop.user = rest.substr(0, at);
    rest.remove_prefix(at + 1);
  }
  if (rest.starts_with('[')) {
    const std::size_t end = rest.find(']');
    if (end == std::string_view::npos) {
      throw Error::usage(origin, fmt::format("'{}' has no closing bracket", text));
    }
    hop.host = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
    if (rest.starts_with(':')) {
      hop.port = parse_port(std::string(rest.substr(1)), origin);
    }
  } else if (std::ranges::count(rest, ':') == 1) {
    const std::size_t colon = rest.find(':');
    hop.host = rest.substr(0, colon);
    hop.port = parse_port(std::string(rest.substr(colon + 1)), origin);
  } else {
    hop.host = rest;  // a name, or a bare IPv6 address
  }
  if (hop.host.empty()) {
    throw Error::usage(origin, fmt::format("'{}' names no jump host", text), "write [USER@]HOST[:PORT]");
  }
  return hop;
}

class Resolver {
 public:
  Resolver(const config::Config& config, const fs::path& user_config)
      : config_(config), home_(home_folder()), sources_(ssh_config_sources(user_config)) {}

  Target server(const config::Server& server) {
    Given given;
    given.name = server.name;
    if (server.known_hosts) {
      given.known_hosts = Setting<fs::path>{*server.known_hosts, origin(server, "known_hosts")};
    }
    given.host = {server.hostname.empty() ? server.name : server.hostname, origin(server, "hostname")};
    if (server.username) {
      given.user = {*server.username, origin(server, "username")};
    }
    if (server.port) {
      given.port = {*server.port, origin(server, "port")};
    }
    if (server.private_key) {
      given.key = Setting<fs::path>{*server.private_key, origin(server, "private_key")};
    }
    if (server.proxy_jump) {
      given.proxy_jump = {*server.proxy_jump, origin(server, "proxy_jump")};
    }
    given.default_user = "ubuntu";
    Target target = resolve_one(given, true);
    if (server.password) {
      target.password = {*server.password, origin(server, "password")};
    }
    if (server.password_env) {
      target.password_env = {*server.password_env, origin(server, "password_env")};
    }
    if (server.password_command) {
      target.password_command = {*server.password_command, origin(server, "password_command")};
    }
    return target;
  }

 private:
  // What is fixed before ~/.ssh/config is asked; an empty value is open.
  struct Given {
    std::string name;
    Setting<std::string> host;
    Setting<std::string> user;
    Setting<int> port;
    std::optional<Setting<fs::path>> key;
    std::optional<Setting<fs::path>> known_hosts;
    bool key_is_spare = false;  // the server's key, tried on its jump host too
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
    target.host = given.host;
    if (const ConfigValue* name = options.find("hostname")) {
      target.host = {expand_tokens(name->text, {{'h', given.host.value}}), name->origin};
    }
    target.user = choose(given.user, options.find("user"), given.default_user);
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
    // configs.yaml has a default of its own, so only another value counts as given there.
    if (config_.connect_timeout_s != 10 || target.connect_timeout_s.is_default()) {
      target.connect_timeout_s = {config_.connect_timeout_s,
                                  config_.connect_timeout_s != 10 ? "configs.yaml" : "default"};
    }
    if (with_proxy) {
      read_proxy(target, given, options, tokens);
    }
    return target;
  }

  static Setting<std::string> choose(const Setting<std::string>& given, const ConfigValue* found,
                                     const std::string& otherwise) {
    if (!given.value.empty()) {
      return given;
    }
    return found != nullptr ? Setting<std::string>{found->text, found->origin}
                            : Setting<std::string>{otherwise};
  }

  void read_identities(Target& target, const Given& given, const HostOptions& options,
                       const Tokens& tokens) const {
    if (given.key) {
      target.identities.push_back(*given.key);
      target.identities_given = !given.key_is_spare;
    }
    if (!given.key || given.key_is_spare) {
      for (const ConfigValue& file : options.all("identityfile")) {
        if (lower_equal(file.text, "none")) {
          target.identities_given = true;
          continue;
        }
        target.identities.push_back({expand_path(file.text, tokens, home_), file.origin});
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
    if (const ConfigValue* only = options.find("identitiesonly")) {
      target.identities_only = {is_yes(only->text), only->origin};
    }
    if (const ConfigValue* agent = options.find("identityagent")) {
      std::string path = agent->text;
      if (path == "SSH_AUTH_SOCK") {
        path.clear();
      } else if (path.starts_with('$') && !path.starts_with("${")) {
        const char* value = std::getenv(path.c_str() + 1);
        path = value != nullptr ? value : "none";
      } else if (!lower_equal(path, "none")) {
        path = expand_path(path, tokens, home_).string();
      } else {
        path = "none";
      }
      target.identity_agent = {path, agent->origin};
    }
  }

  void read_host_keys(Target& target, const Given& given, const HostOptions& options,
                      const Tokens& tokens) const {
    if (given.known_hosts) {
      target.known_hosts = {{given.known_hosts->value}, given.known_hosts->origin};
    } else if (const ConfigValue* files = options.find("userknownhostsfile")) {
      target.known_hosts.origin = files->origin;
      std::vector<std::string> words;
      split_arguments(files->text, words);
      for (const std::string& word : words) {
        if (!lower_equal(word, "none")) {
          target.known_hosts.value.push_back(expand_path(word, tokens, home_));
        }
      }
    } else {
      target.known_hosts.value.push_back(home_ / ".ssh" / "known_hosts");
    }
    if (const ConfigValue* alias = options.find("hostkeyalias")) {
      target.host_key_alias = {alias->text, alias->origin};
    }
    if (config_.host_keys == config::HostKeys::strict) {
      target.host_keys = {config::HostKeys::strict, "configs.yaml"};
    } else if (const ConfigValue* strict = options.find("stricthostkeychecking")) {
      // "no" and "ask" are taken as accept-new: a changed key is never accepted here.
      target.host_keys = {is_yes(strict->text) ? config::HostKeys::strict : config::HostKeys::accept_new,
                          strict->origin};
    }
    if (const ConfigValue* hash = options.find("hashknownhosts")) {
      target.hash_known_hosts = {is_yes(hash->text), hash->origin};
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
    if (target.proxy_jump.value.empty() || lower_equal(target.proxy_jump.value, "none")) {
      return;
    }
    if (++depth_ > longest_chain) {
      throw Error::usage(target.proxy_jump.origin,
                         fmt::format("the jump hosts of '{}' lead in a circle", given.host.value),
                         "look at the ProxyJump lines of ~/.ssh/config");
    }
    bool first = true;
    for (const std::string& word : split(target.proxy_jump.value, ',')) {
      const Hop hop = parse_hop(word, target.proxy_jump.origin);
      Given next;
      next.name = hop.host;
      next.host = {hop.host, target.proxy_jump.origin};
      next.user = {hop.user, target.proxy_jump.origin};
      next.port = {hop.port.value_or(0), target.proxy_jump.origin};
      next.key = given.key;
      next.key_is_spare = true;
      next.default_user = local_user();
      // Only the first hop may itself be behind others, as with OpenSSH.
      Target step = resolve_one(next, first);
      first = false;
      std::vector<Target> before = std::move(step.jumps);
      step.jumps.clear();
      std::ranges::move(before, std::back_inserter(target.jumps));
      target.jumps.push_back(std::move(step));
    }
    --depth_;
  }

  static bool lower_equal(std::string_view text, std::string_view lower) {
    return std::ranges::equal(text, lower, [](char a, char b) {
      return std::tolower(static_cast<unsigned char>(a)) == static_cast<unsigned char>(b);
    });
  }
  static bool is_yes(std::string_view text) { return lower_equal(text, "yes") || lower_equal(text, "true"); }

  const config::Config& config_;
  fs::path home_;
  std::vector<ConfigSource> sources_;
  std::size_t depth_ = 0;
};

}  // namespace

std::string Target::describe() const {
  return fmt::format("{}@{}:{}", user.value, host.value, port.value);
}

Target resolve(const config::Config& config, const config::Server& server, const fs::path& user_config) {
  return Resolver(config, user_config.empty() ? home_folder() / ".ssh" / "config" : user_config)
      .server(server);
}

}  // namespace remote::ssh
