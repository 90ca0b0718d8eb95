#include "jobs/launch_store.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "jobs/job_json.hpp"
#include "jobs/launch_request_json.hpp"
#include "support/instants.hpp"
#include "support/store_test.hpp"

namespace remote::jobs {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class LaunchStoreTest : public StoreTest {
 protected:
  LaunchStore records_{store_};

  static PastLaunch make_record(Instant began = instant(1700000000)) {
    PastLaunch record;
    record.id = JobId::random();
    record.began_at = began;
    record.name = "a\tname\n";
    record.note = "\xff and ü";
    record.tags = {"train.py", "a b"};
    record.command = "python train.py";
    record.variables = {"MODE"};
    record.commit = "abc123";
    record.branch = "trunk";
    record.untracked = 2;
    record.beginning = {
        Launcher::ranks,
        {{"first", {{"os", "Debian"}}, {{"MODE", "fast"}}, std::chrono::duration<double>(0.5)}},
        {{"start", "", exact_instant(1), exact_instant(2)}}};
    record.numbers = {{"loss", 0.1}, {"acc", 1e-30}};
    return record;
  }
  static std::vector<Job> ranks_of(const PastLaunch& record, JobState state) {
    std::vector<Job> jobs = make_jobs(2);
    for (int i = 0; i < 2; ++i) {
      Job& job = jobs[static_cast<std::size_t>(i)];
      job.key = i + 1;
      job.launch = record.id;
      job.rank = i;
      job.state = state;
      job.ended_at = is_final(state) ? std::optional(instant(1700000100)) : std::nullopt;
    }
    return jobs;
  }
  fs::path file(const PastLaunch& record) const {
    return folder_ / "launches" / record.id.text() / "launch.json";
  }
};

TEST_F(LaunchStoreTest, WhatWasAskedForIsReadAgainWithoutItsSecrets) {
  PastLaunch record = make_record();
  LaunchRequest& request = record.request.emplace();
  request.servers = {"gpu*"};
  request.hosts = {{.name = "first", .slots = 3, .gpus = {0, 2}, .without_gpus = true}};
  request.nproc = OnePer::core;
  request.env = {{"MODE", "slow"}, {"API_TOKEN", "hunter2"}, {"MODE", "fast"}};
  request.image = "none";
  request.torchrun = {.rendezvous = RendezvousMethod::c10d, .nodes = NodeRange{1, 2}, .max_restarts = 3};
  request.init_method = InitMethod::file;
  request.restarts = 4;
  request.restart_on = {RestartCause::oom, RestartCause::lost};
  request.min_servers = 1;
  request.lease = {.gpus = 2, .cpus = 3, .memory = std::uint64_t{5} << 30U, .wait = true};
  request.hang_after = std::chrono::seconds(90);
  request.on_hang = OnHang::restart;
  request.no_restart_exit = {2, 3};
  request.python = false;
  request.enable_stacks = false;
  request.lost_after = std::chrono::seconds(7);
  record.secrets = {"API_TOKEN"};
  record.changed = true;
  record.gone = true;
  records_.add(record, "");
  EXPECT_THAT(read_file(file(record)), Not(HasSubstr("hunter2")));
  const auto read = records_.read(record.id);
  ASSERT_TRUE(read && read->request);
  EXPECT_TRUE(read->changed);
  EXPECT_TRUE(read->gone);
  EXPECT_EQ(read->secrets, record.secrets);
  EXPECT_EQ(read->request->command, "python train.py");
  EXPECT_EQ(read->request->launcher, Launcher::ranks);
  EXPECT_EQ(read->request->env, (Env{{"MODE", "slow"}, {"API_TOKEN", ""}, {"MODE", "fast"}}));
  EXPECT_EQ(jobs::to_json(*read->request, record.secrets), jobs::to_json(request, record.secrets));
  EXPECT_EQ(read->request->hosts[0].gpus, request.hosts[0].gpus);
  EXPECT_EQ(read->request->lost_after, request.lost_after);
  EXPECT_EQ(read->request->restart_on, request.restart_on);
  EXPECT_EQ(read->request->hang_after, request.hang_after);
  EXPECT_EQ(read->request->on_hang, OnHang::restart);
  EXPECT_EQ(read->request->no_restart_exit, request.no_restart_exit);
}

TEST_F(LaunchStoreTest, WhatIsWrittenIsReadAndTheListSaysTheSameFromItsIndex) {
  PastLaunch record = make_record();
  records_.add(record, "the patch");
  EXPECT_THAT(records_.open(), ::testing::ElementsAre(record.id));
  records_.change(record.id, [&](PastLaunch& now) {
    now.jobs = ranks_of(record, JobState::failed);
    now.jobs[1].result = ExitStatus::exited(3);
    now.jobs[1].failed_at = exact_instant(1);
    now.ended_at = instant(1700000100);
  });
  const auto read = records_.read(record.id);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->name, record.name);
  EXPECT_EQ(read->numbers, record.numbers);
  EXPECT_EQ(read->beginning.servers[0].facts, record.beginning.servers[0].facts);
  EXPECT_THAT(read_file(file(record)), Not(HasSubstr("fast"))) << "the value of a variable";
  EXPECT_EQ(read_file(read->patch), "the patch");
  const LaunchSummary& summary = *read;
  EXPECT_EQ(summary.state, JobState::failed);
  EXPECT_EQ(summary.first_key, 1);
  EXPECT_EQ(summary.last_key, 2);
  const auto from_index = records_.list();
  ASSERT_THAT(from_index, SizeIs(1));
  EXPECT_EQ(from_index[0].numbers, summary.numbers);
  EXPECT_EQ(from_index[0].result, summary.result);
  fs::remove(folder_ / "launches" / "index");
  EXPECT_EQ(records_.list(), (std::vector<LaunchSummary>{summary}));
  EXPECT_EQ(records_.list(), (std::vector<LaunchSummary>{summary})) << "from the index that was made anew";
}

