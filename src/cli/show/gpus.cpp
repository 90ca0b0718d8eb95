#include "cli/show/gpus.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/strings.hpp"
#include "cli/context.hpp"

namespace remote::cli {
namespace {

nlohmann::json process_json(const GpuProcess& process) {
  return {{"pid", process.pid},
          {"name", or_null(process.name)},
          {"memory", or_null(process.memory)},
          {"user", or_null(process.user)},
          {"own", process.own},
          {"job", or_null(process.job)},
          {"age", count_or_null(process.age)}};
}

nlohmann::json tool_json(const GpuTool& tool) {
  return {{"vendor", name_of(tool.vendor)},         {"program", tool.program},
          {"state", name_of(tool.state)},           {"text", or_null(tool.text)},
          {"driver", or_null(tool.driver_version)}, {"library", or_null(tool.library_version)}};
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

nlohmann::json to_json(const Gpu& gpu) {
  nlohmann::json limits = nlohmann::json::array();
  for (const ClockLimit limit : gpu.clock_limits) {
    limits.push_back(name_of(limit));
  }
  nlohmann::json processes = nlohmann::json::array();
  for (const GpuProcess& process : gpu.processes) {
    processes.push_back(process_json(process));
  }
  return {{"vendor", name_of(gpu.vendor)},
          {"index", gpu.index},
          {"uuid", or_null(gpu.uuid)},
          {"pci", or_null(gpu.pci_address)},
          {"name", or_null(gpu.name)},
          {"memory_total", or_null(gpu.memory_total)},
          {"memory_used", or_null(gpu.memory_used)},
          {"utilisation", or_null(gpu.utilisation)},
          {"temperature", or_null(gpu.temperature)},
          {"power", or_null(gpu.power)},
          {"power_limit", or_null(gpu.power_limit)},
          {"clock", or_null(gpu.clock)},
          {"clock_max", or_null(gpu.clock_max)},
          {"memory_clock", or_null(gpu.memory_clock)},
          {"clock_limits", limits},
          {"ecc", or_null(gpu.ecc)},
          {"ecc_uncorrected", or_null(gpu.ecc_uncorrected)},
          {"ecc_uncorrected_lifetime", or_null(gpu.ecc_uncorrected_lifetime)},
          {"remap_pending", or_null(gpu.remap_pending)},
          {"remap_failed", or_null(gpu.remap_failed)},
          {"persistence", or_null(gpu.persistence)},
          {"compute_mode", or_null(gpu.compute_mode)},
          {"mig", or_null(gpu.mig)},
          {"lost", gpu.lost},
          {"unreadable", gpu.unreadable},
          {"processes", processes}};
}

nlohmann::json to_json(const GpuFacts& facts) {
  nlohmann::json json = {{"gpus", nlohmann::json::array()},
                         {"tools", nlohmann::json::array()},
                         {"topology", nullptr},
                         {"xids", nullptr}};
  for (const Gpu& gpu : facts.gpus) {
    json["gpus"].push_back(to_json(gpu));
  }
  for (const GpuTool& tool : facts.tools) {
    json["tools"].push_back(tool_json(tool));
  }
  if (facts.topology) {
    json["topology"] = {{"devices", facts.topology->devices}, {"links", facts.topology->links}};
  }
  if (facts.xids) {
    json["xids"] = nlohmann::json::array();
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

std::optional<bool> in_use(const Gpu& gpu) {
  // A driver uses a few hundred MiB itself.
  constexpr std::uint64_t most_of_driver = std::uint64_t{1} << 30U;
  const std::uint64_t used = gpu.memory_used.value_or(0);
  if (gpu.processes.empty() && !gpu.memory_used && !gpu.utilisation) {
    return std::nullopt;
  }
  return !gpu.processes.empty() || gpu.utilisation.value_or(0) >= 5 || used > most_of_driver ||
         (gpu.memory_total && used > *gpu.memory_total / 10);
}

std::string in_short(const GpuFacts& facts) {
  if (facts.gpus.empty()) {
    const auto fails = std::ranges::find_if(facts.tools, [](const GpuTool& tool) {
      return tool.state != GpuToolState::answered && tool.state != GpuToolState::no_devices;
    });
    return fails == facts.tools.end()
               ? "-"
               : fmt::format("{}: {}", visible_line(fails->program), name_of(fails->state));
  }
  double used = 0;
  double total = 0;
  for (const Gpu& gpu : facts.gpus) {
    used += static_cast<double>(gpu.memory_used.value_or(0));
    total += static_cast<double>(gpu.memory_total.value_or(0));
  }
  const auto busy =
      std::ranges::count(facts.gpus, true, [](const Gpu& gpu) { return in_use(gpu).value_or(false); });
  const std::string memory =
      total > 0 ? fmt::format(", {} of {}", mebi_or_gibi(used), mebi_or_gibi(total)) : "";
  return fmt::format("{} of {}{}", busy, facts.gpus.size(), memory);
}

}  // namespace remote::cli
