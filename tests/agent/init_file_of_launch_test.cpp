#include <gtest/gtest.h>
#include <sys/stat.h>

#include "agent/job/init_file.hpp"
#include "agent/local_jobs.hpp"

namespace remote::agent {
namespace {

class InitFileOfLaunch : public testing::Test, protected test::LocalJobs {
 protected:
  InitFileOfLaunch() { fs::create_directories(disk); }

  void make_shared() const {
    test::HostFolder::put(shared / "launch", launch + "\n");
    test::HostFolder::put(shared / "store", "");
  }
  std::string make_job(int count) {
    return make({{"init_file", std::to_string(count) + "\n" + shared.string() + "\n"}});
  }
  void leave(const std::string& id) { leave_init_file(folder(id), id); }

  const std::string launch = new_id();
  const fs::path disk = path() / "a disk";
  const fs::path shared = disk / (".remote-init-" + launch);
};

TEST_F(InitFileOfLaunch, IsRemovedByTheLastJob) {
  make_shared();
  test::HostFolder::put(shared / "store.2", "");
  const std::string first = make_job(2);
  const std::string second = make_job(2);
  leave(first);
  leave(first);
  EXPECT_TRUE(fs::exists(shared / ("ended." + first)));
  EXPECT_TRUE(fs::exists(shared / "store")) << "the second one may still need it";
  leave(second);
  EXPECT_FALSE(fs::exists(shared));
  leave(second);
  EXPECT_TRUE(fs::exists(disk));
}

TEST_F(InitFileOfLaunch, IsRemovedAtTheEndOfTheLaunch) {
  make_shared();
  const std::string first = make_job(2);
  leave(first);
  ASSERT_TRUE(fs::exists(shared / "store")) << "the other job has not ended";
  remove_init_file(folder(first));
  EXPECT_FALSE(fs::exists(shared));
  EXPECT_TRUE(fs::exists(disk));
  remove_init_file(folder(first));
  remove_init_file(folder(make({})));
  make_shared();
  test::HostFolder::put(shared / "launch", new_id() + "\n");
  remove_init_file(folder(first));
  EXPECT_TRUE(fs::exists(shared / "store")) << "it belongs to another launch";
}

TEST_F(InitFileOfLaunch, AJobWithoutOneHasNothingToLeave) {
  leave(make({}));
  leave(make({{"init_file", ""}}));
  leave(make({{"init_file", "1\n"}}));
  leave(make({{"init_file", "1\n" + shared.string()}}));
  leave(make({{"init_file", "x\n" + shared.string() + "\n"}}));
  leave(make({{"init_file", "1\nrelative/.remote-init-" + launch + "\n"}}));
  const std::string odd = make({});
  ASSERT_EQ(::mkfifo((folder(odd) / "init_file").c_str(), 0600), 0);
  leave(odd);
}

TEST_F(InitFileOfLaunch, NothingElseIsRemoved) {
  make_shared();
  const fs::path own = disk / "mine";
  test::HostFolder::put(own / "store", "data");
  // A link has replaced the folder.
  fs::rename(shared, disk / "elsewhere");
  fs::create_directory_symlink(own, shared);
  leave(make_job(1));
  EXPECT_EQ(read_file(own / "store"), "data");
  // Other files are kept, and so is the folder.
  fs::remove(shared);
  fs::rename(disk / "elsewhere", shared);
  test::HostFolder::put(shared / "notes", "mine");
  leave(make_job(1));
  EXPECT_FALSE(fs::exists(shared / "store"));
  EXPECT_EQ(read_file(shared / "notes"), "mine");
}

TEST_F(InitFileOfLaunch, OfAnotherLaunchIsLeftAlone) {
  make_shared();
  test::HostFolder::put(shared / "launch", new_id() + "\n");
  leave(make_job(1));
  EXPECT_TRUE(fs::exists(shared / "store"));
  test::HostFolder::put(shared / "launch", "");
  leave(make_job(1));
  EXPECT_TRUE(fs::exists(shared / "store"));
}

TEST_F(InitFileOfLaunch, NoLinkInAFolderOfAnotherUserIsFollowed) {
  make_shared();
  const fs::path precious = disk / "precious";
  test::HostFolder::put(precious, "data");
  const std::string id = make_job(2);
  fs::create_symlink(precious, shared / ("ended." + id));
  leave(id);
  EXPECT_EQ(read_file(precious), "data");
  fs::remove(shared / "launch");
  test::HostFolder::put(disk / "id", launch + "\n");
  fs::create_symlink(disk / "id", shared / "launch");
  leave(make_job(1));
  EXPECT_TRUE(fs::exists(shared / "store")) << "a link is no proof";
}

TEST_F(InitFileOfLaunch, AFolderOfAnotherUserIsNotTouched) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root, to be another user";
  }
  make_shared();
  const std::string id = make_job(1);
  test::call_as_nobody(path(), [] { return 0; });
  ASSERT_EQ(::chown(shared.c_str(), 65533, 65533), 0);
  fs::permissions(shared, fs::perms::all);
  test::Started child([&] {
    test::become(65534);
    leave(id);
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_TRUE(fs::exists(shared / "store"));
}

TEST_F(InitFileOfLaunch, AFifoDelaysNothing) {
  fs::create_directories(shared);
  ASSERT_EQ(::mkfifo((shared / "launch").c_str(), 0600), 0);
  leave(make_job(1));
  EXPECT_TRUE(fs::exists(shared / "launch"));
}

}  // namespace
}  // namespace remote::agent
