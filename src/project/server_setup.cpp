#include "project/server_setup.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>

#include <nlohmann/json.hpp>

#include "base/command.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "base/strings.hpp"
#include "servers/sent_state.hpp"

namespace remote::project {
namespace {

using Json = nlohmann::ordered_json;

constexpr int newest_variables_version = 1;
constexpr std::uintmax_t most_variables_bytes = 16U << 20U;

std::filesystem::path variables_file(const jobs::Store& store, const Job& first) {
  return store.job_folder(first.id) / "variables.json";
}

// Variables that always differ between the processes of a launch.
constexpr std::array own_names{"RANK",      "LOCAL_RANK", "NODE_RANK",          "GROUP_RANK",
                               "ROLE_RANK", "RUN_UUID",   "TORCHELASTIC_RUN_ID"};

}  // namespace

ServerSetup planned_setup(const config::Config& config, const config::Server& server,
                          const ssh::LoginFacts& login, const std::vector<PlannedProcess>& processes,
                          const std::vector<CodeChanged>& changed) {
  std::vector<PlannedProcess> own;
  std::ranges::copy_if(processes, std::back_inserter(own),
                       [&](const PlannedProcess& process) { return process.server == server.name; });
  ServerSetup setup{.server = server.name, .facts = {}, .env = shared_variables(own)};
  bool changed_there = false;
  bool is_gone = false;
  std::vector<std::pair<std::string, std::string>> changes;
  for (const CodeChanged& change : changed) {
    if (std::ranges::find(change.servers, server.name) != change.servers.end()) {
      changed_there = changed_there || change.there;
      is_gone = is_gone || change.gone;
      changes.emplace_back(change.there ? "changed there" : "changed here",
                           change.never_sent ? "never sent" : counted(change.names.size(), "file"));
    }
  }
  // If files were changed there, the digest of the sent files does not describe the code that runs.
  const std::string digest = servers::SentState(config, server, login).mark().digest;
  if (!digest.empty() && !changed_there) {
    setup.facts.emplace_back("code", is_gone ? "gone" : digest);
  }
  setup.facts.insert(setup.facts.end(), changes.begin(), changes.end());
  return setup;
}

std::string find_fact(const ServerSetup& server, std::string_view name) {
  const auto fact = std::ranges::find(server.facts, name, &std::pair<std::string, std::string>::first);
  return fact == server.facts.end() ? "" : fact->second;
}

Env shared_variables(const std::vector<PlannedProcess>& processes) {
  Env shared;
  if (processes.empty()) {
    return shared;
  }
  for (const auto& [name, value] : processes.front().env) {
    const auto same = [&, &name = name, &value = value](const PlannedProcess& process) {
      return std::ranges::find(process.env, std::pair(name, value)) != process.env.end();
    };
    if (std::ranges::find(own_names, name) == own_names.end() && std::ranges::all_of(processes, same)) {
      shared.emplace_back(name, mask_value(name, value));
    }
  }
  std::ranges::sort(shared);
  return shared;
}

void write_variables(const jobs::Store& store, const Job& first, const std::vector<ServerSetup>& servers) {
  Json all = Json::object();
  for (const ServerSetup& server : servers) {
    all[server.server] = std::map(server.env.begin(), server.env.end());
  }
  const Json json{{"version", newest_variables_version}, {"servers", std::move(all)}};
  write_file_atomic(variables_file(store, first), dump_json_line(json) + "\n", 0600);
}

void read_variables(const jobs::Store& store, const Job& first, std::vector<ServerSetup>& servers) {
  const std::filesystem::path file = variables_file(store, first);
  const auto json = read_own_json(store.folder(), file, newest_variables_version, most_variables_bytes);
  if (!json) {
    return;
  }
  try {
    const Json& all = json->at("servers");
    for (ServerSetup& server : servers) {
      if (const auto found = all.find(server.server); found != all.end()) {
        const auto variables = found->get<std::map<std::string, std::string>>();
        server.env.assign(variables.begin(), variables.end());
      }
    }
  } catch (const Json::exception&) {
    throw Error("cannot read " + file.string(), "it is not a list of variables that this version supports",
                "the report has no variables");
  }
}

}  // namespace remote::project
