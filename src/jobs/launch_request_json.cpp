#include "jobs/launch_request_json.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <remote/error.hpp>

#include "base/json.hpp"

namespace remote::jobs {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array init_methods{"env", "tcp", "file"};  // in the order of InitMethod

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
void put(Json& json, const char* name, const RanksPerServer& value) {
  json[name] = to_string(value);
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
void get(const Json& json, const char* name, RanksPerServer& value) {
  std::string text = to_string(value);
  get(json, name, text);
  const auto ranks = parse_ranks_per_server(text);
  if (!ranks) {
    throw Error("not a launch record", fmt::format("'{}' is '{}'", name, text));
  }
  value = *ranks;
}

// What is written and read alike.
void visit(auto& json, auto& request, const auto& field) {
  field(json, "servers", request.servers);
  field(json, "nproc", request.nproc);
  field(json, "nodes", request.nodes);
  field(json, "requeue", request.requeue);
  field(json, "master_port", request.master_port);
  field(json, "image", request.image);
  field(json, "tags", request.tags);
  field(json, "rendezvous", request.torchrun.rendezvous);
  field(json, "nnodes", request.torchrun.nodes);
  field(json, "max_restarts", request.torchrun.max_restarts);
  field(json, "mpi_over_ssh", request.mpi_over_ssh);
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
  field(json, "no_restart_exit", request.no_restart_exit);
}

}  // namespace

Json to_json(const LaunchRequest& request, const std::vector<std::string>& secrets) {
  Json json = Json::object();
  visit(json, request, [](Json& to, const char* name, const auto& value) { put(to, name, value); });
  json["restart_on"] = Json::array();
  for (const RestartCause cause : request.restart_on) {
    json["restart_on"].push_back(to_string(cause));
  }
  json["on_hang"] = to_string(request.on_hang);
  json["init_method"] = init_methods[static_cast<std::size_t>(request.init_method)];
  Json& hosts = json["hosts"] = Json::array();
  for (const LaunchHost& host : request.hosts) {
    Json& one = hosts.emplace_back(Json{{"name", host.name}, {"gpus", host.gpus}});
    put(one, "slots", host.slots);
    put(one, "without_gpus", host.without_gpus);
  }
  Json& env = json["env"] = Json::array();  // their order counts
  for (const auto& [name, value] : request.env) {
    const bool secret = std::ranges::find(secrets, name) != secrets.end();
    env.push_back({name, secret ? Json(nullptr) : Json(value)});
  }
  return json;
}

void take_json(const Json& json, LaunchRequest& request, std::vector<std::string>& secrets) {
  visit(json, request, [](const Json& from, const char* name, auto& value) { get(from, name, value); });
  const auto method = std::ranges::find(init_methods, json.value("init_method", "env"));
  request.init_method =
      method == init_methods.end() ? InitMethod::env : static_cast<InitMethod>(method - init_methods.begin());
  for (const Json& one : json.value("restart_on", Json::array())) {
    if (const auto cause = parse_restart_cause(one.get<std::string>())) {
      request.restart_on.push_back(*cause);
    }
  }
  request.on_hang = parse_on_hang(json.value("on_hang", "")).value_or(OnHang::leave);
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
