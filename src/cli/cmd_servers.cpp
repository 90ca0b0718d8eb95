#include <cstdlib>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "base/json.hpp"
#include "base/strings.hpp"
#include "cli/commands.hpp"
#include "ssh/target.hpp"
#include "ui/table.hpp"

// remote servers: how each server is reached, and where each setting came from. Asks no server.

namespace remote::cli {
namespace fs = std::filesystem;
namespace {

// One line of the answer. Secrets never become one: of a password only its source is shown.
struct Line {
  std::string setting;
  std::string value;
  std::string from;
  std::string note;  // what is wrong with it, if anything
};

std::string password_of(const ssh::Target& target, std::string& from) {
  if (!target.password.value.empty()) {
    from = target.password.origin;
    return std::string(secret_mask);
  }
  if (!target.password_env.value.empty()) {
    from = target.password_env.origin;
    return "$" + target.password_env.value;
  }
  if (!target.password_command.value.empty()) {
    from = target.password_command.origin;
    // Its arguments may be secret.
    const auto words = split_words(target.password_command.value);
    return "from " +
           (words.empty() ? std::string("a command") : words.front() + (words.size() > 1 ? " …" : ""));
  }
  return {};
}

void add_keys(std::vector<Line>& lines, const ssh::Target& target) {
  bool any = false;
  for (const auto& key : target.identities) {
    std::error_code ignored;
    const bool there = fs::exists(key.value, ignored);
    if (there || target.identities_given) {
      lines.push_back({"key", key.value.string(), key.origin, there ? "" : "no such file"});
      any = true;
    }
  }
  if (!any) {
    lines.push_back({"key", "none", "default", ""});
  }
  for (const auto& certificate : target.certificates) {
    lines.push_back({"certificate", certificate.value.string(), certificate.origin, ""});
  }
  const char* agent = std::getenv("SSH_AUTH_SOCK");
  const std::string usual = agent != nullptr && *agent != '\0' ? agent : "none";
  lines.push_back({"agent", target.identity_agent.value.empty() ? usual : target.identity_agent.value,
                   target.identity_agent.is_default() ? "SSH_AUTH_SOCK" : target.identity_agent.origin, ""});
}

void add_route(std::vector<Line>& lines, const ssh::Target& target) {
  for (const ssh::Target& jump : target.jumps) {
    lines.push_back({"jump", jump.describe(), target.proxy_jump.origin, ""});
  }
  if (!target.proxy_command.value.empty()) {
    lines.push_back({"proxy_command", target.proxy_command.value, target.proxy_command.origin, ""});
  }
}

// What configs.yaml says beside the connection.
void add_project(std::vector<Line>& lines, const ssh::Target& target, const config::Config& config,
                 const config::Server& server) {
  const auto at = [&](const char* key) {
    const auto line = server.key_lines.find(key);
    return fmt::format("configs.yaml:{}", line == server.key_lines.end() ? server.line : line->second);
  };
  lines.push_back({"internal_address", server.internal_address.value_or(target.host.value),
                   server.internal_address ? at("internal_address") : target.host.origin, ""});
  lines.push_back({"project", config.project_path_on(server),
                   server.remote_path ? at("remote_path") : (config.remote_path ? "configs.yaml" : "default"),
                   ""});
  if (server.gpus) {
    lines.push_back({"gpus", std::to_string(*server.gpus), at("gpus"), ""});
  }
}

std::vector<Line> describe(const config::Config& config, const config::Server& server) {
  const ssh::Target target = ssh::resolve(config, server, home_folder() / ".ssh" / "config");
  std::vector<Line> lines = {{"host", target.host.value, target.host.origin, ""},
                             {"port", std::to_string(target.port.value), target.port.origin, ""},
                             {"user", target.user.value, target.user.origin, ""}};
  add_route(lines, target);
  add_keys(lines, target);
  std::string from;
  if (const std::string password = password_of(target, from); !password.empty()) {
    lines.push_back({"password", password, from, ""});
  }
  lines.push_back({"host_keys", target.host_keys.value == config::HostKeys::strict ? "strict" : "accept-new",
                   target.host_keys.origin, ""});
  for (const fs::path& file : target.known_hosts.value) {
    lines.push_back({"known_hosts", file.string(), target.known_hosts.origin, ""});
  }
  lines.push_back({"connect_timeout", fmt::format("{}", target.connect_timeout_s.value),
                   target.connect_timeout_s.origin, ""});
  add_project(lines, target, config, server);
  return lines;
}

nlohmann::json to_json(const std::vector<Line>& lines) {
  auto settings = nlohmann::json::array();
  for (const Line& line : lines) {
    settings.push_back(
        {{"name", line.setting},
         {"value", line.value},
         {"from", line.from},
         {"problem", line.note.empty() ? nlohmann::json(nullptr) : nlohmann::json(line.note)}});
  }
  return settings;
}

void servers(Context& context, const std::vector<std::string>& globs) {
  const std::vector<config::Server> chosen = context.servers(globs);
  ui::Table table({"SERVER", "SETTING", "VALUE", "FROM"});
  auto json = nlohmann::json::array();
  for (const config::Server& server : chosen) {
    try {
      const std::vector<Line> lines = describe(context.config(), server);
      json.push_back({{"server", server.name}, {"settings", to_json(lines)}, {"error", nullptr}});
      bool named = false;
      for (const Line& line : lines) {
        // In a pipe each line says its server, for grep and awk.
        const bool name = !named || !context.terminal.stdout_is_terminal();
        named = true;
        const std::string value = (line.note.empty() ? "" : line.note + ": ") + line.value;
        table.add({ui::Cell(name ? server.name : "", ui::Style::cyan), line.setting,
                   ui::Cell(value, line.note.empty() ? ui::Style::plain : ui::Style::yellow),
                   ui::Cell(line.from, line.from == "default" ? ui::Style::dim : ui::Style::plain)});
      }
    } catch (const Error& error) {
      json.push_back(
          {{"server", server.name}, {"settings", nlohmann::json::array()}, {"error", error.message()}});
      context.show(error.on(server.name));
      context.exit_code = error.kind() == ErrorKind::usage ? 2 : 1;
    }
  }
  if (context.options.json) {
    context.terminal.out(dump_json(json));
  } else if (!table.empty()) {
    context.terminal.out(table.text(context.terminal));
  }
}

}  // namespace

void add_servers(CLI::App& app, Context& context) {
  auto globs = std::make_shared<std::vector<std::string>>();
  CLI::App* command =
      app.add_subcommand("servers", "Show how each server is reached, and where each setting came from");
  command->add_option("--server", *globs, "A server's name or glob (repeatable; default: all)")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command->callback([globs, &context] { servers(context, *globs); });
}

}  // namespace remote::cli
