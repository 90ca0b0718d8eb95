#include "project/core.hpp"

#include <cerrno>
#include <latch>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/files.hpp"

namespace remote::project {
namespace {

// A fan-out's threads ask for the connector at the same moment: two made would leave one of them destroyed in
// use.
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

TEST(FileError, TheHintNamesWhatIsClosedAndNotWhatIsNotThere) {
  const TempFolder folder;
  EXPECT_EQ(file_error("create the folder", folder.path() / "a" / "b", EACCES).hint(),
            "check the permissions of " + folder.path().string());
}

}  // namespace
}  // namespace remote::project
