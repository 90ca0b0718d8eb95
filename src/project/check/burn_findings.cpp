// Findings about the compute speed of devices and the bandwidth between ranks.

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include "base/strings.hpp"
#include "project/check/burn.hpp"

namespace remote {

std::string backend_words(const Burn& burn) {
  return burn.backend + (burn.backend_reason.empty() ? "" : ", as " + burn.backend_reason);
}

}  // namespace remote

namespace remote::project {
namespace {

constexpr double slow_device = 0.8;  // of the median of devices of the same kind
constexpr double slow_link = 0.7;

struct Promise {
  const char* part;  // part of the device's name as reported by the driver, lowercase
  double half;       // float16 and bfloat16 with the tensor or matrix units, dense
  double single;     // float32 without the tensor or matrix units
};

// 10^12 operations per second, for dense matrices at boost clocks. Sources: NVIDIA's data sheets "A100 Tensor
// Core GPU", "H100 Tensor Core GPU", "H200 Tensor Core GPU", "L4 Tensor Core GPU", "L40S GPU", "T4 Tensor
// Core GPU", "V100 Tensor Core GPU", "A10 Tensor Core GPU", the whitepapers "GA102 GPU Architecture" and "Ada
// GPU Architecture" (with float32 accumulation); AMD's data sheets "Instinct MI250", "MI250X", "MI300X",
// "MI210", "MI100". Figures with sparsity are halved here. The first match counts.
constexpr std::array<Promise, 22> promises{
    {{"h100 pcie", 756, 51}, {"h100 nvl", 835, 60},     {"h100", 989, 67},         {"h200", 989, 67},
     {"gh200", 989, 67},     {"a100", 312, 19.5},       {"a40", 149.7, 37.4},      {"a10", 125, 31.2},
     {"l40s", 362, 91.6},    {"l40", 181, 90.5},        {"l4", 121, 30.3},         {"t4", 65, 8.1},
     {"v100-pcie", 112, 14}, {"v100", 125, 15.7},       {"rtx 4090", 165.2, 82.6}, {"rtx 3090", 71, 35.6},
     {"a6000", 154.8, 38.7}, {"mi300x", 1307.4, 163.4}, {"mi250x", 383, 47.9},     {"mi250", 362.1, 45.3},
     {"mi210", 181, 22.6},   {"mi100", 184.6, 23.1}}};

double upper_median_of(std::vector<double> values) {
  if (values.empty()) {
    return 0;
  }
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

std::string speed_of(const BurnDevice& device) {
  std::string text = fmt::format("{:.3g} TFLOP/s in {}", device.tflops, device.type);
  if (device.promised > 0) {
    text += fmt::format(", {:.0f} % of the {:g} that the manufacturer specifies",
                        100 * device.tflops / device.promised, device.promised);
  }
  return text;
}

const BurnDevice* device_of(const Burn& burn, int rank) {
  const auto found = std::ranges::find(burn.devices, rank, &BurnDevice::rank);
  return found == burn.devices.end() ? nullptr : &*found;
}

bool is_within_server(const Burn& burn, const BurnLink& link) {
  const BurnDevice* from = device_of(burn, link.from);
  const BurnDevice* to = device_of(burn, link.to);
  return from != nullptr && to != nullptr && from->server == to->server;
}

// The servers with a rank that lacks it.
std::vector<std::string> servers_without(const Burn& burn, std::string_view what) {
  std::vector<std::string> servers;
  for (const BurnDevice& device : burn.devices) {
    if (device.lacks == what && std::ranges::find(servers, device.server) == servers.end()) {
      servers.push_back(device.server);
    }
  }
  return servers;
}

std::string reason_for_gloo(const Burn& burn) {
  if (std::ranges::all_of(burn.devices, [](const BurnDevice& device) { return !device.lacks.empty(); })) {
    return "";  // no rank could use NCCL
  }
  std::vector<std::string> reasons;
  if (const auto servers = servers_without(burn, "cuda"); !servers.empty()) {
    reasons.push_back("there is no CUDA on " + join(servers, ", "));
  }
  if (const auto servers = servers_without(burn, "nccl"); !servers.empty()) {
    reasons.push_back("torch has no NCCL on " + join(servers, ", "));
  }
  return join(reasons, ", and ");
}

void add_backend_finding(const Burn& burn, const std::string& server, std::vector<Finding>& findings) {
  const auto found = std::ranges::find_if(burn.devices, [&](const BurnDevice& device) {
    return device.server == server && !device.lacks.empty();
  });
  if (burn.backend_reason.empty() || found == burn.devices.end()) {
    return;
  }
  findings.push_back(
      {"burn-backend", CheckStatus::warn,
       fmt::format("{}, so all ranks exchanged data with gloo, although other servers could use NCCL",
                   found->lacks == "cuda" ? "torch sees no CUDA here" : "torch has no NCCL here"),
       Fix{Fix::Where::advice, "check torch and the driver here, or measure only the others (--server)"}});
}

void add_left_findings(const Burn& burn, const std::string& server, std::vector<Finding>& findings) {
  for (const BurnLeft& left : burn.left) {
    if (left.server == server) {
      const std::string clean = fmt::format("remote job-clean {}", left.job);
      const std::string all = left.runs ? fmt::format("remote job-kill {} && {}", left.job, clean) : clean;
      findings.push_back({"burn-left", left.runs ? CheckStatus::fail : CheckStatus::warn, left.detail,
                          Fix{Fix::Where::here, all}});
    }
  }
}

void add_device_findings(const Burn& burn, const std::string& server, std::vector<Finding>& findings) {
  std::vector<std::string> kinds;
  for (const BurnDevice& device : burn.devices) {
    if (device.server != server) {
      continue;
    }
    if (device.slow) {
      std::vector<double> others;
      for (const BurnDevice& other : burn.devices) {
        if (other.device == device.device && other.type == device.type) {
          others.push_back(other.tflops);
        }
      }
      findings.push_back(
          {"burn-device", CheckStatus::warn,
           fmt::format(
               "rank {} ({}): {}; the median of its kind is {:.3g}, and all others wait for the slowest",
               device.rank, device.device, speed_of(device), upper_median_of(others)),
           Fix{Fix::Where::advice, "check for heat, a power limit, throttled clocks, and other processes"}});
    } else {
      kinds.push_back(device.device + ": " + speed_of(device));
    }
  }
  if (kinds.empty()) {
    return;
  }
  const std::string bus = burn.bus_gbit_s > 0
                              ? fmt::format("; all-reduce over {} ranks ({}): {:.3g} Gbit/s bus bandwidth",
                                            burn.devices.size(), backend_words(burn), burn.bus_gbit_s)
                              : "";
  findings.push_back(
      {"burn", CheckStatus::ok,
       (kinds.size() > 1 ? counted(kinds.size(), "device") + ", the first " : "") + kinds.front() + bus,
       std::nullopt});
}

}  // namespace

double promised_tflops(const std::string& device, const std::string& type) {
  const std::string name = lower_case(device);
  for (const Promise& promise : promises) {
    const std::size_t at = name.find(promise.part);
    // Must not match "l4" in "l40", or "a10" in "a100".
    if (at == std::string::npos) {
      continue;
    }
    const std::size_t end = at + std::string_view(promise.part).size();
    if (end < name.size() && std::string_view("0123456789").find(name[end]) != std::string_view::npos) {
      continue;
    }
    return type == "float32" ? promise.single : promise.half;
  }
  return 0;
}

void judge_burn(Burn& burn) {
  std::ranges::sort(burn.devices, {}, &BurnDevice::rank);
  std::map<std::pair<std::string, std::string>, std::vector<double>> kinds;
  std::vector<double> bus;
  for (BurnDevice& device : burn.devices) {
    device.promised = promised_tflops(device.device, device.type);
    kinds[{device.device, device.type}].push_back(device.tflops);
    bus.push_back(device.bus_gbit_s);
  }
  for (BurnDevice& device : burn.devices) {
    device.slow = device.tflops < slow_device * upper_median_of(kinds[{device.device, device.type}]);
  }
  burn.bus_gbit_s = upper_median_of(bus);
  burn.backend_reason = burn.backend == "gloo" ? reason_for_gloo(burn) : "";
  for (const bool within : {false, true}) {
    std::vector<double> speeds;
    for (const BurnLink& link : burn.links) {
      if (is_within_server(burn, link) == within) {
        speeds.push_back(link.gbit_s);
      }
    }
    const double median = upper_median_of(speeds);
    for (BurnLink& link : burn.links) {
      link.slow = link.slow || (is_within_server(burn, link) == within && link.gbit_s < slow_link * median);
    }
  }
}

std::vector<std::vector<Finding>> burn_findings(const Burn& burn, const std::vector<std::string>& servers) {
  std::vector<std::vector<Finding>> all(servers.size());
  for (std::size_t i = 0; i < servers.size(); ++i) {
    add_left_findings(burn, servers[i], all[i]);
    if (!burn.error.empty()) {
      all[i].push_back({"burn", CheckStatus::fail, burn.error, std::nullopt});
      continue;
    }
    add_device_findings(burn, servers[i], all[i]);
    add_backend_finding(burn, servers[i], all[i]);
    for (const BurnLink& link : burn.links) {
      const BurnDevice* from = device_of(burn, link.from);
      const BurnDevice* to = device_of(burn, link.to);
      if (link.slow && from != nullptr && to != nullptr && from->server == servers[i]) {
        all[i].push_back(
            {"burn-link", CheckStatus::warn,
             fmt::format("ranks {} and {} (on {}) exchange only {:.3g} Gbit/s, far less than others",
                         link.from, link.to, to->server, link.gbit_s),
             Fix{Fix::Where::advice, "measure the network alone with 'remote check --bandwidth'"}});
      }
    }
  }
  return all;
}

}  // namespace remote::project
