#include "agent/facts/access_needs.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "agent/host/files.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

struct Mount {
  std::string type;
  std::string source;
  std::string options;  // of the file system, such as "rw,sec=krb5p"
};

// The mount of a device number ("8:1"), from /proc/self/mountinfo (proc(5)).
Mount find_mount(const Host& host, std::string_view device) {
  Mount found;
  for (const std::string& line : read_lines(host.system("/proc/self/mountinfo"))) {
    const std::size_t separator = line.find(" - ");
    if (separator == std::string::npos) {
      continue;
    }
    const std::vector<std::string> place = split(line.substr(0, separator), ' ');
    const std::vector<std::string> what = split(line.substr(separator + 3), ' ');
    if (place.size() > 2 && place[2] == device && what.size() > 2) {
      found = {what[0], what[1], what[2]};
    }
  }
  return found;
}

bool has_kerberos(std::string_view options) {
  return std::ranges::any_of(split(options, ','),
                             [](const std::string& option) { return option.starts_with("sec=krb5"); });
}

std::string name_needs(const Mount& mount) {
  constexpr std::array encrypted{"ecryptfs", "fuse.gocryptfs", "fuse.encfs", "fuse.cryfs", "fuse.securefs"};
  if (mount.type == "afs" || mount.type == "k-afs" || mount.type == "auristorfs") {
    return "AFS tokens";
  }
  if (has_kerberos(mount.options)) {
    return "a Kerberos ticket";
  }
  if (std::ranges::find(encrypted, mount.type) != encrypted.end()) {
    return text::format("the mount by {}", mount.type.substr(mount.type.find('.') + 1));
  }
  // systemd-homed closes its encrypted images.
  return mount.source.starts_with("/dev/mapper/home-") ? "the mount by systemd-homed" : "";
}

}  // namespace

std::string find_access_needs(const Host& host, const Path& folder) {
  struct statx info {};
  if (::statx(AT_FDCWD, folder.c_str(), AT_NO_AUTOMOUNT, STATX_BASIC_STATS, &info) != 0) {
    return "";
  }
  const std::string device = text::format("{}:{}", info.stx_dev_major, info.stx_dev_minor);
  std::string needs = name_needs(find_mount(host, device));
  if (needs.empty() && (info.stx_attributes & STATX_ATTR_ENCRYPTED) != 0) {
    needs = "the key of its encryption (fscrypt)";
  }
  return needs;
}

}  // namespace remote::agent