// The remains of a write that was cut off at any byte: a part of the temporary file, and a part of the line
// in the index.
TEST_F(LaunchStoreTest, AWriteThatIsCutAtAnyByteLeavesWhatWasThere) {
  const PastLaunch record = make_record();
  records_.add(record, "");
  const std::string whole = read_file(file(record));
  const std::string index = read_file(folder_ / "launches" / "index");
  for (std::size_t length = 0; length < index.size(); ++length) {
    write_text(folder_ / "launches" / ".launch.json.0123456789abcdef.tmp", whole.substr(0, length));
    write_text(folder_ / "launches" / "index", index.substr(0, length));
    std::vector<std::string> problems;
    const auto listed = records_.list(&problems);
    ASSERT_THAT(listed, SizeIs(1)) << length;
    EXPECT_EQ(listed[0].numbers, record.numbers);
    EXPECT_THAT(problems, SizeIs(0));
  }
  EXPECT_FALSE(fs::exists(folder_ / "launches" / ".launch.json.0123456789abcdef.tmp"));
}

TEST_F(LaunchStoreTest, WhatCannotBeHadIsAskedForThreeTimes) {
  const PastLaunch record = make_record();
  records_.add(record, "");
  EXPECT_FALSE(records_.tried(record.id));
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(records_.may_try_again(record.id));
    EXPECT_TRUE(records_.tried(record.id));
  }
  EXPECT_FALSE(records_.may_try_again(record.id));
  records_.close(record.id);
  EXPECT_TRUE(records_.open().empty());
}

// An empty list is only returned if the folder could be read.
TEST_F(LaunchStoreTest, AFolderThatCannotBeReadIsNotAnEmptyOne) {
  EXPECT_TRUE(records_.list().empty());
  make_folders(folder_);
  fs::create_directory_symlink("launches", folder_ / "launches");  // open(2) fails, even for root
  EXPECT_THROW(records_.list(), Error);
  EXPECT_THROW(records_.open(), Error);
}

TEST_F(LaunchStoreTest, NothingIsFollowedOrRemovedThatItDidNotMake) {
  const PastLaunch record = make_record();
  records_.add(record, "");
  const fs::path open = folder_ / "launches/open";
  const JobId other = JobId::random();
  write_file_atomic(open / other.text(), "a file of somebody else");
  records_.close(other);
  EXPECT_TRUE(fs::exists(open / other.text()));
  const JobId linked = JobId::random();
  fs::create_directory_symlink(file(record).parent_path(), folder_ / "launches" / linked.text());
  std::vector<std::string> problems;
  EXPECT_THAT(records_.list(&problems), SizeIs(1));
  EXPECT_TRUE(problems.empty());
}

TEST_F(LaunchStoreTest, WhatIsNoRecordIsNamedAndTheOthersAreListed) {
  const PastLaunch good = make_record(instant(1700000001));
  records_.add(good, "");
  auto json = to_json(make_record());
  const std::string texts[] = {"",
                               "[]",
                               "{\"version\": 1}",
                               "{\"version\": 99}",
                               dump_json_line(json),
                               "{\"version\": 1, \"id\": 7}",
                               std::string(100000, '[')};
  for (const std::string& text : texts) {
    const PastLaunch bad = make_record();
    records_.add(bad, "");
    write_text(file(bad), text);
    std::vector<std::string> problems;
    EXPECT_THAT(records_.list(&problems), SizeIs(1)) << text.substr(0, 40);
    ASSERT_THAT(problems, SizeIs(1)) << text.substr(0, 40);
    EXPECT_THAT(problems[0], HasSubstr("launch.json"));
    records_.remove(bad.id);
  }
  EXPECT_THAT(records_.open(), SizeIs(1));
}

TEST_F(LaunchStoreTest, AStateIsThatOfTheRanks) {
  PastLaunch record = make_record();
  const auto state_of = [&](const std::vector<Job>& jobs) {
    record.jobs = jobs;
    sum_up(record);
    return record.state;
  };
  EXPECT_EQ(state_of({}), JobState::starting);
  for (const JobState state : {JobState::running, JobState::succeeded, JobState::queued, JobState::failed}) {
    EXPECT_EQ(state_of(ranks_of(record, state)), state);
  }
  std::vector<Job> jobs = ranks_of(record, JobState::succeeded);
  jobs[0].state = JobState::running;
  EXPECT_EQ(state_of(jobs), JobState::running);
  jobs = ranks_of(record, JobState::killed);
  for (Job& job : jobs) {
    job.reason = {.kind = JobReason::Kind::by_user, .number = 15, .text = "ada@laptop"};
  }
  EXPECT_EQ(state_of(jobs), JobState::killed);
}

}  // namespace
}  // namespace remote::jobs
