// Which copies of the agent are removed.

#include "agent/serve/versions.hpp"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace remote::agent {
namespace {

namespace fs = std::filesystem;

class Versions : public ::testing::Test {
 protected:
  Versions() {
    std::string path = ::testing::TempDir() + "/versions.XXXXXX";
    folder = ::mkdtemp(path.data());
    fs::create_directories(folder / "proc");
  }
  ~Versions() override { fs::remove_all(folder); }

  fs::path version(char digit) const { return folder / std::string(64, digit); }
  // A version that was installed this many hours ago.
  void add(char digit, int hours, char architecture = '>') const {
    fs::create_directories(version(digit));
    const fs::path program = version(digit) / "remote-agent";
    std::string header = std::string(
                             "\x7f"
                             "ELF\x02\x01") +
                         std::string(14, digit);
    header[18] = architecture;
    header[19] = '\0';
    std::ofstream(program) << header;
    set_age(program, hours);
  }
  static void set_age(const fs::path& path, int hours) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(hours));
  }
  void run(int pid, char digit) const {
    fs::create_directories(folder / "proc" / std::to_string(pid));
    fs::create_symlink(version(digit) / "remote-agent", folder / "proc" / std::to_string(pid) / "exe");
  }
  void remove_old(char own) const { remove_old_versions(version(own) / "remote-agent", folder / "proc"); }

  fs::path folder;
};

TEST_F(Versions, TheRunningOneAndTheNewestOtherAreKept) {
  add('a', 50);
  add('b', 3);
  add('c', 2);
  add('d', 100);
  remove_old('d');
  EXPECT_FALSE(fs::exists(version('a')));
  EXPECT_FALSE(fs::exists(version('b')));
  EXPECT_TRUE(fs::exists(version('c')));
  EXPECT_TRUE(fs::exists(version('d')));
}

TEST_F(Versions, WhatRunsAndOtherArchitecturesAndOtherFilesAreKept) {
  add('a', 4);
  add('b', 3);
  add('c', 2);
  add('d', 0);
  add('e', 90, 'x');
  add('f', 95, 'x');
  run(17, 'a');
  fs::create_directories(folder / "jobs");
  std::ofstream(folder / std::string(64, '1')) << "a file";
  fs::create_directory_symlink(folder / "jobs", folder / std::string(64, '2'));
  remove_old('d');
  EXPECT_TRUE(fs::exists(version('a')));
  EXPECT_FALSE(fs::exists(version('b')));
  for (const char digit : {'c', 'd', 'e', 'f', '1', '2'}) {
    EXPECT_TRUE(fs::exists(version(digit))) << digit;
  }
  EXPECT_TRUE(fs::exists(folder / "jobs"));
}

TEST_F(Versions, FilesOfInterruptedInstallationsAreRemoved) {
  add('a', 0);
  std::ofstream(version('a') / "new.1") << "old";
  std::ofstream(version('a') / "new.2") << "arrives now";
  set_age(version('a') / "new.1", 25);
  remove_old('a');
  EXPECT_FALSE(fs::exists(version('a') / "new.1"));
  EXPECT_TRUE(fs::exists(version('a') / "new.2"));
}

TEST_F(Versions, AProgramElsewhereRemovesNothing) {
  add('a', 3);
  add('b', 2);
  add('c', 1);
  fs::create_directories(folder / "build");
  fs::copy(version('a') / "remote-agent", folder / "build/remote-agent");
  remove_old_versions(folder / "build/remote-agent", folder / "proc");
  for (const char digit : {'a', 'b', 'c'}) {
    EXPECT_TRUE(fs::exists(version(digit)));
  }
}

}  // namespace
}  // namespace remote::agent
