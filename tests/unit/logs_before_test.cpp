#include "project/logs_before.hpp"

#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "base/files.hpp"

namespace remote::project {
namespace {

namespace fs = std::filesystem;

TEST(LogsBefore, AFailedCopyIsRemovedAndEarlierOnesStay) {
  const TempFolder folder;
  const jobs::Store store(folder.path() / "jobs");
  const JobId old = JobId::random();
  const JobId fresh = JobId::random();
  fs::create_directories(store.job_folder(old));
  std::ofstream(store.job_folder(old) / "job.out") << "12345";
  const LogsBefore before(store, {old, fresh});
  std::ofstream(store.job_folder(old) / "job.out", std::ios::app) << "678";
  std::ofstream(store.job_folder(old) / "job.err") << "half";
  fs::create_directories(store.job_folder(fresh));
  std::ofstream(store.job_folder(fresh) / "job.out") << "half";
  EXPECT_EQ(before.count_missing(old, 7, 3), 5U);
  EXPECT_EQ(before.count_missing(old, 4, 0), 0U) << "it was replaced by a shorter one";
  EXPECT_EQ(before.count_missing(fresh, 7, 3), 10U);
  before.restore();
  EXPECT_EQ(read_file_if_there(store.job_folder(old) / "job.out"), "12345");
  EXPECT_FALSE(fs::exists(store.job_folder(old) / "job.err"));
  EXPECT_FALSE(fs::exists(store.job_folder(fresh)));
}

TEST(FreeSpace, IsReservedOnce) {
  FreeSpace space(100);
  EXPECT_TRUE(space.reserve(60));
  EXPECT_FALSE(space.reserve(41));
  EXPECT_EQ(space.left(), 40U);
  EXPECT_TRUE(space.reserve(40));
  EXPECT_TRUE(space.reserve(0));
  EXPECT_TRUE(FreeSpace("/no such folder").reserve(std::uintmax_t{1} << 62U));
  EXPECT_FALSE(FreeSpace("/").reserve(std::uintmax_t{1} << 62U));
}

}  // namespace
}  // namespace remote::project
