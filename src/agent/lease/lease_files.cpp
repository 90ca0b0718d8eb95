#include "agent/lease/lease_files.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/descriptor.hpp"
#include "agent/host/processes.hpp"
#include "agent/job/job_files.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

// /dev/shm is not used, because logind removes a user's files there at logout.
constexpr std::array shared_places{"/run/lock", "/tmp", "/var/tmp"};
constexpr std::size_t max_lease_text = 16384;
constexpr std::size_t max_files_of_user = 1024;
constexpr std::chrono::seconds stale_age{60};
constexpr mode_t open_to_all = 01777;
constexpr uid_t unmapped_user =
    65534;  // the owner shown for root in a user namespace without a mapping for it

bool is_open_to_all(const struct stat& info) {
  return (info.st_mode & open_to_all) == open_to_all;
}

// Whether other users cannot replace this user's files in the folder.
bool is_safe_folder(const Path& path) {
  const auto info = look_at_entry(path);
  return info && S_ISDIR(info->st_mode) && (info->st_uid == 0 || info->st_uid == ::geteuid()) &&
         (is_open_to_all(*info) || (info->st_mode & 022) == 0);
}

struct flock make_lock(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  return lock;
}

// Whether another open file description holds a write lock on the file. Read locks do not count. nullopt on
// error.
std::optional<bool> is_locked(int fd) {
  struct flock lock = make_lock(F_RDLCK);
  return ::fcntl(fd, F_OFD_GETLK, &lock) == 0 ? std::optional(lock.l_type != F_UNLCK) : std::nullopt;
}

// Reads repeatedly, because the owner may be writing at the same time.
std::string read_settled(int fd) {
  std::string text;
  for (int i = 0; i < 20; ++i) {
    std::string now(max_lease_text, '\0');
    const ssize_t count = ::pread(fd, now.data(), now.size(), 0);
    now.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    if (i > 0 && now == text) {
      break;
    }
    text = std::move(now);
  }
  return text;
}

// Whether it is a regular file, named like a lease of its owner.
bool is_lease_file(std::string_view name, const struct stat& info) {
  const std::string begin = text::format("{}{}.", lease_prefix, info.st_uid);
  return S_ISREG(info.st_mode) && is_lease_name(name) && name.starts_with(begin);
}

std::optional<rules::LeaseEntry> read_entry(const Path& folder, const std::string& name) {
  const Path path = folder / name;
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0 || !is_lease_file(name, info)) {
    return std::nullopt;
  }
  const std::optional<bool> locked = is_locked(file.get());
  if (locked == false && info.st_uid == ::geteuid() &&
      read_wall_clock() - std::chrono::seconds(info.st_mtime) > stale_age) {
    ::unlink(path.c_str());
  }
  const auto content = locked == true ? rules::parse_lease_file(read_settled(file.get())) : std::nullopt;
  return content ? std::optional(rules::LeaseEntry{*content, name, info.st_uid}) : std::nullopt;
}

// Lists each file once, regardless of links that others have created to it, and only a limited number for
// each user.
std::vector<std::string> list_lease_files(const Path& folder) {
  struct Found {
    nlink_t links = 0;
    std::string name;
    struct stat info {};
  };
  std::vector<Found> found;
  for (std::string& name : list_names(folder)) {
    const auto info = name.starts_with(lease_prefix) ? look_at_entry(folder / name) : std::nullopt;
    if (info && is_lease_file(name, *info)) {
      found.push_back({info->st_nlink, std::move(name), *info});
    }
  }
  // A file with a single name is not another user's link.
  std::ranges::sort(found, [](const Found& one, const Found& other) {
    return std::tie(one.links, one.name) < std::tie(other.links, other.name);
  });
  std::set<ino_t> seen;
  std::map<uid_t, std::size_t> counts;
  std::vector<std::string> names;
  for (Found& each : found) {
    if (counts[each.info.st_uid] < max_files_of_user && seen.insert(each.info.st_ino).second) {
      ++counts[each.info.st_uid];
      names.push_back(std::move(each.name));
    }
  }
  return names;
}

}  // namespace

Path find_leases_folder(const Host& host) {
  if (const std::string chosen = host.variable("REMOTE_LEASES"); !chosen.empty()) {
    if (is_safe_folder(chosen)) {
      return chosen;
    }
    throw LeaseRefused(text::format(
        "{} is not a folder that its users can share: it must be root's, with mode 1777", chosen));
  }
  for (const char* place : shared_places) {
    Path path = host.system(place);
    const auto info = look_at_entry(path);
    if (info && S_ISDIR(info->st_mode) && is_open_to_all(*info) &&
        (info->st_uid == 0 || info->st_uid == unmapped_user)) {
      return path;
    }
  }
  throw LeaseRefused(
      "none of /run/lock, /tmp, /var/tmp is root's, with mode 1777, so that its users could share it");
}

bool has_lease_files(const Host& host) {
  std::vector<Path> folders;
  for (const char* place : shared_places) {
    folders.push_back(host.system(place));
  }
  if (const std::string chosen = host.variable("REMOTE_LEASES"); !chosen.empty()) {
    folders.emplace_back(chosen);
  }
  return std::ranges::any_of(folders, [](const Path& folder) {
    const std::vector<std::string> names = list_names(folder);
    return std::ranges::any_of(names, [](const std::string& name) { return name.starts_with(lease_prefix); });
  });
}

std::string make_lease_name() {
  return text::format("{}{}.{}", lease_prefix, ::geteuid(), make_random_name());
}

bool is_lease_name(std::string_view name) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (!name.starts_with(lease_prefix)) {
    return false;
  }
  name.remove_prefix(lease_prefix.size());
  const std::size_t dot = name.find('.');
  const std::string_view uid = name.substr(0, dot);
  const std::string_view random = dot == std::string_view::npos ? "" : name.substr(dot + 1);
  return !uid.empty() && uid.size() <= 10 && std::ranges::all_of(uid, is_digit) && random.size() >= 6 &&
         random.size() <= 32 &&
         std::ranges::all_of(random, [&](char c) { return is_digit(c) || is_letter(c); });
}

void publish_lease(int fd) {
  struct flock lock = make_lock(F_WRLCK);
  if (::fcntl(fd, F_OFD_SETLK, &lock) != 0 || ::fchmod(fd, 0644) != 0) {
    throw LeaseRefused(text::format("cannot lock the file of the lease: {}", ::strerror(errno)));
  }
}

void close_lease(int fd) {
  const Path path = read_link(text::format("/proc/self/fd/{}", fd));
  struct stat info {};
  if (!is_lease_name(path.filename()) || ::fstat(fd, &info) != 0) {
    return;
  }
  ::close(fd);
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat now {};
  const bool is_same = file && ::fstat(file.get(), &now) == 0 && now.st_ino == info.st_ino &&
                       now.st_dev == info.st_dev && now.st_uid == ::geteuid();
  if (is_same && is_locked(file.get()) == false) {
    ::unlink(path.c_str());
  }
}

std::vector<rules::LeaseEntry> read_lease_entries(const Path& folder) {
  std::vector<rules::LeaseEntry> entries;
  for (const std::string& name : list_lease_files(folder)) {
    if (auto entry = read_entry(folder, name)) {
      entries.push_back(std::move(*entry));
    }
  }
  std::ranges::sort(entries, [](const rules::LeaseEntry& one, const rules::LeaseEntry& other) {
    return std::tie(one.file.arrival, one.name) < std::tie(other.file.arrival, other.name);
  });
  return entries;
}

}  // namespace remote::agent
