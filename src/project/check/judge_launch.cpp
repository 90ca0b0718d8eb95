// The checks before a launch, based on facts about its servers.

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/strings.hpp"
#include "project/check/judge.hpp"
#include "servers/facts.hpp"

namespace remote::project {
namespace {

constexpr std::uint64_t least_kib = 1024;
constexpr std::uint64_t least_mib = 1024 * least_kib;

// Less strict than `check`: a launch that might just work is not stopped.
void judge_room(const DiskFacts& room, const std::string& jobs, std::vector<Finding>& findings) {
  const Fix look{Fix::Where::server, list_large_folders(room.path)};
  if (room.free_bytes < 64 * least_kib) {
    findings.push_back(
        {"disk", CheckStatus::fail, fmt::format("{} cannot be written: its disk is full", jobs), look});
  } else if (room.free_bytes < 64 * least_mib) {
    findings.push_back({"disk", CheckStatus::warn,
                        fmt::format("{} are free where {} is", size_text(room.free_bytes), jobs), look});
  }
  if (room.inodes > 0 && room.free_inodes < 10) {
    findings.push_back(
        {"inodes", CheckStatus::fail,
         fmt::format("{} cannot be written: its disk is full ({} inodes are free)", jobs, room.free_inodes),
         Fix{Fix::Where::server, list_full_folders(room.path)}});
  }
}

// Processes outside of jobs that use more GPU memory than a desktop.
void judge_holders(const std::vector<Gpu>& all, const std::optional<std::vector<int>>& usable,
                   std::vector<Finding>& findings) {
  std::vector<std::string> holders;
  for (const Gpu& gpu : all) {
    if (usable && std::ranges::find(*usable, gpu.index) == usable->end()) {
      continue;  // a GPU that the launch does not use
    }
    for (const GpuProcess& process : gpu.processes) {
      if (process.job.empty() && process.memory.value_or(0) >= 64 * least_mib) {
        holders.push_back(fmt::format("pid {} of {} (GPU {})", process.pid,
                                      process.user.empty() ? "unknown" : process.user, gpu.index));
      }
    }
  }
  if (holders.empty()) {
    return;
  }
  findings.push_back(
      {"gpu-busy", CheckStatus::warn, "others hold memory of its GPUs: " + join_first(holders, 3), {}});
}

}  // namespace

std::optional<std::vector<int>> visible_gpus(const Env& env) {
  const auto found =
      std::ranges::find(env.rbegin(), env.rend(), "CUDA_VISIBLE_DEVICES", &Env::value_type::first);
  if (found == env.rend()) {
    return std::nullopt;
  }
  std::vector<int> gpus;
  if (trim(found->second).empty()) {
    return gpus;  // none visible
  }
  for (const std::string& part : split(found->second, ',')) {
    const auto index = parse_number<int>(trim(part));
    if (!index) {
      return std::nullopt;
    }
    gpus.push_back(*index);
  }
  return gpus;
}

std::vector<Finding> judge_launch(const ServerFacts& facts, const std::string& jobs, const std::string& user,
                                  const std::optional<std::vector<int>>& gpus) {
  std::vector<Finding> findings;
  if (const DiskFacts* room = facts.disk("project")) {
    judge_room(*room, jobs, findings);
  }
  if (servers::logout_ends_jobs(facts, user)) {
    findings.push_back(logout_finding(facts.kill_excluded, user));
  }
  if (Finding shm = shm_finding(facts); facts.disk("shm") != nullptr && shm.status != CheckStatus::ok) {
    shm.status = CheckStatus::warn;
    findings.push_back(std::move(shm));
  }
  judge_holders(facts.gpus.gpus, gpus, findings);
  if (Finding clock = clock_finding(facts.clock_ahead); clock.status != CheckStatus::ok) {
    findings.push_back(std::move(clock));
  }
  return findings;
}

}  // namespace remote::project
