#include "jobs/store.hpp"

#include <algorithm>

#include <gtest/gtest.h>
#include <remote/error.hpp>

#include "jobs/select.hpp"
#include "support/instants.hpp"
#include "support/store_test.hpp"

namespace remote::jobs {
namespace {

TEST_F(StoreTest, NoFolderHasNoJobsAndIsNotMade) {
  EXPECT_TRUE(store_.list().jobs.empty());
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(StoreTest, GivesKeysInOrderAndKeepsEverything) {
  auto jobs = make_jobs(3);
  jobs[1].command = "python 'a b.py' \"$X\" \\ \t tab\nline é 日本";
  jobs[1].tags = {"a b", "", "tab\there", "line\nbreak", "back\\slash"};
  jobs[2].launch = JobId::random();
  jobs[2].rank = 0;
  jobs[2].world_size = 4;
  jobs[2].hidden = true;
  jobs[2].failed_at = exact_instant(1700000001042);
  jobs[2].remote_folder = {"/a b/c\t", "jobs"};
  store_.add(jobs);
  EXPECT_EQ(jobs[0].key, 1);
  EXPECT_EQ(jobs[2].key, 3);
  EXPECT_EQ(store_.list().jobs, jobs);  // from the index
  fs::remove(folder_ / "index");
  EXPECT_EQ(store_.list().jobs, jobs);  // from the records
  EXPECT_TRUE(fs::exists(folder_ / "index")) << "the listing brings the index back";
  EXPECT_EQ(store_.list().jobs, jobs);
}

TEST_F(StoreTest, BytesThatAreNoUtf8AreListedTheSameFromIndexAndRecord) {
  auto jobs = make_jobs(1);
  jobs[0].command = "echo \xff\xfe";
  store_.add(jobs);
  EXPECT_EQ(store_.list().jobs, jobs);
  fs::remove(folder_ / "index");
  EXPECT_EQ(store_.list().jobs, jobs);
}

TEST_F(StoreTest, KeysAreNotUsedTwiceAlsoAfterRemovingAll) {
  auto jobs = make_jobs(3);
  store_.add(jobs);
  store_.remove({jobs[1].id, jobs[2].id, JobId::random()});
  EXPECT_EQ(keys(), std::vector<int>{1});
  EXPECT_FALSE(fs::exists(store_.job_folder(jobs[1].id)));
  store_.remove({jobs[0].id});
  fs::remove(folder_ / "index");
  EXPECT_EQ(next_key(), 4);
}

TEST_F(StoreTest, LostMarkIsMadeUpFor) {
  auto jobs = make_jobs(3);
  store_.add(jobs);
  write_text(folder_ / "last_key", "garbage");
  EXPECT_EQ(next_key(), 4);
}

TEST_F(StoreTest, RefusesIdsThatAreThere) {
  auto jobs = make_jobs(2);
  jobs[1].id = jobs[0].id;
  EXPECT_THROW(store_.add(jobs), Error);
  EXPECT_TRUE(store_.list().jobs.empty());
}

TEST_F(StoreTest, UpdateKeepsFinalStatesAndForgetsRemovedJobs) {
  auto jobs = make_jobs(2);
  store_.add(jobs);
  Job job = jobs[0];
  job.state = JobState::failed;
  job.result = ExitStatus::exited(3);
  job.checked_at = instant(1700000010);
  store_.update({job});
  EXPECT_EQ(store_.list().jobs[0], job);
  EXPECT_EQ(store_.list({.unfinished_only = true}).jobs.size(), 1U);
  Job late = jobs[0];
  late.state = JobState::running;
  late.checked_at = instant(1700000020);
  store_.update({late});
  EXPECT_EQ(store_.list().jobs.at(0).state, JobState::failed);
  EXPECT_EQ(store_.list().jobs.at(0).result, ExitStatus::exited(3));
  store_.remove({jobs[0].id});
  store_.update({job});
  EXPECT_EQ(keys(), std::vector<int>{2});
}

// Launches with two jobs each: 2i and 2i+1. Each launch ends ten seconds after the previous one.
TEST_F(StoreTest, OfWhatIsOverOnlyTheLaunchesThatEndedLast) {
  auto jobs = make_jobs(12);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].launch = i % 2 == 0 ? JobId::random() : *jobs[i - 1].launch;
    jobs[i].state = JobState::succeeded;
    jobs[i].result = ExitStatus::exited(0);
    jobs[i].ended_at = instant(1700000000 + static_cast<int>(i / 2 * 10) - (i % 2 == 0 ? 1000 : 0));
  }
  jobs[3].state = JobState::running;  // the launch of 2 and 3 is still running
  jobs[3].result.reset();
  jobs[3].ended_at.reset();
  jobs[4].hidden = jobs[5].hidden = true;
  store_.add(jobs);
  const auto listed = [&](std::int64_t since, std::size_t most, bool hidden = true) {
    std::size_t earlier = 99;
    std::string text;
    for (const Job& job :
         store_.list({.lately = EndedLately{instant(1700000000 + since), most, &earlier}, .hidden = hidden})
             .jobs) {
      text += std::to_string(job.key) + " ";
    }
    return text + "and " + std::to_string(earlier);
  };
  EXPECT_EQ(listed(-9999, 99), "1 2 3 4 5 6 7 8 9 10 11 12 and 0");
  EXPECT_EQ(listed(30, 99), "3 4 7 8 9 10 11 12 and 2");
  EXPECT_EQ(listed(30, 2), "3 4 9 10 11 12 and 3");
  EXPECT_EQ(listed(30, 2, false), "3 4 9 10 11 12 and 2");
  EXPECT_EQ(listed(9999, 2), "3 4 and 5");
  fs::remove(folder_ / "index");
  EXPECT_EQ(listed(30, 2), "3 4 9 10 11 12 and 3") << "the listing brings the index back";
  write_text(folder_ / "index", "remote job index 8\ngarbage\n");
  EXPECT_EQ(listed(30, 2), "3 4 9 10 11 12 and 3") << "that of an older build";
}

TEST_F(StoreTest, NewsThatOnlyConfirmAreListedWithoutRewritingTheRecord) {
  auto jobs = make_jobs(1);
  jobs[0].state = JobState::running;
  jobs[0].checked_at = instant(1700000000);
  store_.add(jobs);
  const std::string record = read_file(store_.record_file(jobs[0].id));
  jobs[0].checked_at = instant(1700000050);
  store_.update(jobs);
  EXPECT_EQ(store_.list().jobs.at(0).checked_at, instant(1700000050));
  EXPECT_EQ(read_file(store_.record_file(jobs[0].id)), record);
  jobs[0].checked_at = instant(1700000060);  // a minute old: the record is updated
  store_.update(jobs);
  EXPECT_NE(read_file(store_.record_file(jobs[0].id)), record);
  fs::remove(folder_ / "index");
  EXPECT_EQ(store_.list().jobs.at(0).checked_at, instant(1700000060));
}

TEST_F(StoreTest, DamagedRecordsAreNamedAndTheOthersStayUsable) {
  auto jobs = make_jobs(10);
  store_.add(jobs);
  const std::string good = read_file(store_.record_file(jobs[0].id));
  const auto file = [&](std::size_t i) { return store_.record_file(jobs[i].id); };
  write_text(file(0), good.substr(0, good.size() / 2));
  write_text(file(1), "");
  write_text(file(2), "[1, 2]");
  write_text(file(3), good);  // the record of another job
  std::string newer = read_file(file(4));
  newer.replace(newer.find("\"version\": 1"), 12, "\"version\": 9");
  write_text(file(4), newer);
  fs::remove(file(5));
  fs::create_directory(file(5));
  fs::remove(file(6));
  ASSERT_EQ(::mkfifo(file(6).c_str(), 0600), 0);
  std::string typed = read_file(file(7));
  typed.replace(typed.find("\"key\": 8"), 8, "\"key\": \"8\"");
  write_text(file(7), typed);
  std::string moved = read_file(file(8));
  moved.replace(moved.find("/.jobs/"), 7, "/.jobs/x");
  write_text(file(8), moved);

  for (const bool unfinished : {false, true}) {
    const auto listing = store_.list({.unfinished_only = unfinished});
    ASSERT_EQ(listing.jobs.size(), 1U);
    EXPECT_EQ(listing.jobs[0].key, 10);
    ASSERT_EQ(listing.problems.size(), 9U) << join(listing.problems, "\n");
    for (std::size_t i = 0; i < 9; ++i) {
      EXPECT_TRUE(std::any_of(
          listing.problems.begin(), listing.problems.end(),
          [&](const std::string& problem) { return problem.starts_with(file(i).string() + ": "); }))
          << i;
    }
  }
  // The store is still usable: adding works, updating fails for the bad record after the good one was
  // updated, and the bad record can be removed.
  EXPECT_EQ(next_key(), 11);
  Job done = jobs[9];
  done.state = JobState::succeeded;
  done.result = ExitStatus::exited(0);
  Job bad = jobs[0];
  bad.state = JobState::succeeded;
  try {
    store_.update({bad, done});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find(file(0).string()), std::string::npos);
  }
  EXPECT_EQ(select(store_.list().jobs, {.names = {"10"}}).at(0).state, JobState::succeeded);
  store_.remove({jobs[0].id, jobs[5].id});
  EXPECT_EQ(store_.list().problems.size(), 7U);
}

