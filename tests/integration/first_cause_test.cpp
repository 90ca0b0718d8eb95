// Which rank is blamed when one of several ranks connected by torch.distributed dies. Uses real torch with
// gloo.

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "support/command_world.hpp"

namespace remote::test {
namespace {

class FirstCause : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("/usr/bin/python3 -c 'import torch.distributed' 2>/dev/null") != 0) {
      GTEST_SKIP() << "there is no torch here";
    }
    world.configure(
        "name: proj\npython: {manager: system}\nservers:\n"
        "  a: {hostname: a, internal_address: 127.0.0.1}\n  b: {hostname: b, internal_address: 127.0.0.1}\n");
    for (const char* server : {"a", "b"}) {
      const fs::path folder = world.there(server);
      fs::create_directories(folder);
      std::ofstream(folder / "train.py") << "import os, sys, torch, torch.distributed as dist\n"
                                            "dist.init_process_group('gloo')\n"
                                            "value = torch.ones(1)\n"
                                            "for step in range(1000000):\n"
                                            "    if step == 50 and os.environ['RANK'] == os.environ['WHO']:\n"
                                            "        eval(os.environ['END'])\n"
                                            "    dist.all_reduce(value)\n";
    }
  }

  // Launches 2 x 2 ranks; this rank evaluates `end`.
  CommandResult launch(const std::string& rank, const std::string& end,
                       const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{"torch-launch",
                                   "--cmd",
                                   "/usr/bin/python3 train.py",
                                   "--nproc-per-node",
                                   "2",
                                   "--follow",
                                   "-e",
                                   "WHO=" + rank,
                                   "-e",
                                   "END=" + end};
    words.insert(words.end(), more.begin(), more.end());
    if (std::ranges::find(more, "--failure-grace") == more.end()) {
      words.insert(words.end(), {"--failure-grace", "60"});
    }
    return world.run(words);
  }
  CommandWorld world;
};

TEST_F(FirstCause, ARankThatSigkillEndsIsBlamedAndNotItsPeers) {
  const CommandResult result = launch("2", "os.kill(os.getpid(), 9)");
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("rank 2 on b failed first (SIGKILL, ")) << result;
  EXPECT_THAT(result.err, HasSubstr("3 others failed after it\n"));
}

TEST_F(FirstCause, ARankThatExitsWithoutAWordIsBlamedAndNotItsPeers) {
  EXPECT_THAT(launch("1", "os._exit(3)").err, HasSubstr("rank 1 on a failed first (exit 3, "));
}

TEST_F(FirstCause, OfTorchrunsWorkersTheOneThatRaisedIsNamedAndItsTracebackShown) {
  const CommandResult result = launch("3", "[].remove(5)", {"--launcher", "torchrun"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("rank 3 on b failed first (exit 1, "),
                                HasSubstr("  ValueError: list.remove(x): x not in list\n3 others failed")))
      << result;
}

TEST_F(FirstCause, OfTorchrunsWorkersTheOneThatASignalEndedIsNamed) {
  const CommandResult result =
      launch("1", "os.kill(os.getpid(), 11)", {"--launcher", "torchrun", "--rdzv", "c10d"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("rank 1 on a failed first (SIGSEGV, "), HasSubstr("3 others"),
                                HasSubstr("--rank 1\n")))
      << result;
}

TEST_F(FirstCause, OfTorchrunsWorkersTheOneThatExitsIsNamedWithItsLastWords) {
  const CommandResult result =
      launch("2", "(print('no more batches', file=sys.stderr), sys.exit(3))", {"--launcher", "torchrun"});
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("rank 2 on b failed first (exit 3, "), HasSubstr("  no more batches\n")))
      << result;
}

// Torch's agent would wait minutes for the other agent, whose workers use nothing that fails.
TEST_F(FirstCause, OfTorchrunsWorkersOneThatFailsAloneEndsTheLaunch) {
  for (const char* server : {"a", "b"}) {
    std::ofstream(world.there(server) / "train.py") << "import os, sys, time\n"
                                                       "if os.environ['RANK'] == '3':\n"
                                                       "    sys.exit(3)\n"
                                                       "time.sleep(1000)\n";
  }
  const CommandResult result = launch("3", "", {"--launcher", "torchrun", "--failure-grace", "0"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("rank 3 on b failed first (exit 3, ")) << result;
}

}  // namespace
}  // namespace remote::test
