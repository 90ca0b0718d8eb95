#include "cli/show/gpus.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace remote::cli {
namespace {

using Json = nlohmann::json;

template <typename Value>
Json or_nothing(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

Json to_json(const GpuProcess& process) {
  return {{"pid", process.pid},
          {"name", text_or_null(process.name)},
          {"memory", or_nothing(process.memory)},
          {"user", text_or_null(process.user)},
          {"own", process.own},
          {"job", text_or_null(process.job)},
          {"age", or_nothing(process.age_s)}};
}

Json to_json(const GpuTool& tool) {
  return {{"vendor", name_of(tool.vendor)},
          {"program", tool.program},
          {"state", name_of(tool.state)},
          {"text", text_or_null(tool.text)},
          {"driver", text_or_null(tool.driver_version)},
          {"library", text_or_null(tool.library_version)}};
}

}  // namespace

std::string name_of(GpuVendor vendor) {
  switch (vendor) {
    case GpuVendor::nvidia:
      return "nvidia";
    case GpuVendor::amd:
      return "amd";
    case GpuVendor::intel:
      break;
  }
  return "intel";
}

Json to_json(const Gpu& gpu) {
  Json limits = Json::array();
  for (const ClockLimit limit : gpu.clock_limits) {
    limits.push_back(name_of(limit));
  }
  Json processes = Json::array();
  for (const GpuProcess& process : gpu.processes) {
    processes.push_back(to_json(process));
  }
  return {{"vendor", name_of(gpu.vendor)},
          {"index", gpu.index},
          {"uuid", text_or_null(gpu.uuid)},
          {"pci", text_or_null(gpu.pci_address)},
          {"name", text_or_null(gpu.name)},
          {"memory_total", or_nothing(gpu.memory_total)},
          {"memory_used", or_nothing(gpu.memory_used)},
          {"utilisation", or_nothing(gpu.utilisation)},
          {"temperature", or_nothing(gpu.temperature)},
          {"power", or_nothing(gpu.power)},
          {"power_limit", or_nothing(gpu.power_limit)},
          {"clock", or_nothing(gpu.clock)},
          {"clock_max", or_nothing(gpu.clock_max)},
          {"memory_clock", or_nothing(gpu.memory_clock)},
          {"clock_limits", limits},
          {"ecc", or_nothing(gpu.ecc)},
          {"ecc_uncorrected", or_nothing(gpu.ecc_uncorrected)},
          {"ecc_uncorrected_lifetime", or_nothing(gpu.ecc_uncorrected_lifetime)},
          {"remap_pending", or_nothing(gpu.remap_pending)},
          {"remap_failed", or_nothing(gpu.remap_failed)},
          {"persistence", or_nothing(gpu.persistence)},
          {"compute_mode", or_nothing(gpu.compute_mode)},
          {"mig", or_nothing(gpu.mig)},
          {"lost", gpu.lost},
          {"unreadable", gpu.unreadable},
          {"processes", processes}};
}

Json to_json(const GpuFacts& facts) {
  Json json = {{"gpus", Json::array()}, {"tools", Json::array()}, {"topology", nullptr}, {"xids", nullptr}};
  for (const Gpu& gpu : facts.gpus) {
    json["gpus"].push_back(to_json(gpu));
  }
  for (const GpuTool& tool : facts.tools) {
    json["tools"].push_back(to_json(tool));
  }
  if (facts.topology) {
    json["topology"] = {{"devices", facts.topology->devices}, {"links", facts.topology->links}};
  }
  if (facts.xids) {
    json["xids"] = Json::array();
    for (const XidError& error : *facts.xids) {
      json["xids"].push_back({{"pci", error.pci_address}, {"code", error.code}, {"text", error.text}});
    }
  }
  return json;
}

std::string mebi_or_gibi(double bytes) {
  constexpr double mebi = 1024.0 * 1024.0;
  if (bytes < 1024 * mebi) {
    return fmt::format("{:.0f} MiB", bytes / mebi);
  }
  const double gibi = bytes / mebi / 1024;
  return gibi < 99.95 ? fmt::format("{:.1f} GiB", gibi) : fmt::format("{:.0f} GiB", gibi);
}

std::string in_short(const GpuFacts& facts) {
  if (facts.gpus.empty()) {
    return "-";
  }
  double used = 0;
  double total = 0;
  for (const Gpu& gpu : facts.gpus) {
    used += static_cast<double>(gpu.memory_used.value_or(0));
    total += static_cast<double>(gpu.memory_total.value_or(0));
  }
  const auto busy = std::ranges::count_if(facts.gpus, [](const Gpu& gpu) { return !gpu.processes.empty(); });
  return fmt::format("{} of {}, {} of {}", busy, facts.gpus.size(), mebi_or_gibi(used), mebi_or_gibi(total));
}

}  // namespace remote::cli
