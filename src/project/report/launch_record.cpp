#include "project/report/launch_record.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "base/json.hpp"
#include "base/strings.hpp"
#include "launch/command.hpp"
#include "servers/sent_state.hpp"

namespace remote::project {
namespace {

using Json = nlohmann::ordered_json;

constexpr int newest_record_version = 1;
// A record of many hundred servers is smaller. What is larger was not written by us.
constexpr std::uintmax_t most_record_bytes = 16U << 20U;
constexpr std::size_t most_entries = 4096;  // servers, and steps: more would be too many for the page

// What differs between the processes of a launch by its nature.
constexpr std::array own_names{"RANK",      "LOCAL_RANK", "NODE_RANK",          "GROUP_RANK",
                               "ROLE_RANK", "RUN_UUID",   "TORCHELASTIC_RUN_ID"};

std::filesystem::path record_file(const jobs::Store& store, const JobId& id) {
  return store.job_folder(id) / "launch.json";
}

// An array, and not an object: the order counts.
Json json_of(const std::vector<std::pair<std::string, std::string>>& pairs) {
  Json all = Json::array();
  for (const auto& [name, value] : pairs) {
    all.push_back({name, value});
  }
  return all;
}

Json json_of(const LaunchRecord& record) {
  Json servers = Json::array();
  for (const ServerSetup& one : record.servers) {
    servers.push_back({{"server", one.server},
                       {"facts", json_of(one.facts)},
                       {"env", json_of(one.env)},
                       {"clock_ahead", one.clock_ahead}});
  }
  Json steps = Json::array();
  for (const LaunchStep& one : record.steps) {
    steps.push_back(
        {{"name", one.name}, {"server", one.server}, {"from_ms", one.from_ms}, {"to_ms", one.to_ms}});
  }
  return {{"version", newest_record_version},
          {"launcher", record.launcher},
          {"servers", std::move(servers)},
          {"steps", std::move(steps)}};
}

LaunchRecord record_of(const Json& json) {
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  LaunchRecord record;
  record.launcher = json.at("launcher").get<std::string>();
  // The file may have come with the project, so its numbers are looked at.
  const auto moment = [](const Json& value) {
    return value.is_number_integer() ? value.get<std::int64_t>() : 0;
  };
  const auto seconds = [](const Json& value) {
    const double number = value.get<double>();
    return std::isfinite(number) ? std::clamp(number, -1e9, 1e9) : 0;
  };
  for (const Json& one : json.at("servers")) {
    if (record.servers.size() == most_entries) {
      break;
    }
    record.servers.push_back({one.at("server").get<std::string>(), one.at("facts").get<Pairs>(),
                              one.at("env").get<Pairs>(), seconds(one.at("clock_ahead"))});
  }
  for (const Json& one : json.at("steps")) {
    if (record.steps.size() == most_entries) {
      break;
    }
    record.steps.push_back({one.at("name").get<std::string>(), one.at("server").get<std::string>(),
                            moment(one.at("from_ms")), moment(one.at("to_ms"))});
  }
  return record;
}

}  // namespace

void write_launch_record(const jobs::Store& store, const JobId& first, const LaunchRecord& record) {
  write_file_atomic(record_file(store, first), dump_json_line(json_of(record)) + "\n", 0600);
}

std::optional<LaunchRecord> read_launch_record(const jobs::Store& store, const std::vector<Job>& jobs) {
  for (const Job& job : jobs) {
    const std::filesystem::path file = record_file(store, job.id);
    const auto json = read_own_json(file, newest_record_version, most_record_bytes);
    if (!json) {
      continue;
    }
    try {
      if (json->is_object()) {
        return record_of(*json);
      }
    } catch (const Json::exception&) {  // said below
    }
    throw Error("cannot read " + file.string(), "it is no record of a launch that this version knows",
                "the report has nothing about the environment");
  }
  return std::nullopt;
}

ServerSetup planned_setup(const config::Config& config, const config::Server& server,
                          const ssh::LoginFacts& login, const std::vector<PlannedProcess>& processes,
                          const std::vector<CodeChanged>& changed) {
  std::vector<PlannedProcess> own;
  std::ranges::copy_if(processes, std::back_inserter(own),
                       [&](const PlannedProcess& process) { return process.server == server.name; });
  ServerSetup setup{.server = server.name, .facts = {}, .env = shared_variables(own)};
  if (const std::string digest = servers::SentState(config, server, login).mark().digest; !digest.empty()) {
    setup.facts.emplace_back("code", digest);
  }
  for (const CodeChanged& change : changed) {
    if (std::ranges::find(change.servers, server.name) != change.servers.end()) {
      setup.facts.emplace_back("changed here",
                               change.never_sent ? "never sent" : counted(change.names.size(), "file"));
    }
  }
  return setup;
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
      shared.emplace_back(name, launch::mask_value(name, value));
    }
  }
  std::ranges::sort(shared);
  return shared;
}

}  // namespace remote::project
