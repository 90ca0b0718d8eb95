// What a launch looks for beforehand, in its probe.

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/strings.hpp"
#include "project/check/judge.hpp"

namespace remote::project {
namespace {

constexpr std::uint64_t least_kib = 1024;
constexpr std::uint64_t least_mib = 1024 * least_kib;

// Less than check asks for: what could just work is not stopped.
void judge_room(const servers::ProbeAnswer::Room& room, const std::string& jobs,
                std::vector<Finding>& findings) {
  const Fix look{Fix::Where::server, "du -xhd 2 ~ 2>/dev/null | sort -h | tail -20"};
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
         look});
  }
}

void judge_holders(const std::vector<servers::GpuHolder>& all, const std::optional<std::vector<int>>& gpus,
                   std::vector<Finding>& findings) {
  constexpr std::size_t most = 3;
  std::vector<std::string> holders;
  for (const servers::GpuHolder& holder : all) {
    if (gpus && holder.gpu && std::ranges::find(*gpus, *holder.gpu) == gpus->end()) {
      continue;  // of a GPU that the launch leaves alone
    }
    holders.push_back(fmt::format("pid {} of {}{}", holder.pid, holder.user,
                                  holder.gpu ? fmt::format(" (GPU {})", *holder.gpu) : ""));
  }
  if (holders.empty()) {
    return;
  }
  const std::size_t more = holders.size() - std::min(holders.size(), most);
  holders.resize(holders.size() - more);
  findings.push_back({"gpu-busy",
                      CheckStatus::warn,
                      "others hold memory of its GPUs: " + join(holders, ", ") +
                          (more > 0 ? fmt::format(" and {} more", more) : ""),
                      {}});
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
    return gpus;  // none at all
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

std::vector<Finding> judge_launch(const servers::ProbeAnswer& answer, double clock_ahead,
                                  const std::string& jobs, const std::string& user,
                                  const std::optional<std::vector<int>>& gpus) {
  std::vector<Finding> findings;
  if (answer.room) {
    judge_room(*answer.room, jobs, findings);
  }
  if (answer.logout.ends_jobs_of(user)) {
    findings.push_back(logout_finding(answer.logout.excluded, user));
  }
  if (answer.shm_free && *answer.shm_free < 16 * least_mib) {
    findings.push_back({"shm", CheckStatus::warn,
                        fmt::format("{} are free in /dev/shm; NCCL and the workers of a DataLoader need more",
                                    size_text(*answer.shm_free)),
                        Fix{Fix::Where::server_as_root, "mount -o remount,size=50% /dev/shm"}});
  }
  judge_holders(answer.gpu_holders, gpus, findings);
  if (Finding clock = clock_finding(clock_ahead); clock.status != CheckStatus::ok) {
    findings.push_back(std::move(clock));
  }
  return findings;
}

}  // namespace remote::project
