#include "base/kept_modes.hpp"

#include <cerrno>

#include <gtest/gtest.h>

#include "base/files.hpp"

namespace remote {
namespace {

TEST(KeptModes, DependOnTheFileSystem) {
  constexpr std::uint64_t vfat = 0x4d44;
  constexpr std::uint64_t fuse = 0x65735546;
  constexpr std::uint64_t ext4 = 0xef53;
  EXPECT_TRUE(may_lack_modes(vfat, 0100755));
  EXPECT_TRUE(may_lack_modes(fuse, 0100777));
  EXPECT_FALSE(may_lack_modes(fuse, 0100644));
  EXPECT_FALSE(may_lack_modes(ext4, 0100777));
}

TEST(KeptModes, AreKeptIfNothingIsKnown) {
  EXPECT_TRUE(keeps_modes("/no such file"));
  const TempFolder folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
  EXPECT_TRUE(keeps_modes(folder.path()));
}

TEST(KeptModes, ChmodIsAdvisedAndAlsoAnotherPlaceIfItMayHaveNoEffect) {
  EXPECT_EQ(advise_mode(true, "chmod 600 key", "keep the key in ~/.ssh"), "chmod 600 key");
  EXPECT_EQ(advise_mode(false, "chmod 600 key", "keep the key in ~/.ssh"),
            "chmod 600 key; if the disk keeps no modes, keep the key in ~/.ssh");
}

TEST(KeptModes, LinksAreNotKeptEither) {
  for (const int error : {EPERM, EOPNOTSUPP, ENOSYS}) {  // errors of vfat, 9p, and FUSE file systems
    EXPECT_TRUE(shows_no_links({error, std::generic_category()})) << error;
    EXPECT_TRUE(shows_no_links({error, std::system_category()})) << error;
  }
  for (const int error : {0, EACCES, ENOSPC, EROFS}) {
    EXPECT_FALSE(shows_no_links({error, std::generic_category()})) << error;
  }
}

}  // namespace
}  // namespace remote
