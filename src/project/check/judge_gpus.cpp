// Findings about a server's GPUs: their number, health and users.

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "project/check/judge.hpp"
#include "rules/usable.hpp"

namespace remote::project {
namespace {

// NVIDIA Xid errors after which a GPU is unreliable until it is reset or serviced (NVIDIA's "XID Errors"):
// 48, 63, 64, 94, 95: memory; 61, 62, 74, 79, 92, 119, 120, 140, 154: the GPU, its links or its firmware.
// Other errors are mostly the fault of a program.
constexpr std::array<int, 14> grave_xids = {48, 61, 62, 63, 64, 74, 79, 92, 94, 95, 119, 120, 140, 154};

// An idle process of the driver or of a desktop uses several MiB.
constexpr std::uint64_t little_memory = std::uint64_t{64} << 20U;

bool is_meant(const config::Server& server, const Gpu& gpu) {
  return server.gpu_indices.empty() ||
         std::ranges::find(server.gpu_indices, gpu.index) != server.gpu_indices.end();
}

Finding judge_count(const config::Server& server, const GpuFacts& facts) {
  const std::vector<Gpu>& gpus = facts.gpus;
  std::vector<int> missing;
  for (const int index : server.gpu_indices) {
    if (std::ranges::find(gpus, index, &Gpu::index) == gpus.end()) {
      missing.push_back(index);
    }
  }
  const std::string& program = facts.tools.empty() ? "nvidia-smi" : facts.tools.front().program;
  const Fix look{Fix::Where::server, fmt::format("{}; lspci | grep -iE '3d|vga|display'",
                                                 program == "nvidia-smi" ? "nvidia-smi -L" : program)};
  if (!missing.empty()) {
    return {"gpus", CheckStatus::fail,
            fmt::format("configs.yaml lists GPU {}, but there {}", missing.front(),
                        gpus.empty()       ? "is none"
                        : gpus.size() == 1 ? "is 1"
                                           : "are " + std::to_string(gpus.size())),
            look};
  }
  const UsableGpus usable = rules::count_gpus(facts);
  const bool is_hidden = usable.hidden_by != HiddenBy::nobody;
  std::string there = gpu_words(gpus);
  if (is_hidden) {
    there += fmt::format("; ranks see {}: {} is set by the {}", usable.count(), usable.variable,
                         usable.hidden_by == HiddenBy::login ? "login" : "prologue");
  }
  const int count = is_hidden ? usable.count() : static_cast<int>(usable.there.size()) + usable.lost;
  if (server.gpus && count < *server.gpus) {
    return {"gpus", CheckStatus::fail,
            fmt::format("{} expected, {} there", *server.gpus, is_hidden ? there : std::to_string(count)),
            is_hidden ? Fix{Fix::Where::server, "env | grep " + usable.variable} : look};
  }
  if (server.gpus && count > *server.gpus) {
    return {"gpus", CheckStatus::warn, fmt::format("{} expected, {} there", *server.gpus, there),
            Fix{Fix::Where::advice,
                fmt::format("set gpus: {} for server {} in configs.yaml", count, server.name)}};
  }
  return {"gpus", count == 0 ? CheckStatus::skip : CheckStatus::ok, there, {}};
}

std::string processes_words(const Gpu& gpu, const GpuProcess& process) {
  std::string words =
      fmt::format("GPU {}: {} (pid {}", gpu.index,
                  process.name.empty() ? "a process" : visible_line(process.name, 64), process.pid);
  if (!process.user.empty()) {
    words += ", " + process.user;
  }
  if (process.memory) {
    words += ", " + size_text(*process.memory);
  }
  return words + ")";
}

// Jobs of remote are not reported.
Finding judge_processes(const config::Server& server, const std::vector<Gpu>& gpus) {
  std::vector<std::string> others;
  std::string users;
  std::string own;
  for (const Gpu& gpu : gpus) {
    for (const GpuProcess& process : gpu.processes) {
      if (!is_meant(server, gpu) || !process.job.empty() ||
          (process.memory && *process.memory < little_memory)) {
        continue;
      }
      others.push_back(processes_words(gpu, process));
      if (process.own) {
        own += " " + std::to_string(process.pid);
      } else if (users.empty()) {
        users = process.user.empty() ? "its owner" : process.user;
      }
    }
  }
  if (others.empty()) {
    return {"gpu-busy", CheckStatus::ok, "no processes hold memory except jobs of this project's user", {}};
  }
  Finding finding{"gpu-busy", CheckStatus::warn, "", {}};
  finding.detail = "held by others: " + join_first(others, 4, "; ");
  if (users.empty()) {
    finding.fix = Fix{Fix::Where::server, "kill" + own};
  } else {
    const auto free =
        std::ranges::find_if(gpus, [](const Gpu& gpu) { return !gpu.lost && gpu.processes.empty(); });
    finding.fix = Fix{Fix::Where::advice, "ask " + visible_line(users, 64)};
    if (free != gpus.end()) {
      finding.fix->text += fmt::format(
          ", or name other GPUs for server {} in configs.yaml, such as gpus: [{}]", server.name, free->index);
    }
  }
  return finding;
}

// The problems of one GPU, and whether it is still usable.
struct Illness {
  CheckStatus status = CheckStatus::ok;
  std::vector<std::string> words;
  void add(CheckStatus how, const std::string& what) {
    words.push_back(what);
    status = status == CheckStatus::fail ? status : how;
  }
};

Illness illness_of(const Gpu& gpu) {
  Illness found;
  if (gpu.lost) {
    found.add(CheckStatus::fail, "is lost: it answers nothing until the server is restarted");
  }
  if (gpu.remap_failed == true) {
    found.add(CheckStatus::fail, "has no spare rows of memory left");
  }
  if (gpu.remap_pending == true) {
    found.add(CheckStatus::warn, "has bad memory that a reset would take out of use");
  }
  if (gpu.ecc_uncorrected.value_or(0) > 0) {
    found.add(CheckStatus::warn, fmt::format("had {} uncorrectable memory errors", *gpu.ecc_uncorrected));
  }
  if (!gpu.lost && !gpu.unreadable.empty()) {
    found.add(CheckStatus::warn, "does not report its " + visible_line(join(gpu.unreadable, ", "), 100));
  }
  if (gpu.compute_mode == "Prohibited") {
    found.add(CheckStatus::fail, "accepts no work: its compute mode is Prohibited");
  }
  return found;
}

void judge_health(const config::Server& server, const GpuFacts& facts, std::vector<Finding>& findings) {
  Finding health{"gpu-health", CheckStatus::ok, "", {}};
  Finding clocks{"gpu-clocks", CheckStatus::ok, "none is slowed down", {}};
  std::string slow;
  for (const Gpu& gpu : facts.gpus) {
    if (!is_meant(server, gpu)) {
      continue;
    }
    if (const Illness illness = illness_of(gpu); !illness.words.empty()) {
      health.status = illness.status == CheckStatus::fail || health.status == CheckStatus::fail
                          ? CheckStatus::fail
                          : CheckStatus::warn;
      health.detail +=
          fmt::format("{}GPU {} {}", health.detail.empty() ? "" : "; ", gpu.index, join(illness.words, ", "));
      if (!health.fix || gpu.lost) {
        health.fix = Fix{Fix::Where::server_as_root,
                         gpu.lost ? "reboot"
                                  : (gpu.compute_mode == "Prohibited"
                                         ? fmt::format("nvidia-smi -i {} -c DEFAULT", gpu.index)
                                         : fmt::format("nvidia-smi --gpu-reset -i {}", gpu.index))};
      }
    }
    for (const ClockLimit limit : gpu.clock_limits) {
      if (is_fault(limit)) {
        slow += fmt::format("{}GPU {}: {}{}", slow.empty() ? "" : "; ", gpu.index, name_of(limit),
                            gpu.temperature ? fmt::format(" at {:.0f} °C", *gpu.temperature) : "");
      }
    }
  }
  std::map<int, std::size_t> xids;
  for (const XidError& error : facts.xids.value_or(std::vector<XidError>{})) {
    if (std::ranges::find(grave_xids, error.code) != grave_xids.end()) {
      ++xids[error.code];
    }
  }
  for (const auto& [code, count] : xids) {
    health.status = health.status == CheckStatus::fail ? health.status : CheckStatus::warn;
    health.detail += fmt::format("{}Xid {} in the kernel's log, {}", health.detail.empty() ? "" : "; ", code,
                                 counted(count, "time"));
    if (!health.fix) {
      health.fix = Fix{Fix::Where::server_as_root, "dmesg -T | grep 'NVRM: Xid'"};
    }
  }
  if (health.detail.empty()) {
    health.detail = "no errors";
  }
  if (!slow.empty()) {
    clocks = {"gpu-clocks", CheckStatus::warn, slow,
              Fix{Fix::Where::server, "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER"}};
  }
  findings.push_back(std::move(health));
  findings.push_back(std::move(clocks));
}

void judge_topology(const GpuFacts& facts, std::vector<Finding>& findings) {
  if (!facts.topology || facts.gpus.size() < 2) {
    return;
  }
  std::map<std::string, std::size_t> pairs;
  const GpuTopology& topology = *facts.topology;
  for (std::size_t row = 0; row < topology.links.size() && row < topology.devices.size(); ++row) {
    for (std::size_t column = row + 1;
         column < topology.links[row].size() && column < topology.devices.size(); ++column) {
      if (topology.devices[row].starts_with("GPU") && topology.devices[column].starts_with("GPU")) {
        ++pairs[visible_line(topology.links[row][column], 16)];
      }
    }
  }
  std::vector<std::string> words;
  for (const auto& [link, count] : pairs) {
    words.push_back(fmt::format("{} of {}", link, counted(count, "pair")));
  }
  findings.push_back({"gpu-topology", CheckStatus::ok, join(words, ", "), {}});
}

}  // namespace

std::string gpu_words(const std::vector<Gpu>& gpus) {
  std::vector<std::pair<std::string, std::size_t>> kinds;
  for (const Gpu& gpu : gpus) {
    std::string name = gpu.name.empty() ? "GPU" : visible_line(gpu.name, 64);
    if (gpu.memory_total) {
      name += ", " + size_text(*gpu.memory_total);
    }
    const auto found = std::ranges::find(kinds, name, &std::pair<std::string, std::size_t>::first);
    if (found == kinds.end()) {
      kinds.emplace_back(name, 1);
    } else {
      ++found->second;
    }
  }
  std::vector<std::string> words;
  for (const auto& [name, count] : kinds) {
    words.push_back(fmt::format("{} × {}", count, name));
  }
  return words.empty() ? "none" : join(words, "; ");
}

Finding driver_finding(const GpuTool& tool, const std::string& user) {
  Finding finding{"gpu-driver", CheckStatus::fail, "", {}};
  const std::string said =
      tool.text.empty() ? "" : fmt::format(" ({} says: {})", tool.program, visible_line(tool.text, 200));
  switch (tool.state) {
    case GpuToolState::answered:
      finding.status = CheckStatus::ok;
      finding.detail = fmt::format(
          "{} {}{}", tool.program, visible_line(tool.driver_version),
          tool.library_version.empty() ? "" : ", up to CUDA or ROCm " + visible_line(tool.library_version));
      break;
    case GpuToolState::no_devices:
      // A message means that the driver answers but has no device, which may be caused by a failed GPU.
      finding.status = said.empty() ? CheckStatus::skip : CheckStatus::warn;
      finding.detail = tool.program + " finds no GPU" + said;
      if (!said.empty()) {
        finding.fix = Fix{Fix::Where::server_as_root, "dmesg | grep -iE 'nvrm|xid' | tail -20"};
      }
      break;
    case GpuToolState::no_driver:
      finding.detail = tool.program + " does not reach its driver" + said;
      finding.fix = Fix{Fix::Where::server_as_root, "modprobe nvidia || dmesg | grep -i nvrm | tail -20"};
      break;
    case GpuToolState::version_mismatch:
      finding.detail = "the driver was updated but not reloaded, so CUDA does not start" + said;
      finding.fix = Fix{Fix::Where::server_as_root, "reboot"};
      break;
    case GpuToolState::lost_device:
      finding.detail = "a GPU has fallen off the bus" + said;
      finding.fix = Fix{Fix::Where::server_as_root, "reboot"};
      break;
    case GpuToolState::no_permission:
      finding.detail = "this login may not use the GPUs" + said;
      finding.fix =
          Fix{Fix::Where::server_as_root, fmt::format("usermod -aG video,render {}", shell_quote(user))};
      break;
    case GpuToolState::no_access:
      finding.detail = "the container has lost its access to the GPUs" + said;
      finding.fix = Fix{Fix::Where::advice, "restart the container"};
      break;
    case GpuToolState::hangs:
      finding.detail = tool.program + " does not answer within 7 seconds: the driver hangs";
      finding.fix = Fix{Fix::Where::server_as_root, "reboot"};
      if (tool.program == "nvidia-smi") {
        // The first call after a pause loads the driver, which takes up to 10 s on a server with many GPUs.
        finding.detail += ", or is loaded for each call, which persistence mode avoids";
        finding.fix->text = "timeout 60 nvidia-smi -pm 1 || reboot";
      }
      break;
    case GpuToolState::failed:
      finding.status = CheckStatus::warn;
      finding.detail = tool.program + " gives an answer that is not documented" + said;
      finding.fix = Fix{Fix::Where::server, tool.program};
      break;
  }
  return finding;
}

void judge_gpus(const config::Server& server, const ServerFacts& all, std::vector<Finding>& findings) {
  const GpuFacts& facts = all.gpus;
  const std::string& user = all.user;
  // With several programs, report one that failed, or else one that found GPUs.
  const GpuTool* told = nullptr;
  for (const GpuTool& tool : facts.tools) {
    const bool bad = tool.state != GpuToolState::answered && tool.state != GpuToolState::no_devices;
    const bool has_found = tool.state == GpuToolState::answered;
    if (told == nullptr || bad || (told->state == GpuToolState::no_devices && has_found)) {
      told = &tool;
    }
  }
  if (told != nullptr) {
    findings.push_back(driver_finding(*told, user));
  }
  findings.push_back(judge_count(server, facts));
  if (facts.gpus.empty()) {
    return;
  }
  findings.push_back(judge_processes(server, facts.gpus));
  judge_health(server, facts, findings);
  judge_topology(facts, findings);
}

}  // namespace remote::project
