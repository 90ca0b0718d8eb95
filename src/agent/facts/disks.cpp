#include "agent/facts/disks.hpp"

#include <algorithm>
#include <string>

#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "agent/facts/access_needs.hpp"
#include "agent/facts/file_systems.hpp"
#include "agent/host/files.hpp"
#include "base/format.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

// A partition has no queue of its own, so also try the disk it is on.
std::optional<bool> read_rotational(const Host& host, dev_t device) {
  const Path folder = host.system(text::format("/sys/dev/block/{}:{}", major(device), minor(device)));
  for (const Path& disk : {folder, folder / ".."}) {
    const std::string value = read_first_line(disk / "queue/rotational");
    if (value == "0" || value == "1") {
      return value == "1";
    }
  }
  return std::nullopt;
}

std::uint64_t count_bytes(std::uint64_t blocks, std::uint64_t block_size) {
  return block_size == 0 ? 0 : std::min(blocks, wire::max_bytes / block_size) * block_size;
}

void read_sizes(const struct statfs& info, DiskFacts& disk) {
  const auto block_size = static_cast<std::uint64_t>(info.f_frsize > 0 ? info.f_frsize : info.f_bsize);
  disk.total_bytes = count_bytes(info.f_blocks, block_size);
  // This is negative if only root has space left.
  const bool is_negative = static_cast<std::int64_t>(info.f_bavail) < 0;
  disk.free_bytes = is_negative ? 0 : count_bytes(info.f_bavail, block_size);
  disk.inodes = info.f_files;
  disk.free_inodes = info.f_ffree;
  // CephFS does not count free inodes: it reports -1.
  if (disk.free_inodes > disk.inodes || disk.inodes > wire::max_bytes) {
    disk.inodes = disk.free_inodes = 0;
  }
}

std::optional<std::string> find_unusable_tmpdir(const Host& host) {
  const std::string folder = host.variable("TMPDIR");
  const Path path = host.expand(folder);
  const bool is_usable = folder.empty() || (is_folder(path) && ::access(path.c_str(), W_OK) == 0);
  return is_usable ? std::nullopt : std::optional(wire::to_line(folder, 4096));
}

Path folder_of_place(const Host& host, const wire::FactsRequest& request, wire::DiskPlace place) {
  switch (place) {
    case wire::DiskPlace::project:
      return host.expand(request.project);
    case wire::DiskPlace::environment:
      return host.expand(request.environment);
    case wire::DiskPlace::tmp: {
      // Python also falls back to /tmp if it cannot write to TMPDIR.
      const std::string folder = host.variable("TMPDIR");
      return folder.empty() || find_unusable_tmpdir(host) ? Path("/tmp") : host.expand(folder);
    }
    case wire::DiskPlace::shm:
      break;
  }
  return host.shared_memory;
}

}  // namespace

Path find_nearest_folder(const Path& folder) {
  Path found = folder;
  while (!is_folder(found) && !found.empty() && found != "/") {
    found = found.parent_path();
  }
  return found.empty() ? "/" : found;
}

std::optional<DiskFacts> read_disk(const Host& host, wire::DiskPlace place, const Path& folder) {
  DiskFacts disk;
  disk.what = wire::name_of_value(place);
  disk.there = is_folder(folder);
  if (!disk.there && place == wire::DiskPlace::shm) {
    return std::nullopt;
  }
  if (!disk.there) {
    disk.dangling = wire::to_line(read_link(folder), 4096);
  }
  const Path found = find_nearest_folder(folder);
  struct statfs sizes {};
  struct stat info {};
  if (::statfs(found.c_str(), &sizes) != 0 || ::stat(found.c_str(), &info) != 0) {
    return std::nullopt;
  }
  disk.path = wire::to_line(found.string(), 4096);
  disk.writable = ::access(found.c_str(), W_OK) == 0;
  disk.device = info.st_dev;
  disk.type = name_file_system(static_cast<unsigned long>(sizes.f_type));
  disk.rotational = read_rotational(host, info.st_dev);
  read_sizes(sizes, disk);
  if (place == wire::DiskPlace::project) {
    disk.access_needs = find_access_needs(host, found);
  }
  return disk;
}

std::vector<DiskFacts> read_disks(const Host& host, const wire::FactsRequest& request) {
  std::vector<DiskFacts> disks;
  for (const wire::DiskPlace place : request.disks) {
    if (auto disk = read_disk(host, place, folder_of_place(host, request, place))) {
      if (place == wire::DiskPlace::tmp) {
        disk->unusable_tmpdir = find_unusable_tmpdir(host);
      }
      disks.push_back(std::move(*disk));
    }
  }
  return disks;
}

}  // namespace remote::agent
