#include "ssh/rsync_pipe.hpp"

#include <array>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "ssh/rsync_tunnel.hpp"
#include "support/paths.hpp"

namespace remote::ssh {
namespace {

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
  // The pipes themselves were passed on, and the helper keeps no end of them.
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
