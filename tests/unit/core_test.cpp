#include "project/core.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <latch>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.hpp"

namespace remote::project {
namespace {

// The threads of a fan-out request the connector at the same time. If two were created, one would be
// destroyed while in use.
TEST(Core, ConnectIsByOneConnectorWhicheverThreadAsksFirst) {
  const TempFolder folder;
  make_folders(folder.path() / ".remote");
  write_file_atomic(folder.path() / ".remote/configs.yaml", "servers:\n  one:\n    hostname: 127.0.0.1\n");
  for (int round = 0; round < 50; ++round) {
    State state(config::load(folder.path()), {});
    Core core(state);
    constexpr int count = 8;
    std::latch ready(count);
    std::vector<const ssh::Connector*> seen(count);
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < count; ++i) {
        threads.emplace_back([&, i] {
          ready.arrive_and_wait();
          seen[static_cast<std::size_t>(i)] = &core.connector();
        });
      }
    }
    ASSERT_EQ(std::set(seen.begin(), seen.end()).size(), 1U);
  }
}

TEST(TempFolder, ThatOfAKilledProcessIsRemovedAndThatOfALivingOneStays) {
  const TempFolder living("remote-test-");
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const TempFolder folder("remote-test-");
    const std::string name = folder.path().string();
    static_cast<void>(!::write(pipe[1], name.data(), name.size()));
    for (;;) {
      ::pause();
    }
  }
  std::array<char, 4096> name{};
  const ssize_t size = ::read(pipe[0], name.data(), name.size());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(pipe[0]);
  ::close(pipe[1]);
  ASSERT_GT(size, 0);
  const std::filesystem::path dead(std::string(name.data(), static_cast<std::size_t>(size)));
  const std::filesystem::path other = dead.parent_path() / "remote-test-of-a-user";
  std::filesystem::create_directory(other);
  EXPECT_TRUE(std::filesystem::exists(dead));
  TempFolder::remove_abandoned();
  EXPECT_FALSE(std::filesystem::exists(dead));
  EXPECT_TRUE(std::filesystem::exists(living.path()));
  EXPECT_TRUE(std::filesystem::remove(other));
}

TEST(FileLock, WhoWaitsForAFileThatIsRemovedGetsTheLockOfTheNextOne) {
  const TempFolder folder;
  const std::filesystem::path path = folder.path() / "lock";
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        for (int round = 0; round < 20; ++round) {
          const FileLock lock(path);
          most = std::max<int>(most, ++inside);
          std::this_thread::yield();
          --inside;
          lock.remove_file();
        }
      });
    }
  }
  EXPECT_EQ(most, 1);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(FileError, TheHintNamesWhatIsClosedAndNotWhatIsNotThere) {
  const TempFolder folder;
  EXPECT_EQ(file_error("create the folder", folder.path() / "a" / "b", EACCES).hint(),
            "check the permissions of " + folder.path().string());
}

}  // namespace
}  // namespace remote::project
