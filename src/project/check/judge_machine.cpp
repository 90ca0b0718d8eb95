// What a server's hardware, limits and disks mean for a run.

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "project/check/judge.hpp"
#include "rules/usable.hpp"

namespace remote::project {
namespace {

constexpr std::uint64_t kib = 1024;
constexpr std::uint64_t mib = 1024 * kib;
constexpr std::uint64_t gib = 1024 * mib;

// ---- disks

struct Threshold {
  std::uint64_t fail = 0;  // with less than this
  std::uint64_t warn = 0;
};

// A job's folder needs some hundred KiB and a log that grows; checkpoints need much more than anybody can
// know here. pip and torch unpack and compile in /tmp. The environment is only read.
Threshold bytes_needed(const std::string& what) {
  if (what == "project") {
    return {64 * mib, gib};
  }
  return what == "tmp" ? Threshold{16 * mib, 256 * mib} : Threshold{0, 64 * mib};
}

// A job's folder has some twenty files.
Threshold inodes_needed(const std::string& what) {
  return what == "environment" ? Threshold{0, 100} : Threshold{100, 1000};
}

CheckStatus status_of(std::uint64_t left, const Threshold& needed) {
  if (left < needed.fail) {
    return CheckStatus::fail;
  }
  return left < needed.warn ? CheckStatus::warn : CheckStatus::ok;
}

// The worst of what is on a file system, for each file system once.
struct FileSystem {
  const DiskFacts* disk;
  std::vector<std::string> holds;
  CheckStatus status = CheckStatus::ok;
};

int badness(CheckStatus status) {
  return status == CheckStatus::fail ? 2 : (status == CheckStatus::warn ? 1 : 0);
}

template <typename Judge>
std::vector<FileSystem> file_systems(const ServerFacts& facts, const Judge& judge) {
  std::vector<FileSystem> all;
  for (const DiskFacts& disk : facts.disks) {
    if (disk.what == "shm" || disk.total_bytes == 0) {
      continue;  // a pretended file system of size 0 has no limit
    }
    auto found =
        std::ranges::find_if(all, [&](const FileSystem& one) { return one.disk->device == disk.device; });
    if (found == all.end()) {
      all.push_back({&disk, {}, CheckStatus::ok});
      found = std::prev(all.end());
    }
    found->holds.push_back(disk.what == "tmp" ? disk.path : "the " + disk.what);
    if (const CheckStatus status = judge(disk); badness(status) > badness(found->status)) {
      found->status = status;
    }
  }
  return all;
}

// One finding about all file systems: of those that are not well where there are such, else of all.
template <typename Judge, typename Words>
Finding judge_file_systems(const ServerFacts& facts, const std::string& name, const Judge& judge,
                           const Words& words) {
  Finding finding{name, CheckStatus::ok, "", {}};
  const std::vector<FileSystem> all = file_systems(facts, judge);
  if (all.empty()) {
    return {name, CheckStatus::skip, "the disks could not be looked at", {}};
  }
  for (const FileSystem& one : all) {
    finding.status = badness(one.status) > badness(finding.status) ? one.status : finding.status;
  }
  for (const FileSystem& one : all) {
    if (finding.status != CheckStatus::ok && one.status == CheckStatus::ok) {
      continue;
    }
    finding.detail += (finding.detail.empty() ? "" : "; ") + words(*one.disk) + " where " +
                      join(one.holds, " and ") + (one.holds.size() > 1 ? " are" : " is");
    if (!finding.fix && one.status != CheckStatus::ok) {
      const std::string path = shell_quote(one.disk->path);
      if (name == "disk" && one.disk->what == "tmp" && one.holds.size() == 1) {  // it may be small, and empty
        finding.fix = Fix{
            Fix::Where::advice,
            "set TMPDIR in `env` of the server to a folder with more space, or free some space in " + path};
        continue;
      }
      finding.fix =
          Fix{Fix::Where::server,
              name == "inodes" ? fmt::format("du --inodes -xd 2 {} 2>/dev/null | sort -n | tail -20", path)
                               : fmt::format("du -xhd 2 {} 2>/dev/null | sort -h | tail -20", path)};
    }
  }
  return finding;
}

const char* medium(const DiskFacts& disk) {
  if (!disk.rotational) {
    return "";
  }
  return *disk.rotational ? " (hard disk)" : " (SSD)";
}

// NCCL takes some MiB for each pair of ranks, and the workers of a DataLoader pass their batches through it.
// Containers get 64 MiB unless somebody says otherwise.
Finding judge_shm(const ServerFacts& facts) {
  const DiskFacts* shm = facts.disk("shm");
  const Fix mend{Fix::Where::server_as_root,
                 "mount -o remount,size=50% /dev/shm || mount -t tmpfs -o size=50% tmpfs /dev/shm"};
  if (shm == nullptr) {
    return {"shm", CheckStatus::fail, "there is no /dev/shm, which NCCL and the workers of a DataLoader need",
            mend};
  }
  const CheckStatus status = status_of(shm->free_bytes, {16 * mib, 512 * mib});
  std::string detail =
      fmt::format("{} of {} are free in /dev/shm", size_text(shm->free_bytes), size_text(shm->total_bytes));
  if (status == CheckStatus::ok) {
    return {"shm", status, detail, {}};
  }
  detail += "; NCCL and the workers of a DataLoader need more";
  if (shm->total_bytes >= gib) {
    return {"shm", status, detail, Fix{Fix::Where::server, "ls -lS /dev/shm | head -20"}};
  }
  return {"shm", status, detail, mend};
}

// ---- the machine

std::string cpu_words(const ServerFacts& facts) {
  std::string words = facts.cpu.empty() ? "" : facts.cpu + ", ";
  if (facts.sockets > 0) {
    words += counted(static_cast<std::size_t>(facts.sockets), "socket") + ", ";
  }
  if (facts.cores > 0) {
    words += counted(static_cast<std::size_t>(facts.cores), "core") + ", ";
  }
  words += counted(static_cast<std::size_t>(facts.threads), "thread");
  if (facts.usable_threads > 0 && facts.usable_threads < facts.threads) {
    words += fmt::format(", of which the login may use {}", facts.usable_threads);
  }
  if (facts.cpu_limit && *facts.cpu_limit < facts.threads) {
    words += fmt::format(", limited to {:g} by its control group", *facts.cpu_limit);
  }
  if (facts.numa_nodes > 1) {
    words += fmt::format(", {} NUMA nodes", facts.numa_nodes);
  }
  return words;
}

Finding judge_memory(const ServerFacts& facts) {
  if (facts.memory == 0) {
    return {"memory", CheckStatus::skip, "could not be looked at", {}};
  }
  const UsableMemory usable = rules::count_memory(facts);
  std::string detail =
      fmt::format("{} of {} are available", size_text(facts.memory_available), size_text(facts.memory));
  if (usable.is_limited) {
    detail += fmt::format("; its control group limits it to {}", size_text(usable.total));
  }
  // torch alone takes some hundred MiB for each process.
  if (usable.available < gib / 2 && usable.available < usable.total / 10) {
    return {"memory", CheckStatus::warn, detail,
            Fix{Fix::Where::server, "ps -eo user,pid,rss,args --sort=-rss | head -20"}};
  }
  return {"memory", CheckStatus::ok, detail, {}};
}

Finding judge_load(const ServerFacts& facts) {
  if (facts.load.size() != 3) {
    return {"load", CheckStatus::skip, "could not be looked at", {}};
  }
  const int cpus = std::max(1, facts.usable_threads > 0 ? facts.usable_threads : facts.threads);
  const std::string detail = fmt::format("{:.1f} over five minutes, with {}", facts.load[1],
                                         counted(static_cast<std::size_t>(cpus), "thread"));
  // Somebody computes on all of them already. Short peaks are nothing.
  if (facts.load[1] > 2.0 * cpus + 4) {
    return {"load", CheckStatus::warn, detail + ": others compute there",
            Fix{Fix::Where::server, "ps -eo user,pid,pcpu,args --sort=-pcpu | head -20"}};
  }
  return {"load", CheckStatus::ok, detail, {}};
}

// Memory of a process that a network card may write to must be locked.
constexpr std::uint64_t memlock_of_rdma = gib;

Finding judge_limits(const ServerFacts& facts) {
  const auto limit = [&](const char* name) -> std::optional<std::uint64_t> {
    const auto found = facts.limits.find(name);
    return found == facts.limits.end() ? std::nullopt : found->second;
  };
  std::vector<std::string> bad;
  std::string lines;
  // 1024 is the usual one; every worker of a DataLoader and every connection of gloo takes some.
  if (const auto files = limit("nofile"); files && *files < 1024) {
    bad.push_back(fmt::format("a process may open {} files", *files));
    lines += fmt::format("{} - nofile 65536\\n", facts.user);
  }
  // A rank has dozens of threads.
  if (const auto processes = limit("nproc"); processes && *processes < 1024) {
    bad.push_back(fmt::format("the login may have {} processes and threads", *processes));
    lines += fmt::format("{} - nproc 65536\\n", facts.user);
  }
  const bool rdma = std::ranges::any_of(facts.infiniband, &InfinibandPort::active);
  if (const auto locked = limit("memlock"); rdma && locked && *locked < memlock_of_rdma) {
    bad.push_back(
        fmt::format("a process may lock {} of memory, which RDMA needs more of", size_text(*locked)));
    lines += fmt::format("{} - memlock unlimited\\n", facts.user);
  }
  if (!bad.empty()) {
    return {"limits", CheckStatus::warn, join(bad, "; "),
            Fix{Fix::Where::server_as_root,
                fmt::format("printf {} >/etc/security/limits.d/remote.conf", shell_quote(lines))}};
  }
  const auto files = limit("nofile");
  return {"limits",
          CheckStatus::ok,
          "open files: " + (files ? std::to_string(*files) : std::string("unlimited")),
          {}};
}

void judge_infiniband(const ServerFacts& facts, std::vector<Finding>& findings) {
  if (facts.infiniband.empty()) {
    return;
  }
  Finding finding{"infiniband", CheckStatus::ok, "", {}};
  for (const InfinibandPort& port : facts.infiniband) {
    finding.detail += fmt::format("{}{}:{} {}{}", finding.detail.empty() ? "" : ", ", port.device, port.port,
                                  port.state, port.rate.empty() ? "" : " " + port.rate);
  }
  // A port without a cable is usual; a server of which none works has lost its network.
  if (std::ranges::none_of(facts.infiniband, &InfinibandPort::active)) {
    finding.status = CheckStatus::warn;
    finding.detail += ": no port is active, so NCCL uses TCP";
    finding.fix = Fix{Fix::Where::server, "ibstat || rdma link"};
  }
  findings.push_back(std::move(finding));
}

}  // namespace

std::string size_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 6> units = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1000 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return value < 10 && unit > 0 ? fmt::format("{:.1f} {}", value, units.at(unit))
                                : fmt::format("{:.0f} {}", value, units.at(unit));
}

