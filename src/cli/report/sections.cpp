#include "cli/report/sections.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/strings.hpp"
#include "cli/context.hpp"
#include "cli/show/bandwidth.hpp"

namespace remote::cli {
namespace {

using Json = nlohmann::ordered_json;
using Pairs = std::vector<std::pair<std::string, std::string>>;

constexpr std::size_t longest_value = 1000;

// Each name once, in order of appearance, with its values and the servers that have each value. A server
// without the name has the value null.
Json side_by_side(const LaunchRecord& record, Pairs ServerSetup::*part) {
  std::vector<std::string> names;
  for (const ServerSetup& server : record.servers) {
    for (const auto& [name, value] : server.*part) {
      if (std::ranges::find(names, name) == names.end()) {
        names.push_back(name);
      }
    }
  }
  Json all = Json::array();
  for (const std::string& name : names) {
    std::vector<std::pair<Json, Json>> values;
    for (const ServerSetup& server : record.servers) {
      const auto found = std::ranges::find(server.*part, name, &Pairs::value_type::first);
      const Json value =
          found == (server.*part).end() ? Json(nullptr) : Json(visible_line(found->second, longest_value));
      auto known = std::ranges::find(values, value, &std::pair<Json, Json>::first);
      if (known == values.end()) {
        known = values.emplace(values.end(), value, Json::array());
      }
      known->second.push_back(server.server);
    }
    Json list = Json::array();
    for (auto& [value, servers] : values) {
      list.push_back({{"value", value}, {"servers", std::move(servers)}});
    }
    all.push_back(
        {{"name", visible_line(name)}, {"differs", values.size() > 1}, {"values", std::move(list)}});
  }
  return all;
}

// In the order of Moment::Kind.
constexpr std::array moment_words{"first_output", "restarted", "requeued", "failed", "killed", "lost"};

}  // namespace

Json timeline_json(const Report& report) {
  Json steps = Json::array();
  if (report.record) {
    for (const LaunchStep& step : report.record->steps) {
      steps.push_back({{"name", visible_line(step.name)},
                       {"server", step.server},
                       {"from_ms", step.from.time_since_epoch().count()},
                       {"to_ms", step.to.time_since_epoch().count()}});
    }
  }
  Json moments = Json::array();
  for (const Moment& one : report.moments) {
    moments.push_back({{"kind", moment_words.at(static_cast<std::size_t>(one.kind))},
                       {"at_ms", one.at.time_since_epoch().count()},
                       {"exact", one.exact},
                       {"key", one.key},
                       {"rank", or_null(one.rank)},
                       {"server", one.server},
                       {"text", visible_line(one.text)}});
  }
  return {{"steps", std::move(steps)}, {"moments", std::move(moments)}};
}

Json gpus_json(const Report& report) {
  Json all = Json::array();
  for (const GpuCurve& gpu : report.gpus) {
    std::vector<double> at;
    for (const Instant instant : gpu.at) {
      at.push_back(static_cast<double>(instant.time_since_epoch().count()));
    }
    all.push_back({{"server", gpu.server},
                   {"index", gpu.index},
                   {"name", visible_line(gpu.name)},
                   {"memory_total", gpu.memory_total > 0 ? Json(gpu.memory_total) : Json(nullptr)},
                   {"at", at},
                   {"use", gpu.use},  // NaN is written as null
                   {"memory", gpu.memory}});
  }
  return all;
}

Json measured_json(const Report& report) {
  if (!report.bandwidth) {
    return nullptr;
  }
  const Network& network = report.bandwidth->network;
  Json servers = Json::array();
  for (std::size_t i = 0; i < network.servers.size(); ++i) {
    Json one = {{"server", visible_line(network.servers[i].server)}};
    one.update(bandwidth_json(network, i));
    servers.push_back(std::move(one));
  }
  return {{"measured_at", format_utc(report.bandwidth->at)}, {"servers", std::move(servers)}};
}

Json environment_json(const Report& report) {
  if (!report.record) {
    return nullptr;
  }
  return {{"launcher", to_string(report.record->launcher)},
          {"facts", side_by_side(*report.record, &ServerSetup::facts)},
          {"variables", side_by_side(*report.record, &ServerSetup::env)}};
}

}  // namespace remote::cli
