#include "agent/job/init_file_check.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/fake_host.hpp"
#include "agent/host/files.hpp"

// The shared file of a launch that has not started.

namespace remote::agent {
namespace {

using ::testing::HasSubstr;
using wire::InitFileStep;

class InitFileChecks : public ::testing::Test {
 protected:
  InitFileChecks() { fs::create_directories(disk); }

  wire::InitFileReply ask(InitFileStep step, const std::string& folder) const {
    return check_init_file(fake.host, {step, folder, id, "gpu1"});
  }
  wire::InitFileReply ask(InitFileStep step) const { return ask(step, disk); }
  std::string content(const fs::path& path) const { return read_file(path).value_or("(none)"); }

  const std::string id = "0123456789abcdef0123456789abcdef";
  test::FakeHost fake;
  const fs::path disk = fake.folder() / "a disk";
  const fs::path shared = disk / (".remote-init-" + id);
};

TEST_F(InitFileChecks, IsSeenByAllAndRemovedAgain) {
  EXPECT_EQ(ask(InitFileStep::make).folder, shared.string());
  EXPECT_EQ(content(shared / "launch"), id + "\n");
  struct stat info {};
  ASSERT_EQ(::stat(shared.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
  EXPECT_EQ(ask(InitFileStep::see).folder, shared.string());
  EXPECT_EQ(ask(InitFileStep::see).failure, "");
  const wire::InitFileReply again = ask(InitFileStep::make);
  EXPECT_EQ(again.failure, "cannot write in " + disk.string() + ": File exists");
  EXPECT_EQ(again.folder, "");
  const wire::InitFileReply dropped = ask(InitFileStep::drop);
  EXPECT_EQ(dropped.folder + dropped.failure, "");
  EXPECT_FALSE(fs::exists(shared));
  EXPECT_TRUE(fs::exists(disk));
}

TEST_F(InitFileChecks, AFolderInTheHomeIsExpanded) {
  EXPECT_EQ(ask(InitFileStep::make, "~").folder, (fake.home() / shared.filename()).string());
  EXPECT_EQ(ask(InitFileStep::make_all, "~/a/b").folder, (fake.home() / "a/b" / shared.filename()).string());
}

TEST_F(InitFileChecks, NamesTheFolderThatIsMissing) {
  const std::string other = (disk / "sub/other").string();
  EXPECT_EQ(ask(InitFileStep::make, other).failure, "there is no folder " + other);
  EXPECT_EQ(ask(InitFileStep::see, other).failure, "there is no folder " + other);
  EXPECT_FALSE(fs::exists(other));
  EXPECT_EQ(ask(InitFileStep::make_all, other).failure, "");
  EXPECT_TRUE(fs::exists(other));
  fake.put(disk / "file", "");
  EXPECT_THAT(ask(InitFileStep::make_all, disk / "file/x").failure,
              HasSubstr("cannot create " + (disk / "file/x").string()));
}

TEST_F(InitFileChecks, AnotherFolderOfTheSameNameIsNoticed) {
  EXPECT_EQ(ask(InitFileStep::see).failure,
            disk.string() +
                " is not the same folder as on gpu1: what gpu1 wrote there is not "
                "visible");
}

TEST_F(InitFileChecks, WhatWasWrittenMustBeRead) {
  ask(InitFileStep::make);
  fake.put(shared / "launch", "1" + id.substr(1) + "\n");
  EXPECT_EQ(ask(InitFileStep::see).failure,
            "a file in " + disk.string() + " differs from the one that was written there");
  fs::remove(shared / "launch");
  const std::string unreadable = "cannot read in " + disk.string() + " the file that was written there";
  EXPECT_EQ(ask(InitFileStep::see).failure, unreadable);
  ASSERT_EQ(::mkfifo((shared / "launch").c_str(), 0600), 0);
  EXPECT_EQ(ask(InitFileStep::see).failure, unreadable) << "a FIFO delays nothing";
}

TEST_F(InitFileChecks, NoLinkInAFolderOfAnotherUserIsFollowed) {
  fake.put(disk / "mine/launch", id + "\n");
  fs::create_directory_symlink(disk / "mine", shared);
  EXPECT_THAT(ask(InitFileStep::see).failure, HasSubstr("does another user log in here?"));
  fs::remove(shared);
  fs::create_directory(shared);
  fs::create_symlink(disk / "mine/launch", shared / "launch");
  EXPECT_THAT(ask(InitFileStep::see).failure, HasSubstr("cannot read in "));
  EXPECT_EQ(content(disk / "mine/launch"), id + "\n");
}

TEST_F(InitFileChecks, ItMustBePossibleToLockTheFile) {
  fake.put_program(fake.programs() / "flock", "[ \"$*\" = '-x 0' ] && read -r id && [ ${#id} = 32 ]");
  EXPECT_EQ(ask(InitFileStep::make).failure, "") << "the file is its stdin";
  fake.put_program(fake.programs() / "flock", "exit 1");
  EXPECT_EQ(ask(InitFileStep::see).failure, disk.string() + " has no file locks (flock), which torch needs");
  fake.host.environment["PATH"] = (fake.folder() / "nothing").string();
  EXPECT_EQ(ask(InitFileStep::see).failure, "") << "without flock(1) it is not tried";
}

TEST_F(InitFileChecks, NothingElseIsRemoved) {
  ask(InitFileStep::make);
  fake.put(disk / "mine/store", "data");
  fs::rename(shared, disk / "elsewhere");
  fs::create_directory_symlink(disk / "mine", shared);
  ask(InitFileStep::drop);
  EXPECT_EQ(content(disk / "mine/store"), "data");
  fs::remove(shared);
  fs::rename(disk / "elsewhere", shared);
  fake.put(shared / "store", "");
  fake.put(shared / "notes", "mine");
  ask(InitFileStep::drop);
  EXPECT_FALSE(fs::exists(shared / "store"));
  EXPECT_EQ(content(shared / "notes"), "mine");
  ask(InitFileStep::drop, disk / "nothing");
}

}  // namespace
}  // namespace remote::agent