void judge_machine(const ServerFacts& facts, std::vector<Finding>& findings) {
  findings.push_back({"system",
                      CheckStatus::ok,
                      fmt::format("{}, Linux {}", facts.os.empty() ? "unknown" : facts.os, facts.kernel),
                      {}});
  findings.push_back({"cpu", CheckStatus::ok, cpu_words(facts), {}});
  findings.push_back(judge_memory(facts));
  findings.push_back(judge_load(facts));
  findings.push_back(judge_limits(facts));
  judge_infiniband(facts, findings);
}

void judge_disks(const ServerFacts& facts, std::vector<Finding>& findings) {
  findings.push_back(judge_file_systems(
      facts, "disk",
      [](const DiskFacts& disk) { return status_of(disk.free_bytes, bytes_needed(disk.what)); },
      [](const DiskFacts& disk) {
        return fmt::format("{} of {} are free{}", size_text(disk.free_bytes), size_text(disk.total_bytes),
                           medium(disk));
      }));
  findings.push_back(judge_file_systems(
      facts, "inodes",
      [](const DiskFacts& disk) {
        return disk.inodes == 0 ? CheckStatus::ok : status_of(disk.free_inodes, inodes_needed(disk.what));
      },
      [](const DiskFacts& disk) {
        return disk.inodes == 0 ? std::string("there is no limit of files")
                                : fmt::format("{} of {} inodes are free", disk.free_inodes, disk.inodes);
      }));
  findings.push_back(judge_shm(facts));
}

}  // namespace remote::project