TEST_F(StoreTest, LineAfterATornOneCounts) {
  auto jobs = make_jobs(2);
  store_.add(jobs);
  std::string index = read_file(folder_ / "index");
  write_text(folder_ / "index", index.substr(0, index.size() - 5));
  jobs[0].state = JobState::running;
  jobs[0].checked_at = instant(1700000001);
  store_.update({jobs[0]});
  EXPECT_EQ(store_.list().jobs, jobs);
}

TEST_F(StoreTest, IndexDoesNotGrowForEver) {
  auto jobs = make_jobs(2);
  jobs[0].state = JobState::running;
  store_.add(jobs);
  for (int i = 0; i < 500; ++i) {
    jobs[0].checked_at = instant(1700000000 + i / 20);
    store_.update({jobs[0]});
    store_.list();
  }
  EXPECT_LT(fs::file_size(folder_ / "index"), 40000U);
}

TEST_F(StoreTest, RecordChangedByOthersIsSeen) {
  auto jobs = make_jobs(1);
  store_.add(jobs);
  std::string text = read_file(store_.record_file(jobs[0].id));
  text.replace(text.find("\"server\": \"first\""), 17, "\"server\": \"other\"");
  write_file_atomic(store_.record_file(jobs[0].id), text);
  EXPECT_EQ(store_.list().jobs.at(0).server, "other");
}

