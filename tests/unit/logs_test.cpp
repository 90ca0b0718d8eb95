#include "servers/logs.hpp"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace remote::servers {
namespace {
namespace fs = std::filesystem;

struct Logs : ::testing::Test {
  Logs() { config.project = folder.path(); }
  TempFolder folder;
  config::Config config;
};

TEST_F(Logs, KeepBothStreamsAndTheEnd) {
  CommandLog log(config, "setup", "node-1");
  log.write(ssh::Stream::out, "one\n");
  log.write(ssh::Stream::err, "two\n");
  log.finish(ExitStatus::signalled(9));
  EXPECT_EQ(read_file(log.folder() / "stdout.log"), "one\n");
  EXPECT_EQ(read_file(log.folder() / "stderr.log"), "two\n");
  EXPECT_EQ(read_file(log.folder() / "exit_code"), "137\n");
  EXPECT_TRUE(log.folder().string().ends_with("-setup-node-1"));
}

TEST_F(Logs, TwoOfOneNameDoNotMix) {
  std::vector<fs::path> folders;
  for (int i = 0; i < 20; ++i) {
    CommandLog log(config, "setup", "node-1");
    log.write(ssh::Stream::out, std::to_string(i));
    EXPECT_EQ(read_file(log.folder() / "stdout.log"), std::to_string(i));
  }
}

TEST_F(Logs, OneThatCannotBeWrittenStopsNothing) {
  config.logs_folder = "file/logs";
  std::ofstream(folder.path() / "file") << "x";
  CommandLog log(config, "setup", "node-1");
  log.write(ssh::Stream::out, "one\n");
  log.finish(ExitStatus::exited(0));
  EXPECT_FALSE(fs::exists(log.folder()));
}

TEST_F(Logs, TheNewestStayAndStrangersToo) {
  const fs::path logs = folder.path() / "logs";
  for (int i = 0; i < 12; ++i) {
    fs::create_directories(logs / fmt::format("20260101-0000{:02}.000-run-a", i));
  }
  fs::create_directories(logs / "0-mine");
  prune_logs(logs, 10);
  EXPECT_FALSE(fs::exists(logs / "20260101-000001.000-run-a"));
  EXPECT_TRUE(fs::exists(logs / "20260101-000002.000-run-a"));
  EXPECT_TRUE(fs::exists(logs / "0-mine"));
}

}  // namespace
}  // namespace remote::servers
