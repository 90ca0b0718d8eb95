#include "ssh/rsync_tunnel.hpp"

#include <array>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "ssh/rsync_pipe.hpp"
#include "support/paths.hpp"

namespace remote::ssh {
namespace {

TEST(TransferProgress, ReadsRsyncsLine) {
  const auto progress = parse_rsync_progress("     41943040  42%  123.45MB/s    0:00:03  ");
  ASSERT_TRUE(progress);
  EXPECT_EQ(progress->bytes, 41943040U);
  EXPECT_EQ(progress->percent, 42);
  EXPECT_DOUBLE_EQ(progress->bytes_per_second, 123.45 * 1024 * 1024);
  EXPECT_EQ(progress->left, "0:00:03");
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
  EXPECT_EQ(remote_spec("~/my project"), "remote:my project");
  EXPECT_EQ(remote_spec("~"), "remote:.");
  EXPECT_EQ(remote_spec("/abs/it's"), "remote:/abs/it's");
  EXPECT_EQ(remote_spec("~/a\\b"), "remote:a\\b");
  EXPECT_EQ(remote_spec("~/a*\\b"), "remote:a\\*\\\\b");
}

TEST(RsyncPipe, HandsOverItsCommandAndItsPipes) {
  auto [ours, theirs] = socket_pair();
  SubprocessSpec spec;
  spec.argv = {test::remote_binary,
               rsync_pipe_command,
               std::to_string(theirs.get()),
               "-l",
               "user",
               "host",
               "rsync",
               "--server",
               "-v",
               "--help",
               "with space\nand more"};
  spec.pass_fds = {{theirs.get(), theirs.get()}};
  spec.pipe_stdin = true;
  spec.pipe_stdout = true;
  Subprocess helper(spec);
  theirs.reset();
  const auto offer = receive_offer(ours.get());
  ASSERT_TRUE(offer);
  EXPECT_EQ(offer->command,
            (std::vector<std::string>{"rsync", "--server", "-v", "--help", "with space\nand more"}));
  // The pipes themselves have come over, and the helper keeps no end of them.
  ASSERT_TRUE(write_all(offer->to_rsync.get(), "hello"));
  std::array<char, 5> buffer{};
  ASSERT_EQ(::read(helper.stdout_fd.get(), buffer.data(), buffer.size()), 5);
  EXPECT_EQ(std::string(buffer.data(), 5), "hello");
  EXPECT_FALSE(helper.poll());
  const char code = 23;
  ASSERT_TRUE(write_all(ours.get(), {&code, 1}));
  EXPECT_EQ(helper.wait(), ExitStatus::exited(23));
}

TEST(RsyncPipe, EndsWhenTheOtherSideIsGone) {
  auto [ours, theirs] = socket_pair();
  SubprocessSpec spec;
  spec.argv = {test::remote_binary, rsync_pipe_command, std::to_string(theirs.get()), "host", "rsync"};
  spec.pass_fds = {{theirs.get(), theirs.get()}};
  Subprocess helper(spec);
  theirs.reset();
  ours.reset();
  EXPECT_EQ(helper.wait(), ExitStatus::exited(255));
}

}  // namespace
}  // namespace remote::ssh
