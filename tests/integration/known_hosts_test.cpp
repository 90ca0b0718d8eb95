#include <gtest/gtest.h>

#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "ssh/host_keys.hpp"

namespace remote::ssh {
namespace {

TEST(KnownHostsFile, HashedNamesAsSshKeygenMakesThem) {
  const TempFolder folder;
  const auto file = folder.path() / "known_hosts";
  const std::string key = "AAAAC3NzaC1lZDI1NTE5AAAAIIS+5HCcW59PRmZ7P8bJzXaxxx/pB1tCHfCsOdGNxVyQ";
  write_file_atomic(file, "one.example ssh-ed25519 " + key + "\n[two]:99 ssh-ed25519 " + key + "\n");
  SubprocessSpec spec;
  spec.argv = {"ssh-keygen", "-H", "-f", file.string()};
  if (!find_program("ssh-keygen") || !run_subprocess(std::move(spec)).status.success()) {
    GTEST_SKIP() << "no ssh-keygen";
  }
  const std::string text = read_file(file);
  ASSERT_TRUE(text.starts_with("|1|"));
  EXPECT_EQ(find_known_keys(text, "one.example", file).size(), 1U);
  EXPECT_EQ(find_known_keys(text, "[two]:99", file).size(), 1U);
  EXPECT_TRUE(find_known_keys(text, "two", file).empty());
  EXPECT_EQ(find_known_keys(hashed_name("x") + " ssh-ed25519 K\n", "x", file).size(), 1U);
}

}  // namespace
}  // namespace remote::ssh
