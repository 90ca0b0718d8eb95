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
  before.restore();
  EXPECT_EQ(read_file_if_there(store.job_folder(old) / "job.out"), "12345");
  EXPECT_FALSE(fs::exists(store.job_folder(old) / "job.err"));
  EXPECT_FALSE(fs::exists(store.job_folder(fresh)));
}

}  // namespace
}  // namespace remote::project
