#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <remote/error.hpp>

#include "servers/init_file.hpp"

namespace remote::servers {
namespace {

TEST(SharedFile, AServerNamesAFolderOfALaunch) {
  const std::string folder = "/mnt/a b/.remote-init-0123";
  EXPECT_EQ(check_reply({folder, ""}).folder, folder);
  EXPECT_EQ(check_reply({folder, ""}).failure, "");
  EXPECT_EQ(check_reply({"", "the disk is full"}).failure, "the disk is full");
  for (const char* wrong : {"", "mnt/.remote-init-0", "/mnt", "/mnt/remote-init-0", "/.remote/init"}) {
    EXPECT_THROW(check_reply({wrong, ""}), Error) << wrong;
  }
}

TEST(SharedFile, TorchDoesNotTakeAllCharacters) {
  for (const char* odd : {"/a?b/.remote-init-0", "/a#/.remote-init-0", "/a;/.remote-init-0",
                          "/a\x1b/.remote-init-0", "/a\n/.remote-init-0"}) {
    EXPECT_THAT(check_reply({odd, ""}).failure, ::testing::HasSubstr("torch does not accept")) << odd;
  }
}

}  // namespace
}  // namespace remote::servers
