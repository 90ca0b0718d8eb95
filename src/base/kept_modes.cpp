#include "base/kept_modes.hpp"

#include <sys/stat.h>

#ifdef __linux__
#include <sys/vfs.h>
#endif

namespace remote {

bool may_lack_modes(std::uint64_t file_system, mode_t mode) {
  constexpr mode_t all = 0777;
  switch (file_system) {
    case 0x4d44:      // msdos, vfat
    case 0x2011bab0:  // exfat
      return true;
    case 0x65735546:  // fuse, fuseblk
    case 0x01021997:  // 9p, drvfs
    case 0x7366746e:  // ntfs3
    case 0xff534d42:  // cifs
    case 0xfe534d42:  // smb2
      return (mode & all) == all;
    default:
      return false;
  }
}

bool keeps_modes(const std::filesystem::path& path) {
#ifdef __linux__
  struct statfs disk {};
  struct stat info {};
  return ::statfs(path.c_str(), &disk) != 0 || ::stat(path.c_str(), &info) != 0 ||
         !may_lack_modes(static_cast<std::uint32_t>(disk.f_type), info.st_mode);
#else
  static_cast<void>(path);
  return true;
#endif
}

std::string advise_mode(bool keeps_modes, const std::string& change, const std::string& otherwise) {
  return keeps_modes ? change : change + "; if the disk keeps no modes, " + otherwise;
}

bool shows_no_links(const std::error_code& error) {
  return error == std::errc::operation_not_permitted || error == std::errc::operation_not_supported ||
         error == std::errc::function_not_supported;
}

}  // namespace remote
