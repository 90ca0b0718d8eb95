#include "agent/job/second_place.hpp"

#include <cstdio>
#include <fstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "agent/local_jobs.hpp"
#include "agent/started.hpp"

namespace remote::agent {
namespace {

class SecondPlace : public testing::Test, protected test::LocalJobs {
 protected:
  const std::string id = new_id();
  const std::string name = id + ".journal.jsonl";
};

TEST_F(SecondPlace, KeepsWhatIsWritten) {
  EXPECT_EQ(read_second_journal(host(), id), "");
  EXPECT_TRUE(append_to_second_journal(host(), id, "a\n"));
  EXPECT_EQ(read_second_journal(host(), id), "a\n");
  EXPECT_TRUE(append_to_second_journal(host(), id, "b\nc\n"));
  EXPECT_EQ(read_second_journal(host(), id), "a\nb\nc\n");
  struct stat info {};
  ASSERT_EQ(::stat(second_place().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0700U);
  ASSERT_EQ(::stat((second_place() / name).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0600U);
  EXPECT_EQ(record(make({})).end, std::nullopt);
  fs::create_directories(folder(id));
  put_second(name, "{\"kind\":\"en");
  EXPECT_TRUE(append_to_second_journal(host(), id, test::format_end("exit 3 1700000000123 supervisor")));
  EXPECT_EQ(record(id).end->how, wire::ProcessEnd::exited(3)) << "after an incomplete line";
}

TEST_F(SecondPlace, PartsInSeveralPlacesCount) {
  put_second(name, "a");
  const fs::path next = path() / "the root/tmp" / second_place().filename();
  test::HostFolder::put(next / name, "b\n");
  fs::permissions(next, fs::perms::owner_all);
  EXPECT_EQ(read_second_journal(host(), id), "a\nb\n");
}

TEST_F(SecondPlace, IsRemovedWithTheLastFile) {
  append_to_second_journal(host(), id, "x\n");
  const std::string other = new_id();
  append_to_second_journal(host(), other, "x\n");
  remove_second_journal(host(), id);
  EXPECT_EQ(read_second_journal(host(), id), "");
  EXPECT_NE(read_second_journal(host(), other), "");
  remove_second_journal(host(), other);
  EXPECT_FALSE(fs::exists(second_place()));
}

TEST_F(SecondPlace, IsInTheNextFolderIfTheFirstTakesNone) {
  fs::remove_all(second_place().parent_path());
  EXPECT_TRUE(append_to_second_journal(host(), id, "x\n"));
  EXPECT_TRUE(fs::exists(path() / "the root/tmp" / second_place().filename() / name));
  EXPECT_EQ(read_second_journal(host(), id), "x\n");
}

TEST_F(SecondPlace, OfOthersIsPassedBy) {
  // a link
  const fs::path elsewhere = path() / "elsewhere";
  fs::create_directories(elsewhere);
  fs::permissions(elsewhere, fs::perms::owner_all);
  test::HostFolder::put(elsewhere / name, "exit 0\n");
  fs::create_directory_symlink(elsewhere, second_place());
  EXPECT_EQ(read_second_journal(host(), id), "");
  EXPECT_TRUE(append_to_second_journal(host(), id, "exit 4\n"));
  EXPECT_EQ(read_file(elsewhere / name), "exit 0\n");
  EXPECT_EQ(read_second_journal(host(), id), "exit 4\n");
  remove_second_journal(host(), id);
  EXPECT_EQ(read_file(elsewhere / name), "exit 0\n");
  fs::remove(second_place());
  // a folder that others may enter
  put_second(name, "exit 0\n");
  fs::permissions(second_place(), fs::perms::owner_all | fs::perms::group_read);
  EXPECT_EQ(read_second_journal(host(), id), "");
  fs::permissions(second_place(), fs::perms::owner_all);
  EXPECT_NE(read_second_journal(host(), id), "");
  if (::geteuid() == 0) {
    ASSERT_EQ(::lchown((second_place() / name).c_str(), 65534, 65534), 0);
    EXPECT_EQ(read_second_journal(host(), id), "") << "another user's file";
    ASSERT_EQ(::lchown((second_place() / name).c_str(), 0, 0), 0);
    ASSERT_EQ(::lchown(second_place().c_str(), 65534, 65534), 0);
    EXPECT_EQ(read_second_journal(host(), id), "") << "another user's folder";
  }
}

TEST_F(SecondPlace, OddFilesAreNotRead) {
  put_second("x", "");
  ASSERT_EQ(::mkfifo((second_place() / name).c_str(), 0600), 0);
  EXPECT_EQ(read_second_journal(host(), id), "");
  fs::remove(second_place() / name);
  fs::create_symlink("x", second_place() / name);
  EXPECT_EQ(read_second_journal(host(), id), "");
}

// Another user keeps replacing its folder with a link to ours and back, and does the same with a file in it.
TEST_F(SecondPlace, CannotBeForgedBetweenTwoChecks) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root, to be another user";
  }
  const fs::path ours = path() / "ours";
  test::HostFolder::put(ours / "file", "");
  fs::permissions(ours, fs::perms::owner_all);
  const fs::path place = second_place();
  const fs::path aside = place.string() + ".aside";
  for (fs::path open = place.parent_path(); open != fs::temp_directory_path(); open = open.parent_path()) {
    fs::permissions(open, fs::perms(0755));
  }
  for (const fs::path& folder : {place, aside}) {
    fs::create_directories(folder);
  }
  std::ofstream(place / name) << test::format_end("exit 0 1700000000000 supervisor");
  fs::create_symlink(ours / "file", aside / "file");
  fs::create_symlink(ours, aside / "link");
  fs::permissions(place.parent_path(), fs::perms(01777));
  for (const fs::path& one : {place, aside, place / name, aside / "file", aside / "link"}) {
    ASSERT_EQ(::lchown(one.c_str(), 65534, 65534), 0);
  }
  const auto exchange = [](const fs::path& one, const fs::path& other) {
    return test::Started([=] {
      test::become(65534);
      for (;;) {
        ::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE);
      }
    });
  };
  const test::Started folders = exchange(place, aside / "link");
  const test::Started files = exchange(place / name, aside / "file");
  for (int i = 0; i < 15000; ++i) {
    ASSERT_EQ(read_second_journal(host(), id), "") << "forged in try " << i;
  }
}

}  // namespace
}  // namespace remote::agent
