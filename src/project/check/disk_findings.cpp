// Findings about the free disk space of a server.

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "project/check/judge.hpp"

namespace remote::project {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20U;
constexpr std::uint64_t gib = 1024 * mib;

struct Threshold {
  std::uint64_t fail = 0;  // below this, the check fails
  std::uint64_t warn = 0;
};

// A job's folder needs a few hundred KiB plus a growing log; checkpoints may need any amount. pip and torch
// unpack and compile in /tmp. The environment is only read.
Threshold bytes_needed(const std::string& what) {
  if (what == "project") {
    return {64 * mib, gib};
  }
  return what == "tmp" ? Threshold{16 * mib, 256 * mib} : Threshold{0, 64 * mib};
}

// A job's folder has about twenty files.
Threshold inodes_needed(const std::string& what) {
  return what == "environment" ? Threshold{0, 100} : Threshold{100, 1000};
}

CheckStatus status_of(std::uint64_t left, const Threshold& needed) {
  if (left < needed.fail) {
    return CheckStatus::fail;
  }
  return left < needed.warn ? CheckStatus::warn : CheckStatus::ok;
}

// A file system, with the worst status among the folders on it.
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
      continue;  // a virtual file system of size 0 has no limit
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

// One finding about all file systems: lists those with problems or, if there are none, all of them.
template <typename Judge, typename Words>
Finding judge_file_systems(const ServerFacts& facts, const std::string& name, const Judge& judge,
                           const Words& words) {
  Finding finding{name, CheckStatus::ok, "", {}};
  const std::vector<FileSystem> all = file_systems(facts, judge);
  if (all.empty()) {
    return {name, CheckStatus::skip, "the disks could not be checked", {}};
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
      if (name == "disk" && one.disk->what == "tmp" && one.holds.size() == 1) {  // may be small, and empty
        finding.fix =
            Fix{Fix::Where::advice,
                "set TMPDIR in `env` of the server to a folder with more space, or free some space in " +
                    shell_quote(one.disk->path)};
        continue;
      }
      const bool has_jobs = std::ranges::find(one.holds, "the project") != one.holds.end();
      finding.fix = Fix{Fix::Where::server, (name == "inodes" ? list_full_folders(one.disk->path)
                                                              : list_large_folders(one.disk->path)) +
                                                (has_jobs ? "  # old jobs: remote job-clean" : "")};
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

void judge_tmpdir(const ServerFacts& facts, Finding& finding) {
  const DiskFacts* tmp = facts.disk("tmp");
  if (tmp == nullptr || !tmp->unusable_tmpdir) {
    return;
  }
  const std::string folder = visible_line(*tmp->unusable_tmpdir);
  finding.detail += fmt::format("; TMPDIR is {}, which is not a folder that the login can write to", folder);
  if (finding.status != CheckStatus::fail) {
    finding.status = CheckStatus::warn;
  }
  if (!finding.fix) {
    finding.fix = Fix{Fix::Where::advice,
                      fmt::format("make it a folder (mkdir -p {}), or set TMPDIR in `env` of the server to a "
                                  "folder that the login can write to",
                                  shell_quote(*tmp->unusable_tmpdir))};
  }
}

}  // namespace

bool is_small_shm(std::uint64_t bytes) {
  return bytes < 512 * mib;
}

Finding shm_finding(const ServerFacts& facts) {
  const DiskFacts* shm = facts.disk("shm");
  const Fix mend{Fix::Where::server_as_root,
                 "mount -o remount,size=50% /dev/shm || mount -t tmpfs -o size=50% tmpfs /dev/shm"};
  if (shm == nullptr) {
    return {"shm", CheckStatus::fail, "there is no /dev/shm, which NCCL and the workers of a DataLoader need",
            mend};
  }
  const CheckStatus status = shm->free_bytes < 16 * mib      ? CheckStatus::fail
                             : is_small_shm(shm->free_bytes) ? CheckStatus::warn
                                                             : CheckStatus::ok;
  std::string detail =
      fmt::format("{} of {} are free in /dev/shm", size_text(shm->free_bytes), size_text(shm->total_bytes));
  if (status == CheckStatus::ok) {
    return {"shm", status, detail, {}};
  }
  detail += "; NCCL and the workers of a DataLoader need more";
  if (!is_small_shm(shm->total_bytes)) {
    return {"shm", status, detail, Fix{Fix::Where::server, "ls -lS /dev/shm | head -20"}};
  }
  return {"shm", status, detail, mend};
}

std::string list_large_folders(const std::string& path) {
  return fmt::format("du -xhd 2 {} 2>/dev/null | sort -h | tail -20", shell_quote(path));
}

std::string list_full_folders(const std::string& path) {
  return fmt::format("du --inodes -xd 2 {} 2>/dev/null | sort -n | tail -20", shell_quote(path));
}

void judge_disks(const ServerFacts& facts, std::vector<Finding>& findings) {
  findings.push_back(judge_file_systems(
      facts, "disk",
      [](const DiskFacts& disk) { return status_of(disk.free_bytes, bytes_needed(disk.what)); },
      [](const DiskFacts& disk) {
        return fmt::format("{} of {} are free{}", size_text(disk.free_bytes), size_text(disk.total_bytes),
                           medium(disk));
      }));
  judge_tmpdir(facts, findings.back());
  findings.push_back(judge_file_systems(
      facts, "inodes",
      [](const DiskFacts& disk) {
        return disk.inodes == 0 ? CheckStatus::ok : status_of(disk.free_inodes, inodes_needed(disk.what));
      },
      [](const DiskFacts& disk) {
        return disk.inodes == 0 ? std::string("no limit on the number of files")
                                : fmt::format("{} of {} inodes are free", disk.free_inodes, disk.inodes);
      }));
  findings.push_back(shm_finding(facts));
}

}  // namespace remote::project
