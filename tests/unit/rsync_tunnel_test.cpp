#include "ssh/rsync_tunnel.hpp"

#include <utility>

#include <gtest/gtest.h>

namespace remote::ssh {
namespace {

TEST(TransferProgress, ReadsRsyncsLine) {
  const auto progress = parse_rsync_progress("     41943040  42%  123.45MB/s    0:00:03  ");
  ASSERT_TRUE(progress);
  EXPECT_EQ(progress->bytes, 41943040U);
  EXPECT_EQ(progress->percent, 42);
  EXPECT_DOUBLE_EQ(progress->bytes_per_second, 123.45 * 1024 * 1024);
  EXPECT_EQ(progress->left, std::chrono::seconds(3));
  EXPECT_EQ(parse_rsync_progress("  1,234,567 100%    1.00kB/s    0:00:00 (xfr#2, to-chk=0/3)")->bytes,
            1234567U);
}

TEST(TransferProgress, TakesNothingElse) {
  for (const char* line :
       {"", " ", "train.py", "@item <f+++++++++ 5 10 50% 1MB/s 0:00", " a 5% 1MB/s 0:00:01",
        " 5 x% 1MB/s 0:00:01", " 5 5% 1MB 0:00:01", " 5 5% fast/s 0:00:01", " 5 5% 1MB/s"}) {
    EXPECT_FALSE(parse_rsync_progress(line)) << line;
  }
}

TEST(RemoteSpec, IsUnderTheHomeFolderAndPlain) {
  for (const auto& [path, spec] : {std::pair{"~/my project", "remote:my project"},
                                   {"~", "remote:."},
                                   {"/abs/it's", "remote:/abs/it's"},
                                   {"~/a\\b", "remote:a\\b"},
                                   {"~/a*\\b", "remote:a\\*\\\\b"}}) {
    EXPECT_EQ(remote_spec(path), spec);
  }
}

}  // namespace
}  // namespace remote::ssh
