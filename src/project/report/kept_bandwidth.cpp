#include "project/report/kept_bandwidth.hpp"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/json.hpp"

namespace remote::project {
namespace {

using Json = nlohmann::ordered_json;

constexpr int newest_bandwidth_version = 1;
constexpr std::uintmax_t most_bandwidth_bytes = 64U << 20U;
constexpr std::size_t most_servers = 1024;  // as in `check`
constexpr std::size_t most_shown = 128;     // in one launch: the page has a cell for each pair

std::filesystem::path file_of(const config::Config& config) {
  return config.local(".remote/bandwidth.json");
}

Json json_of(const std::vector<Flow>& flows) {
  Json all = Json::array();
  for (const Flow& flow : flows) {
    all.push_back({{"from", flow.from},
                   {"to", flow.to},
                   {"gbit_s", flow.gbit_s},
                   {"latency_us", flow.latency.count()},
                   {"method", flow.method},
                   {"error", flow.error},
                   {"outlier", flow.outlier}});
  }
  return all;
}

double number_of(const Json& json) {
  const double value = json.get<double>();
  return std::isfinite(value) && value >= 0 ? value : 0;
}

std::vector<Flow> flows_of(const Json& json, std::size_t servers) {
  std::vector<Flow> flows;
  for (const Json& one : json) {
    Flow flow;
    flow.from = one.at("from").get<std::size_t>();
    flow.to = one.at("to").get<std::size_t>();
    flow.gbit_s = number_of(one.at("gbit_s"));
    flow.latency = Microseconds(number_of(one.at("latency_us")));
    flow.method = one.at("method").get<std::string>();
    flow.error = one.at("error").get<std::string>();
    flow.outlier = one.at("outlier").get<bool>();
    if (flow.from < servers && flow.to < servers) {
      flows.push_back(std::move(flow));
    }
  }
  return flows;
}

std::optional<MeasuredBandwidth> measured_of(const Json& json) {
  MeasuredBandwidth measured;
  const auto at = parse_utc(json.at("measured_at").get<std::string>());
  const auto names = json.at("servers").get<std::vector<std::string>>();
  if (!at || names.size() > most_servers) {
    return std::nullopt;
  }
  measured.at = *at;
  for (const std::string& name : names) {
    measured.network.servers.emplace_back().server = name;
  }
  Bandwidth& bandwidth = measured.network.bandwidth.emplace();
  bandwidth.flows = flows_of(json.at("flows"), names.size());
  bandwidth.at_once = flows_of(json.at("at_once"), names.size());
  bandwidth.median_gbit_s = number_of(json.at("median_gbit_s"));
  bandwidth.total_gbit_s = number_of(json.at("total_at_once_gbit_s"));
  return measured;
}

// The part of the measurements about the servers of these jobs. nullopt if some of these servers did not take
// part, or there are too many to display.
std::optional<MeasuredBandwidth> part_of(MeasuredBandwidth measured, const std::vector<Job>& jobs) {
  const std::vector<NetworkServer>& all = measured.network.servers;
  std::vector<std::optional<std::size_t>> place(all.size());  // by index into `all`: index into the part
  std::vector<NetworkServer> own;
  for (const Job& job : jobs) {
    const auto server = std::ranges::find(all, job.server, &NetworkServer::server);
    if (server == all.end() || own.size() == most_shown) {
      return std::nullopt;
    }
    auto& index = place[static_cast<std::size_t>(server - all.begin())];
    if (!index) {
      index = own.size();
      own.push_back(*server);
    }
  }
  Bandwidth& bandwidth = *measured.network.bandwidth;
  for (std::vector<Flow>* flows : {&bandwidth.flows, &bandwidth.at_once}) {
    std::erase_if(*flows, [&](const Flow& flow) { return !place[flow.from] || !place[flow.to]; });
    for (Flow& flow : *flows) {
      flow.from = *place[flow.from];
      flow.to = *place[flow.to];
    }
  }
  measured.network.servers = std::move(own);
  return measured;
}

}  // namespace

void keep_bandwidth(const config::Config& config, const Network& network) {
  Json names = Json::array();
  for (const NetworkServer& server : network.servers) {
    names.push_back(server.server);
  }
  const Bandwidth& bandwidth = *network.bandwidth;
  const Json json = {{"version", newest_bandwidth_version},
                     {"measured_at", format_utc(now_seconds())},
                     {"servers", std::move(names)},
                     {"median_gbit_s", bandwidth.median_gbit_s},
                     {"total_at_once_gbit_s", bandwidth.total_gbit_s},
                     {"flows", json_of(bandwidth.flows)},
                     {"at_once", json_of(bandwidth.at_once)}};
  write_file_atomic(file_of(config), dump_json(json), 0600);
}

std::optional<MeasuredBandwidth> kept_bandwidth(const config::Config& config, const std::vector<Job>& jobs) {
  const std::filesystem::path file = file_of(config);
  if (std::ranges::all_of(jobs, [&](const Job& job) { return job.server == jobs.front().server; })) {
    return std::nullopt;
  }
  const auto json =
      read_own_json(file.parent_path(), file.filename(), newest_bandwidth_version, most_bandwidth_bytes);
  if (!json) {
    return std::nullopt;
  }
  std::optional<MeasuredBandwidth> measured;
  try {
    if (json->is_object()) {
      measured = measured_of(*json);
    }
  } catch (const Json::exception&) {  // handled below
  }
  if (!measured) {
    throw Error("cannot read " + file.string(), "it is not a measurement that this version supports",
                "measure the bandwidth again");
  }
  return part_of(std::move(*measured), jobs);
}

}  // namespace remote::project
