#include "base/kept_modes.hpp"

#include <gtest/gtest.h>

#include "base/files.hpp"

namespace remote {
namespace {

TEST(KeptModes, DependOnTheFileSystem) {
  constexpr std::uint64_t vfat = 0x4d44;
  constexpr std::uint64_t fuse = 0x65735546;
  constexpr std::uint64_t ext4 = 0xef53;
  EXPECT_TRUE(shows_no_modes(vfat, 0100755));
  EXPECT_TRUE(shows_no_modes(fuse, 0100777));
  EXPECT_FALSE(shows_no_modes(fuse, 0100644));
  EXPECT_FALSE(shows_no_modes(ext4, 0100777));
}

TEST(KeptModes, AreKeptIfNothingIsKnown) {
  EXPECT_TRUE(keeps_modes("/no such file"));
  const TempFolder folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
  EXPECT_TRUE(keeps_modes(folder.path()));
}

}  // namespace
}  // namespace remote
