#include "base/ownership.hpp"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string_view>

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include "base/files.hpp"
#include "base/strings.hpp"

namespace remote {
namespace {

struct User {
  std::string name;
  gid_t group = 0;
};

std::optional<User> user_of(uid_t uid) {
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 16384> buffer{};
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) {
    return std::nullopt;
  }
  return User{found->pw_name, found->pw_gid};
}

bool is_private_group(gid_t gid, uid_t owner) {
  const auto user = user_of(owner);
  group entry{};
  group* found = nullptr;
  std::array<char, 65536> buffer{};
  if (!user || user->group != gid || ::getgrgid_r(gid, &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr) {
    return false;
  }
  for (char** member = found->gr_mem; *member != nullptr; ++member) {
    if (user->name != *member) {
      return false;
    }
  }
  return user->name == found->gr_name;
}

}  // namespace

bool is_own(uid_t owner) {
  if (owner == ::geteuid() || owner == 0) {
    return true;
  }
  const char* caller = ::geteuid() == 0 ? std::getenv("SUDO_UID") : nullptr;
  return caller != nullptr && parse_number<uid_t>(caller) == owner;
}

std::filesystem::path resolved(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  fs::path rest = path;
  std::error_code error;
  for (int links = 0; links < 40; ++links) {
    const fs::path real = fs::weakly_canonical(rest, error);
    // weakly_canonical() does not resolve broken links.
    fs::path next;
    for (const fs::path& part : error ? fs::path() : real) {
      const bool link = fs::is_symlink(next / part, error);
      next = link ? next / fs::read_symlink(next / part, error) : next / part;
    }
    if (next.empty() || next == real) {
      return next;
    }
    rest = next;
  }
  return {};
}

std::string others_hand(const struct stat& info) {
  if (!is_own(info.st_uid)) {
    const auto user = user_of(info.st_uid);
    return "it belongs to " + (user ? user->name : "user id " + std::to_string(info.st_uid));
  }
  if ((info.st_mode & S_IWOTH) != 0) {
    return "everyone may write to it";
  }
  if ((info.st_mode & S_IWGRP) != 0 && !is_private_group(info.st_gid, info.st_uid)) {
    return "its group may write to it";
  }
  return "";
}

std::string others_hand(const std::filesystem::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) {
      return "";
    }
    throw file_error("look at", path, errno);
  }
  return S_ISCHR(info.st_mode) ? "" : others_hand(info);  // /dev/null, which is often used to mean "none"
}

}  // namespace remote
