#include "agent/facts/file_systems.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/format.hpp"

namespace remote::agent {
namespace {

using FileSystemName = std::pair<unsigned long, std::string_view>;

// The names that GNU coreutils uses: BeeGFS is "fhgfs", and every FUSE file system "fuseblk".
constexpr std::array file_system_names{
    FileSystemName{0x0187, "autofs"},        FileSystemName{0x4D44, "msdos"},
    FileSystemName{0x517B, "smb"},           FileSystemName{0x6969, "nfs"},
    FileSystemName{0x9660, "isofs"},         FileSystemName{0x9FA0, "proc"},
    FileSystemName{0xEF53, "ext2/ext3"},     FileSystemName{0xF15F, "ecryptfs"},
    FileSystemName{0x00C36400, "ceph"},      FileSystemName{0x01021994, "tmpfs"},
    FileSystemName{0x01021997, "v9fs"},      FileSystemName{0x01161970, "gfs/gfs2"},
    FileSystemName{0x013111A8, "ibrix"},     FileSystemName{0x0BD00BD0, "lustre"},
    FileSystemName{0x15013346, "udf"},       FileSystemName{0x19830326, "fhgfs"},
    FileSystemName{0x2011BAB0, "exfat"},     FileSystemName{0x28CD3D45, "cramfs"},
    FileSystemName{0x2FC12FC1, "zfs"},       FileSystemName{0x3153464A, "jfs"},
    FileSystemName{0x47504653, "gpfs"},      FileSystemName{0x52654973, "reiserfs"},
    FileSystemName{0x5346414F, "afs"},       FileSystemName{0x5346544E, "ntfs"},
    FileSystemName{0x53464846, "wslfs"},     FileSystemName{0x565A4653, "vzfs"},
    FileSystemName{0x58465342, "xfs"},       FileSystemName{0x61636673, "acfs"},
    FileSystemName{0x61756673, "aufs"},      FileSystemName{0x62656572, "sysfs"},
    FileSystemName{0x63677270, "cgroup2fs"}, FileSystemName{0x65735546, "fuseblk"},
    FileSystemName{0x6B414653, "k-afs"},     FileSystemName{0x73717368, "squashfs"},
    FileSystemName{0x73757245, "coda"},      FileSystemName{0x7461636F, "ocfs2"},
    FileSystemName{0x786F4256, "vboxsf"},    FileSystemName{0x794C7630, "overlayfs"},
    FileSystemName{0x7C7C6673, "prl_fs"},    FileSystemName{0x858458F6, "ramfs"},
    FileSystemName{0x9123683E, "btrfs"},     FileSystemName{0x958458F6, "hugetlbfs"},
    FileSystemName{0xA501FCF5, "vxfs"},      FileSystemName{0xAAD7AAEA, "panfs"},
    FileSystemName{0xBACBACBC, "vmhgfs"},    FileSystemName{0xBEEFDEAD, "snfs"},
    FileSystemName{0xCA451A4E, "bcachefs"},  FileSystemName{0xE0F5E1E2, "erofs"},
    FileSystemName{0xF2F52010, "f2fs"},      FileSystemName{0xFE534D42, "smb2"},
    FileSystemName{0xFF534D42, "cifs"}};

}  // namespace

std::string name_file_system(unsigned long type) {
  const auto* const found = std::ranges::find(file_system_names, type, &FileSystemName::first);
  return found == file_system_names.end() ? text::format("UNKNOWN (0x{:x})", type)
                                          : std::string(found->second);
}

}  // namespace remote::agent