TEST_F(StoreTest, CopiedFolderShowsUpAndGetsAFreeKey) {
  auto jobs = make_jobs(2);
  store_.add(jobs);
  Store elsewhere(temp_.path() / "elsewhere");
  auto foreign = make_jobs(8);
  foreign[0].created_at = instant(1);  // older, but the local record keeps its key
  elsewhere.add(foreign);
  for (const std::size_t i : {0U, 7U}) {
    fs::copy(elsewhere.job_folder(foreign[i].id), store_.job_folder(foreign[i].id),
             fs::copy_options::recursive);
  }
  expect_sound();
  EXPECT_EQ(store_.list().jobs.at(0).id, jobs[0].id);
  EXPECT_EQ(store_.list().jobs.at(2).id, foreign[7].id);
  EXPECT_EQ(store_.list().jobs.at(3).id, foreign[0].id);
  EXPECT_EQ(keys(), (std::vector<int>{1, 2, 8, 9}));
  EXPECT_EQ(next_key(), 10);
  store_.remove({foreign[7].id, foreign[0].id, store_.list().jobs.back().id});
  EXPECT_EQ(next_key(), 11);
}

TEST_F(StoreTest, FoldersThatAreNoJobsArePassedBy) {
  auto jobs = make_jobs(1);
  store_.add(jobs);
  fs::create_directories(folder_ / "7");
  write_text(folder_ / "notes.txt", "mine");
  const std::string logs_only = JobId::random().text();
  fs::create_directories(folder_ / logs_only);
  write_text(folder_ / logs_only / "job.out", "text");
  expect_sound();
  auto next = make_jobs(1);
  store_.add(next);
  EXPECT_TRUE(fs::exists(folder_ / logs_only / "job.out"));
  EXPECT_TRUE(fs::exists(folder_ / "notes.txt"));
  fs::create_directories(folder_ / "renamed");
  fs::copy(store_.record_file(jobs[0].id), folder_ / "renamed" / "job.json");
  ASSERT_EQ(store_.list().problems.size(), 1U);
  EXPECT_NE(store_.list().problems[0].find("renamed/job.json"), std::string::npos);
}

TEST_F(StoreTest, StarterIsDeadExactlyWhenItDoesNotHoldItsLock) {
  EXPECT_TRUE(store_.starter_is_dead(launch_));
  {
    const FileLock held = store_.hold_start(launch_);
    EXPECT_FALSE(store_.starter_is_dead(launch_));
    auto jobs = make_jobs(1);
    store_.add(jobs);  // cleans up, but not this file
    EXPECT_FALSE(store_.starter_is_dead(launch_));
    EXPECT_TRUE(store_.starter_is_dead(JobId::random()));
  }
  EXPECT_TRUE(store_.starter_is_dead(launch_));
  auto jobs = make_jobs(1);
  store_.add(jobs);
  EXPECT_TRUE(fs::is_empty(folder_ / "starts"));
}

}  // namespace
}  // namespace remote::jobs
