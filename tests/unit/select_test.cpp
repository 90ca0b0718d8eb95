#include "jobs/select.hpp"

#include <gtest/gtest.h>

#include "cli/context.hpp"
#include "support/instants.hpp"

namespace remote::jobs {
namespace {

Job job(int key, JobState state, std::vector<std::string> tags, std::string id_start = "") {
  Job made;
  made.key = key;
  made.id = *JobId::parse(id_start + std::string(32 - id_start.size(), static_cast<char>('a' + key % 6)));
  made.state = state;
  made.tags = std::move(tags);
  made.created_at = instant(1000 + key);
  return made;
}

const std::vector<Job> some{
    job(1, JobState::succeeded, {"mnist.py", "master"}, "1234abcd"),
    job(2, JobState::failed, {"mnist.py"}, "1234abce"),
    job(5, JobState::running, {"train.py", "master"}),
    job(6, JobState::running, {"train.py"}),
    job(9, JobState::running, {"other"}),
};

std::vector<int> keys(const std::vector<Job>& jobs) {
  std::vector<int> found;
  for (const Job& one : jobs) {
    found.push_back(one.key);
  }
  return found;
}

using Keys = std::vector<int>;

template <typename Call>
Error error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error("", "");
}

TEST(Select, EverythingWithoutASelection) {
  EXPECT_EQ(keys(select(some, {})), (Keys{1, 2, 5, 6, 9}));
}

TEST(Select, NamesAreKeysOrStartsOfIds) {
  EXPECT_EQ(keys(select(some, {.names = {"9", "1", "1"}})), (Keys{1, 9}));
  EXPECT_EQ(keys(select(some, {.names = {"1234abcd"}})), Keys{1});
  EXPECT_EQ(keys(select(some, {.names = {some[2].id.text()}})), Keys{5});
  for (const char* bad : {"1234", "7", "123", "", "0", "-1", "x", "99999999999999999999"}) {
    EXPECT_EQ(error_of([&] { select(some, {.names = {bad}}); }).kind(), ErrorKind::usage) << bad;
  }
}

TEST(Select, ALaunchIsNamedByAnyOfItsJobs) {
  auto jobs = some;
  const JobId first = *JobId::parse(std::string(32, 'e'));
  const JobId second = *JobId::parse("eeee" + std::string(28, 'f'));
  jobs[0].launch = jobs[1].launch = first;
  jobs[2].launch = jobs[3].launch = second;
  for (const char* name : {"1", "2", "1234abcd", "eeeee", "1-2"}) {
    EXPECT_EQ(keys(select(jobs, {.launches = {name}})), (Keys{1, 2})) << name;
  }
  EXPECT_EQ(keys(select(jobs, {.launches = {"last"}})), (Keys{5, 6}));
  EXPECT_EQ(keys(select(jobs, {.launches = {"last"}, .tags = {"mnist.py"}})), (Keys{1, 2}));
  EXPECT_EQ(keys(select(jobs, {.names = {"9"}, .launches = {"2"}})), (Keys{1, 2, 9}));
  EXPECT_EQ(keys(select(jobs, {.launches = {"5", "6"}, .tags = {"master"}})), Keys{5});
  EXPECT_EQ(error_of([&] { select(jobs, {.launches = {"9"}}); }).message(),
            "no launch '9': job 9 is not part of a launch");
  for (const char* bad : {"7", "eeee", "2-5", "x", "", "-1", "1-", "last-"}) {
    EXPECT_EQ(error_of([&] { select(jobs, {.launches = {bad}}); }).kind(), ErrorKind::usage) << bad;
  }
  jobs[2].hidden = jobs[3].hidden = true;
  EXPECT_EQ(keys(select(jobs, {.launches = {"last"}, .hidden = false})), (Keys{1, 2}));
  EXPECT_EQ(keys(select(jobs, {.launches = {"5"}, .hidden = false})), (Keys{5, 6}));
  EXPECT_EQ(error_of([] { select(some, {.launches = {"last"}}); }).reason(), "there are no launches");
}

TEST(Select, AllTagsMustFit) {
  EXPECT_EQ(keys(select(some, {.tags = {"train.py"}})), (Keys{5, 6}));
  EXPECT_EQ(keys(select(some, {.tags = {"train.py", "master"}})), Keys{5});
  EXPECT_EQ(keys(select(some, {.tags = {"train.py", "nobody"}})), Keys{});
  EXPECT_EQ(keys(select(some, {.names = {"1", "5"}, .tags = {"train.py"}})), Keys{5});
}

TEST(Select, HiddenJobsCountWhenNamed) {
  auto jobs = some;
  jobs[4].hidden = true;
  EXPECT_EQ(keys(select(jobs, {.hidden = false})), (Keys{1, 2, 5, 6}));
  EXPECT_EQ(keys(select(jobs, {.names = {"9"}, .hidden = false})), Keys{9});
}

TEST(Select, SaysWhatComesNear) {
  const Error unknown = error_of([] { select(some, {.names = {"7"}}); });
  EXPECT_EQ(unknown.kind(), ErrorKind::usage);
  EXPECT_EQ(unknown.message(), "no job '7': no job has this key or an id that begins with it");
  EXPECT_EQ(cli::hint_of(unknown), "the nearest keys are 1, 2, 5, 6, 9; see: remote job-list");
  const Error several = error_of([] { select(some, {.names = {"1234"}}); });
  EXPECT_NE(several.reason().find("1 (id 1234abcd…), 2 (id 1234abce…)"), std::string::npos);
  EXPECT_NE(error_of([] { select(some, {.names = {"mnist"}}); }).reason().find("by its key"),
            std::string::npos);
  EXPECT_NE(error_of([] { select(some, {.names = {"abc"}}); }).reason().find("4 digits"), std::string::npos);
  EXPECT_NE(error_of([] { select({}, {.names = {"1"}}); }).reason().find("no jobs"), std::string::npos);
}

TEST(Select, NearestOfManyKeys) {
  std::vector<Job> many;
  for (int key = 1; key <= 50; ++key) {
    many.push_back(job(key, JobState::running, {}));
  }
  EXPECT_EQ(cli::hint_of(error_of([&] { select(many, {.names = {"99"}}); })),
            "the nearest keys are 46, 47, 48, 49, 50; see: remote job-list");
}

TEST(Select, NothingSelectedNamesTheTag) {
  const Error typo = nothing_selected(some, {.tags = {"mnst.py"}});
  EXPECT_EQ(typo.message(), "no job to act on: no job has the tag 'mnst.py'");
  EXPECT_EQ(cli::hint_of(typo), "did you mean 'mnist.py'?");
  EXPECT_EQ(nothing_selected(some, {.tags = {"other", "master"}}).reason(),
            "no job has the tags other, master");
  EXPECT_EQ(nothing_selected({}, {}).reason(), "there are no jobs");
  EXPECT_EQ(cli::hint_of(nothing_selected({}, {})), "start one: remote job-run --cmd … --server …");
}

TEST(Select, FollowsTheNewestRunningMaster) {
  EXPECT_EQ(default_to_follow(some).key, 5);
  auto jobs = some;
  jobs.push_back(job(10, JobState::running, {"train.py", "master"}));
  jobs.push_back(job(11, JobState::starting, {"train.py", "master"}));
  EXPECT_EQ(default_to_follow(jobs).key, 10);
  jobs[2].state = jobs[5].state = JobState::failed;
  EXPECT_EQ(default_to_follow(jobs).key, 11);
  jobs[6].state = JobState::killed;
  const Error none = error_of([&] { default_to_follow(jobs); });
  EXPECT_EQ(none.kind(), ErrorKind::usage);
  EXPECT_EQ(none.reason(), "no running job is tagged master; running: 6, 9");
  EXPECT_EQ(cli::hint_of(none), "the newest is job 9; follow it with: remote job-tail --job 9");
  std::erase_if(jobs, [](const Job& one) { return one.state == JobState::running; });
  EXPECT_EQ(cli::hint_of(error_of([&] { default_to_follow(jobs); })),
            "the last one tagged master was job 11 (killed); follow it with: remote job-tail --job 11");
  EXPECT_EQ(error_of([] { default_to_follow({}); }).reason(), "no job is running");
  EXPECT_EQ(default_to_follow(some, {"train.py"}).key, 5);
  EXPECT_THROW(default_to_follow(some, {"nobody's"}), Error);
}

TEST(Select, FollowsTheNewestRunningJobWithATag) {
  auto jobs = some;
  jobs.push_back(job(20, JobState::running, {"mine"}));
  jobs.push_back(job(21, JobState::failed, {"mine"}));
  EXPECT_EQ(default_to_follow(jobs, {"mine"}).key, 20);
  jobs.push_back(job(22, JobState::running, {"mine", "master"}));
  jobs.push_back(job(23, JobState::running, {"mine"}));
  EXPECT_EQ(default_to_follow(jobs, {"mine"}).key, 22) << "rank 0 of a launch, before its other ranks";
}

}  // namespace
}  // namespace remote::jobs
