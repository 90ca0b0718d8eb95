// How each server is reached, the source of each setting, and the current state of the servers.

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "base/files.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"
#include "project/core.hpp"
#include "rules/usable.hpp"
#include "servers/facts.hpp"
#include "servers/fanout.hpp"
#include "servers/python_env.hpp"
#include "ssh/masters.hpp"
#include "ssh/target.hpp"

namespace remote::project {
namespace fs = std::filesystem;
namespace {

// Secrets are never part of a setting: for a password, this is only its source.
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

void add_keys(std::vector<ServerSetting>& lines, const ssh::Target& target) {
  bool any = false;
  for (const auto& key : target.identities) {
    const bool there = is_there(key.value);
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

void add_route(std::vector<ServerSetting>& lines, const ssh::Target& target) {
  for (const ssh::Target& jump : target.jumps) {
    lines.push_back({"jump", jump.describe(), target.proxy_jump.origin, ""});
  }
  if (!target.proxy_command.value.empty()) {
    lines.push_back({"proxy_command", target.proxy_command.value, target.proxy_command.origin, ""});
  }
}

// Adds the settings of configs.yaml that are not about the connection.
void add_project(std::vector<ServerSetting>& lines, const ssh::Target& target, const config::Config& config,
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
  } else if (!server.gpu_indices.empty()) {
    lines.push_back({"gpus", "only " + server.variables().front().second, at("gpus"), ""});
  }
}

std::vector<ServerSetting> describe(const ssh::Target& target, const config::Config& config,
                                    const config::Server& server) {
  std::vector<ServerSetting> lines = {{"host", target.host.value, target.host.origin, ""},
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
  if (!target.compression.is_default()) {
    lines.push_back({"compression", target.compression.value ? "yes" : "no", target.compression.origin, ""});
  }
  lines.push_back({"connection", config::to_string(target.connect_by.value), target.connect_by.origin, ""});
  add_project(lines, target, config, server);
  return lines;
}

std::vector<ServerInfo> describe_servers(const Core& core, const std::vector<std::string>& globs) {
  std::vector<ServerInfo> all;
  for (const config::Server& server : core.servers(globs)) {
    ServerInfo info{server.name, server.hostname, {}, std::nullopt};
    try {
      const ssh::Target target = ssh::resolve(core.config, server, home_folder() / ".ssh" / "config");
      info.settings = describe(target, core.config, server);
      info.logged_in =
          target.connect_by.value != config::ConnectBy::libssh && ssh::Masters().any_open(target);
    } catch (const Error& error) {
      info.error = error.on(server.name);
    }
    all.push_back(std::move(info));
  }
  return all;
}

std::vector<ServerState> server_states(Core& core, const std::vector<std::string>& globs) {
  const std::vector<config::Server> servers = core.servers(globs);
  const auto answers =
      servers::fan_out(servers, &config::Server::name, [&](const config::Server& server, std::size_t) {
        const auto connection = core.connector().connect(server, core.cancel());
        servers::FactsRequest request = servers::load_request(core.config.project_path_on(server),
                                                              servers::prologue(core.config, server));
        request.silence = std::chrono::seconds(12);
        return servers::ask_facts(*connection, request, core.cancel());
      });
  std::vector<ServerState> states;
  std::vector<Job> known = stored_jobs(core, {.unfinished_only = true});
  std::vector<Job> asked;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    ServerState state{servers[i].name, std::nullopt, servers[i].gpus, 0, answers[i].error, std::nullopt, {}};
    if (answers[i].ok()) {
      state.gpus = rules::count_gpus(answers[i].value->facts.gpus).count();
      state.load = answers[i].value->load(std::nullopt);
      state.load->unrecorded = count_unrecorded(core, answers[i].value->running);
      state.gpu_facts = answers[i].value->facts.gpus;
      std::ranges::copy_if(known, std::back_inserter(asked),
                           [&](const Job& job) { return job.server == state.server; });
      std::erase_if(known, [&](const Job& job) { return job.server == state.server; });
    }
    states.push_back(std::move(state));
  }
  asked = refresh(core, std::move(asked));
  asked.insert(asked.end(), known.begin(), known.end());
  for (ServerState& state : states) {
    state.jobs = static_cast<std::size_t>(std::ranges::count_if(
        asked, [&](const Job& job) { return job.server == state.server && !is_final(job.state); }));
  }
  return states;
}

}  // namespace

}  // namespace remote::project

namespace remote {

std::vector<ServerInfo> Project::servers(const std::vector<std::string>& globs) {
  return project::call(*state_, {},
                       [&](project::Core& core) { return project::describe_servers(core, globs); });
}

std::vector<ServerState> Project::server_states(const std::vector<std::string>& globs,
                                                const std::optional<Cancel>& cancel) {
  return project::call_servers(*state_, cancel,
                               [&](project::Core& core) { return project::server_states(core, globs); });
}

}  // namespace remote
