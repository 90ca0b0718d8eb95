#include "jobs/launch_request_json.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <remote/error.hpp>

#include "base/json.hpp"

namespace remote::jobs {
namespace {

using Json = nlohmann::ordered_json;

template <typename Value>
void put(Json& json, const char* name, const std::optional<Value>& value) {
  json[name] = value ? Json(*value) : Json(nullptr);
}
template <typename Value>
void put(Json& json, const char* name, const Value& value) {
  json[name] = value;
}
void put(Json& json, const char* name, const std::chrono::seconds& value) {
  json[name] = value.count();
}

template <typename Value>
void get(const Json& json, const char* name, std::optional<Value>& value) {
  if (const auto found = json.find(name); found != json.end() && !found->is_null()) {
    value = found->get<Value>();
  }
}
template <typename Value>
void get(const Json& json, const char* name, Value& value) {
  if (const auto found = json.find(name); found != json.end()) {
    value = found->get<Value>();
  }
}
void get(const Json& json, const char* name, std::chrono::seconds& value) {
  constexpr std::int64_t most = 1000000;
  auto count = static_cast<std::int64_t>(value.count());
  get(json, name, count);
  value = std::chrono::seconds(std::clamp<std::int64_t>(count, 0, most));
}

// Values that JSON stores as text.
Json text_of(const auto& value) {
  return to_string(value);
}
template <typename Value>
Json text_of(const std::optional<Value>& value) {
  return value ? text_of(*value) : Json(nullptr);
}
void get_text(const Json& json, const char* name, auto& value, const auto& parse) {
  std::optional<std::string> text;
  get(json, name, text);
  const auto parsed = parse(text.value_or(""));
  if (text && !parsed) {
    throw Error("not a launch record", fmt::format("'{}' is '{}'", name, *text));
  }
  if (parsed) {
    value = *parsed;
  }
}

// The fields that are written and read in the same way; with a parser, if JSON stores them as text.
void visit(auto& json, auto& request, const auto& field) {
  field(json, "servers", request.servers);
  field(json, "nproc", request.nproc, parse_ranks_per_server);
  field(json, "nodes", request.nodes);
  field(json, "requeue", request.requeue);
  field(json, "master_port", request.master_port);
  field(json, "image", request.image);
  field(json, "tags", request.tags);
  field(json, "rendezvous", request.torchrun.rendezvous, parse_rendezvous);
  field(json, "nnodes", request.torchrun.nodes, parse_node_range);
  field(json, "max_restarts", request.torchrun.max_restarts);
  field(json, "mpi_over_ssh", request.mpi_over_ssh);
  field(json, "init_method", request.init_method, parse_init_method);
  field(json, "init_dir", request.init_dir);
  field(json, "python", request.python);
  field(json, "local_rank_arg", request.local_rank_arg);
  field(json, "enable_stacks", request.enable_stacks);
  field(json, "check", request.check);
  field(json, "end_others", request.end_others);
  field(json, "failure_grace", request.failure_grace);
  field(json, "lost_after", request.lost_after);
  field(json, "frozen", request.frozen);
  field(json, "restarts", request.restarts);
  field(json, "min_servers", request.min_servers);
  field(json, "gpus", request.lease.gpus);
  field(json, "cpus", request.lease.cpus);
  field(json, "memory", request.lease.memory);
  field(json, "wait", request.lease.wait);
  field(json, "hang_after", request.hang_after);
  field(json, "on_hang", request.on_hang, parse_on_hang);
  field(json, "no_restart_exit", request.no_restart_exit);
}

}  // namespace

Json to_json(const LaunchRequest& request, const std::vector<std::string>& secrets) {
  Json json = Json::object();
  visit(json, request, [](Json& to, const char* name, const auto& value, auto... parse) {
    if constexpr (sizeof...(parse) > 0) {
      to[name] = text_of(value);
    } else {
      put(to, name, value);
    }
  });
  json["restart_on"] = Json::array();
  for (const RestartCause cause : request.restart_on) {
    json["restart_on"].push_back(to_string(cause));
  }
  Json& hosts = json["hosts"] = Json::array();
  for (const LaunchHost& host : request.hosts) {
    Json& one = hosts.emplace_back(Json{{"name", host.name}, {"gpus", host.gpus}});
    put(one, "slots", host.slots);
    put(one, "without_gpus", host.without_gpus);
  }
  Json& env = json["env"] = Json::array();  // an array, because the order matters
  for (const auto& [name, value] : request.env) {
    const bool secret = std::ranges::find(secrets, name) != secrets.end();
    env.push_back({name, secret ? Json(nullptr) : Json(value)});
  }
  return json;
}

void take_json(const Json& json, LaunchRequest& request, std::vector<std::string>& secrets) {
  visit(json, request, [](const Json& from, const char* name, auto& value, auto... parse) {
    if constexpr (sizeof...(parse) > 0) {
      get_text(from, name, value, parse...);
    } else {
      get(from, name, value);
    }
  });
  for (const Json& one : json.value("restart_on", Json::array())) {
    if (const auto cause = parse_restart_cause(one.get<std::string>())) {
      request.restart_on.push_back(*cause);
    }
  }
  for (const Json& one : json.at("hosts")) {
    LaunchHost& host = request.hosts.emplace_back();
    host.where = "the record";
    get(one, "name", host.name);
    get(one, "gpus", host.gpus);
    get(one, "slots", host.slots);
    get(one, "without_gpus", host.without_gpus);
  }
  for (const Json& one : json.at("env")) {
    const auto& name = request.env.emplace_back(one.at(0), "").first;
    if (one.at(1).is_null()) {
      secrets.push_back(name);
    } else {
      request.env.back().second = one.at(1);
    }
  }
}

}  // namespace remote::jobs
