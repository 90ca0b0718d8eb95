// Findings about the bandwidth between the servers.

#include <algorithm>

#include <fmt/format.h>

#include "base/strings.hpp"
#include "project/check/network.hpp"

namespace remote::project {
namespace {

constexpr double outlier_share = 0.7;   // of the median
constexpr std::size_t least_flows = 6;  // of three servers: two flows are too few for a usual value
constexpr double gpu_gbit_s = 10;       // below this, exchanging gradients takes longer than computing them

double median_of(std::vector<double> values) {
  if (values.empty()) {
    return 0;
  }
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// The interface that `flow` uses.
const NetworkInterface* interface_of(const Network& network, const Flow& flow) {
  const Pair* pair = network.pair(flow.from, flow.to);
  const auto& all = network.servers[flow.from].interfaces;
  const auto found = std::ranges::find_if(all, [&](const NetworkInterface& interface) {
    return pair != nullptr && interface.name == pair->interface;
  });
  return found == all.end() ? nullptr : &*found;
}

// Why a flow is slow, as far as its interface explains it.
std::string reason_of(const Network& network, const Flow& flow) {
  const NetworkInterface* interface = interface_of(network, flow);
  if (interface == nullptr) {
    return "";
  }
  if (interface->speed_mbit == 0) {
    return fmt::format("; over {}, whose speed the kernel does not report", interface->name);
  }
  return fmt::format("; {} is an interface of {:g} Gbit/s", interface->name, interface->speed_mbit / 1000.0);
}

Finding slow_finding(const Network& network, const Flow& flow) {
  return {"bandwidth", CheckStatus::warn,
          fmt::format("sends {:.3g} Gbit/s to {}; the median of all is {:.3g}{}", flow.gbit_s,
                      network.servers[flow.to].server, network.bandwidth->median_gbit_s,
                      reason_of(network, flow)),
          Fix{Fix::Where::advice,
              fmt::format("check the cable, the switch's port, the errors that 'ip -s link' counts on {} and "
                          "{}, and other traffic on the network",
                          network.servers[flow.from].server, network.servers[flow.to].server)}};
}

// Why this server has no measurements.
std::string why_left_out(const NetworkServer& server) {
  return server.skipped.empty() ? "it reaches no other server" : server.skipped;
}

std::vector<Finding> findings_of(const Network& network, std::size_t from,
                                 const std::vector<bool>& has_gpus) {
  std::vector<Finding> findings;
  std::vector<double> speeds;
  std::vector<double> times;
  const Flow* slowest_of_gpus = nullptr;
  for (const Flow& flow : network.bandwidth->flows) {
    if (flow.from != from) {
      continue;
    }
    if (!flow.error.empty()) {
      findings.push_back(
          {"bandwidth", CheckStatus::skip,
           fmt::format("could not be measured to {}: {}", network.servers[flow.to].server, flow.error)});
      continue;
    }
    speeds.push_back(flow.gbit_s);
    times.push_back(flow.latency.count());
    if (flow.outlier) {
      findings.push_back(slow_finding(network, flow));
    }
    if (has_gpus[from] && has_gpus[flow.to] && flow.gbit_s < gpu_gbit_s &&
        (slowest_of_gpus == nullptr || flow.gbit_s < slowest_of_gpus->gbit_s)) {
      slowest_of_gpus = &flow;
    }
  }
  if (slowest_of_gpus != nullptr) {
    findings.push_back(
        {"bandwidth-gpu", CheckStatus::warn,
         fmt::format(
             "only {:.3g} Gbit/s to {}, and both have GPUs: below 10 Gbit/s a run waits for the network{}",
             slowest_of_gpus->gbit_s, network.servers[slowest_of_gpus->to].server,
             reason_of(network, *slowest_of_gpus)),
         Fix{Fix::Where::advice,
             "if the servers have a faster network, set internal_address of each to its address there"}});
  }
  if (findings.empty() && speeds.empty()) {
    findings.push_back(
        {"bandwidth", CheckStatus::skip, "not measured: " + why_left_out(network.servers[from])});
  }
  if (findings.empty() && !speeds.empty()) {
    findings.push_back({"bandwidth", CheckStatus::ok,
                        fmt::format("sends {:.3g} to {:.3g} Gbit/s, round trips of {:.0f} µs",
                                    std::ranges::min(speeds), std::ranges::max(speeds), median_of(times))});
  }
  return findings;
}

}  // namespace

void judge_flows(Bandwidth& bandwidth) {
  std::vector<double> speeds;
  for (const Flow& flow : bandwidth.flows) {
    if (flow.error.empty()) {
      speeds.push_back(flow.gbit_s);
    }
  }
  bandwidth.median_gbit_s = median_of(speeds);
  for (Flow& flow : bandwidth.flows) {
    flow.outlier = flow.error.empty() && speeds.size() >= least_flows &&
                   flow.gbit_s < outlier_share * bandwidth.median_gbit_s;
  }
  bandwidth.total_gbit_s = 0;
  for (const Flow& flow : bandwidth.at_once) {
    bandwidth.total_gbit_s += flow.gbit_s;
  }
}

std::vector<std::vector<Finding>> bandwidth_findings(const Network& network,
                                                     const std::vector<bool>& has_gpus) {
  std::vector<std::vector<Finding>> all;
  for (std::size_t i = 0; i < network.servers.size(); ++i) {
    all.push_back(findings_of(network, i, has_gpus));
  }
  return all;
}

}  // namespace remote::project
