#pragma once

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/files.hpp"
#include "base/hashing.hpp"
#include "base/strings.hpp"
#include "jobs/store.hpp"
#include "support/instants.hpp"

namespace remote::jobs {
namespace fs = std::filesystem;

inline Job make_job(const std::string& server = "first") {
  Job job;
  job.id = JobId::random();
  job.server = server;
  job.command = "python train.py";
  job.tags = {"train.py", "torch"};
  job.created_at = instant(1700000000);
  job.remote_folder = {"~/project", ".jobs"};
  return job;
}

inline std::vector<Job> make_jobs(std::size_t count) {
  std::vector<Job> jobs;
  for (std::size_t i = 0; i < count; ++i) {
    jobs.push_back(make_job());
  }
  return jobs;
}

inline void write_text(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::trunc) << text;
}

// A store in a temporary folder.
class StoreTest : public ::testing::Test {
 protected:
  TempFolder temp_{"remote-store-"};
  fs::path folder_ = temp_.path() / "jobs";
  Store store_{folder_};
  JobId launch_ = JobId::random();

  void expect_sound() const {
    const auto listing = store_.list();
    EXPECT_TRUE(listing.problems.empty()) << join(listing.problems, "\n");
    std::set<int> keys;
    for (const Job& job : listing.jobs) {
      EXPECT_TRUE(keys.insert(job.key).second) << "key " << job.key << " twice";
    }
  }
  // The key that the next job gets.
  int next_key() {
    auto next = make_jobs(1);
    store_.add(next);
    return next[0].key;
  }
  std::vector<int> keys() const {
    std::vector<int> found;
    for (const Job& job : store_.list().jobs) {
      found.push_back(job.key);
    }
    return found;
  }
};

}  // namespace remote::jobs
