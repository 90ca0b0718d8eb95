#include "jobs/store.hpp"

#include <algorithm>
#include <csignal>
#include <fstream>
#include <set>
#include <thread>

#include <gtest/gtest.h>
#include <remote/error.hpp>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/strings.hpp"
#include "base/subprocess.hpp"

namespace remote::jobs {
namespace {
namespace fs = std::filesystem;

Job make_job(const std::string& server = "first") {
  Job job;
  job.id = JobId::random();
  job.server = server;
  job.command = "python train.py";
  job.tags = {"train.py", "torch"};
  job.created_at = 1700000000;
  job.remote_folder = {"~/project", ".jobs"};
  return job;
}

std::vector<Job> make_jobs(std::size_t count) {
  std::vector<Job> jobs;
  for (std::size_t i = 0; i < count; ++i) {
    jobs.push_back(make_job());
  }
  return jobs;
}

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::trunc) << text;
}

// Runs `work` in a child process; its exit status. The child never returns into the test.
template <typename Work>
pid_t start_child(const Work& work) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    int code = 0;
    try {
      work();
    } catch (const std::exception& error) {
      ::fprintf(stderr, "child: %s\n", error.what());
      code = 1;
    }
    ::_exit(code);
  }
  return pid;
}

ExitStatus wait_for(pid_t pid) {
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return ExitStatus::from_wait(status);
}

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
  std::vector<int> keys() const {
    std::vector<int> found;
    for (const Job& job : store_.list().jobs) {
      found.push_back(job.key);
    }
    return found;
  }
};

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
  jobs[2].failed_ms = 1700000001042;
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
  auto next = make_jobs(1);
  store_.add(next);
  EXPECT_EQ(next[0].key, 4);
}

TEST_F(StoreTest, LostMarkIsMadeUpFor) {
  auto jobs = make_jobs(3);
  store_.add(jobs);
  write_text(folder_ / "last_key", "garbage");
  auto next = make_jobs(1);
  store_.add(next);
  EXPECT_EQ(next[0].key, 4);
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
  job.state = State::failed;
  job.result = ExitStatus::exited(3);
  job.checked_at = 1700000010;
  store_.update({job});
  EXPECT_EQ(store_.list().jobs[0], job);
  EXPECT_EQ(store_.list({.unfinished_only = true}).jobs.size(), 1U);
  Job late = jobs[0];
  late.state = State::running;
  late.checked_at = 1700000020;
  store_.update({late});
  EXPECT_EQ(store_.find("1").state, State::failed);
  EXPECT_EQ(store_.find("1").result, ExitStatus::exited(3));
  store_.remove({jobs[0].id});
  store_.update({job});
  EXPECT_EQ(keys(), std::vector<int>{2});
}

TEST_F(StoreTest, NewsThatOnlyConfirmAreListedWithoutRewritingTheRecord) {
  auto jobs = make_jobs(1);
  jobs[0].state = State::running;
  jobs[0].checked_at = 1700000000;
  store_.add(jobs);
  const std::string record = read_file(store_.record_file(jobs[0].id));
  jobs[0].checked_at = 1700000050;
  store_.update(jobs);
  EXPECT_EQ(store_.find("1").checked_at, 1700000050);
  EXPECT_EQ(read_file(store_.record_file(jobs[0].id)), record);
  jobs[0].checked_at = 1700000060;  // a minute behind: the record follows
  store_.update(jobs);
  EXPECT_NE(read_file(store_.record_file(jobs[0].id)), record);
  fs::remove(folder_ / "index");
  EXPECT_EQ(store_.find("1").checked_at, 1700000060);
}

TEST_F(StoreTest, FindsByKeyAndByStartOfId) {
  auto jobs = make_jobs(3);
  jobs[0].id = JobId::parse("abcd0000000000000000000000000001").value();
  jobs[1].id = JobId::parse("abcd0000000000000000000000000002").value();
  jobs[2].id = JobId::parse("12340000000000000000000000000003").value();
  store_.add(jobs);
  EXPECT_EQ(store_.find("2").id, jobs[1].id);
  EXPECT_EQ(store_.find("1234").id, jobs[2].id);
  EXPECT_EQ(store_.find(jobs[1].id.text()).key, 2);
  for (const char* bad : {"abcd", "9", "abc", "", "0", "-1", "x", "99999999999999999999"}) {
    try {
      store_.find(bad);
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage) << bad;
    }
  }
}

// ---- damage ---------------------------------------------------------------------------------------------

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
  // Still usable: adding, updating (an error for the bad one, after the good one), removing the bad one.
  auto next = make_jobs(1);
  store_.add(next);
  EXPECT_EQ(next[0].key, 11);
  Job done = jobs[9];
  done.state = State::succeeded;
  done.result = ExitStatus::exited(0);
  Job bad = jobs[0];
  bad.state = State::succeeded;
  try {
    store_.update({bad, done});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find(file(0).string()), std::string::npos);
  }
  EXPECT_EQ(store_.find("10").state, State::succeeded);
  store_.remove({jobs[0].id, jobs[5].id});
  EXPECT_EQ(store_.list().problems.size(), 7U);
}

TEST_F(StoreTest, AnyDamageToTheIndexIsHarmless) {
  auto jobs = make_jobs(6);
  jobs[2].tags = {"x"};
  store_.add(jobs);
  Job done = jobs[1];
  done.state = State::killed;
  done.result = ExitStatus::signalled(15);
  done.checked_at = 1700000009;
  store_.update({done});
  const auto expected = store_.list().jobs;
  const std::string index = read_file(folder_ / "index");
  const auto expect_listed = [&] {
    EXPECT_EQ(store_.list({.unfinished_only = true}).jobs.size(), 5U);
    EXPECT_EQ(store_.list().jobs, expected);
    EXPECT_EQ(Store(folder_).list().jobs, expected);
  };
  for (std::size_t length = 0; length <= index.size(); length += 7) {
    write_text(folder_ / "index", index.substr(0, length));
    expect_listed();
  }
  for (std::size_t at = 0; at < index.size(); at += 3) {
    std::string flipped = index;
    flipped[at] = flipped[at] == '1' ? '2' : '1';
    write_text(folder_ / "index", flipped);
    expect_listed();
  }
  write_text(folder_ / "index", std::string(100000, '\0'));
  expect_listed();
  fs::remove(folder_ / "index");
  fs::create_directory(folder_ / "index");
  expect_listed();
  auto next = make_jobs(1);
  store_.add(next);
  EXPECT_EQ(next[0].key, 7);
}

TEST_F(StoreTest, LineAfterATornOneCounts) {
  auto jobs = make_jobs(2);
  store_.add(jobs);
  std::string index = read_file(folder_ / "index");
  write_text(folder_ / "index", index.substr(0, index.size() - 5));
  jobs[0].state = State::running;
  jobs[0].checked_at = 1700000001;
  store_.update({jobs[0]});
  EXPECT_EQ(store_.list().jobs, jobs);
}

TEST_F(StoreTest, IndexDoesNotGrowForEver) {
  auto jobs = make_jobs(2);
  jobs[0].state = State::running;
  store_.add(jobs);
  for (int i = 0; i < 500; ++i) {
    jobs[0].checked_at = 1700000000 + i / 20;
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
  foreign[0].created_at = 1;  // older: what was here keeps its key all the same
  elsewhere.add(foreign);
  for (const std::size_t i : {0U, 7U}) {
    fs::copy(elsewhere.job_folder(foreign[i].id), store_.job_folder(foreign[i].id),
             fs::copy_options::recursive);
  }
  expect_sound();
  EXPECT_EQ(store_.find("1").id, jobs[0].id);
  EXPECT_EQ(store_.find("8").id, foreign[7].id);
  EXPECT_EQ(store_.find(foreign[0].id.text()).key, 9);
  auto next = make_jobs(1);
  store_.add(next);
  EXPECT_EQ(next[0].key, 10);
  store_.remove({foreign[7].id, foreign[0].id, next[0].id});
  next = make_jobs(1);
  store_.add(next);
  EXPECT_EQ(next[0].key, 11);
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

// ---- faults ---------------------------------------------------------------------------------------------

TEST_F(StoreTest, FailureAtAnyStepOfAddLeavesNoneOfTheJobs) {
  auto first = make_jobs(2);
  store_.add(first);
  int steps = 0;
  for (int fail_at = 1;; ++fail_at) {
    steps = 0;
    bool writes_done = false;
    Store failing(folder_, [&](std::string_view step) {
      writes_done = writes_done || step == "append index";
      if (++steps == fail_at) {
        throw Error("injected", std::string(step));
      }
    });
    auto jobs = make_jobs(3);
    bool failed = false;
    try {
      failing.add(jobs);
    } catch (const Error&) {
      failed = true;
    }
    expect_sound();
    const auto now = keys().size();
    if (!failed) {
      EXPECT_EQ(now, 5U);
      break;
    }
    if (!writes_done) {
      EXPECT_EQ(now, 2U) << "failed at step " << fail_at;
      EXPECT_EQ(jobs[0].key, 0);
    } else {
      store_.remove({jobs[0].id, jobs[1].id, jobs[2].id});
    }
  }
  EXPECT_GT(steps, 10);
}

// The process dies before every single change on disk, for each of the store's actions.
TEST_F(StoreTest, KillAtAnyStepLeavesAUsableStore) {
  auto first = make_jobs(3);
  first[0].state = State::running;
  store_.add(first);
  const auto actions = [&](Store& store) {
    auto jobs = make_jobs(2);
    store.add(jobs);
    jobs[0].state = State::failed;
    jobs[0].result = ExitStatus::exited(1);
    store.update(jobs);
    jobs[1].state = State::lost;
    jobs[1].checked_at = 1700000001;
    store.update(jobs);
    jobs[1].state = State::running;
    jobs[1].checked_at = 1700000002;
    store.update(jobs);
    store.remove({jobs[0].id});
  };
  int highest = 3;
  int deaths = 0;
  for (int die_at = 1;; ++die_at) {
    const pid_t pid = start_child([&] {
      int step = 0;
      Store store(folder_, [&](std::string_view) {
        if (++step == die_at) {
          ::kill(::getpid(), SIGKILL);
        }
      });
      actions(store);
    });
    const ExitStatus end = wait_for(pid);
    expect_sound();
    std::vector<Job> unfinished;
    for (const Job& job : store_.list().jobs) {
      if (!is_final(job.state)) {
        unfinished.push_back(job);
      }
    }
    EXPECT_EQ(store_.list({.unfinished_only = true}).jobs, unfinished) << die_at;
    const auto found = keys();
    const std::vector<int> kept{1, 2, 3};
    EXPECT_TRUE(std::includes(found.begin(), found.end(), kept.begin(), kept.end()));
    auto next = make_jobs(1);
    store_.add(next);
    EXPECT_GT(next[0].key, highest);
    highest = next[0].key;
    if (end.success()) {
      break;
    }
    ASSERT_EQ(end, ExitStatus::signalled(SIGKILL));
    ++deaths;
  }
  EXPECT_GT(deaths, 25);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder_)) {
    const std::string name = entry.path().filename().string();
    EXPECT_FALSE(name.ends_with(".tmp") || name.starts_with(".removed-")) << entry.path();
  }
}

TEST_F(StoreTest, KillAtRandomInstantsLeavesAUsableStore) {
  for (int round = 0; round < 40; ++round) {
    const pid_t pid = start_child([&] {
      Store store(folder_);
      for (;;) {
        auto jobs = make_jobs(3);
        store.add(jobs);
        jobs[0].state = State::running;
        store.update(jobs);
        store.remove({jobs[1].id, jobs[2].id});
      }
    });
    ::usleep(random_between(0, 15000));
    ::kill(pid, SIGKILL);
    wait_for(pid);
    expect_sound();
  }
}

TEST_F(StoreTest, HundredProcessesGetHundredKeys) {
  std::vector<pid_t> children;
  for (int i = 0; i < 100; ++i) {
    children.push_back(start_child([&] {
      auto jobs = make_jobs(1);
      Store store(folder_);
      store.add(jobs);
      jobs[0].state = State::running;
      store.update(jobs);
      if (store.list().jobs.empty()) {
        ::_exit(2);
      }
    }));
  }
  for (const pid_t pid : children) {
    EXPECT_TRUE(wait_for(pid).success());
  }
  std::vector<int> expected(100);
  for (int i = 0; i < 100; ++i) {
    expected[static_cast<std::size_t>(i)] = i + 1;
  }
  EXPECT_EQ(keys(), expected);
  expect_sound();
  for (const Job& job : store_.list().jobs) {
    EXPECT_EQ(job.state, State::running);
  }
}

TEST_F(StoreTest, ThreadsShareAStore) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 5; ++round) {
        auto jobs = make_jobs(2);
        store_.add(jobs);
        store_.remove({jobs[0].id});
        store_.list();
      }
    });
  }
  threads.clear();
  EXPECT_EQ(keys().size(), 40U);
  expect_sound();
}

TEST_F(StoreTest, DiskThatTakesNoMoreFailsNamingTheFileAndKeepsTheRest) {
  auto jobs = make_jobs(2);
  store_.add(jobs);
  for (const rlim_t limit : {0UL, 1UL, 100UL, 300UL}) {
    const pid_t pid = start_child([&] {
      ::signal(SIGXFSZ, SIG_IGN);
      const rlimit limits{limit, limit};
      ::setrlimit(RLIMIT_FSIZE, &limits);
      auto more = make_jobs(2);
      more[1].command = std::string(1000, 'x');
      try {
        store_.add(more);
        ::_exit(2);
      } catch (const Error& error) {
        if (error.message().find(folder_.string()) == std::string::npos) {
          ::_exit(3);
        }
      }
      Job done = jobs[0];
      done.state = State::succeeded;
      try {
        store_.update({done});
        ::_exit(4);
      } catch (const Error&) {
      }
    });
    EXPECT_EQ(wait_for(pid), ExitStatus::exited(0)) << limit;
    expect_sound();
    EXPECT_EQ(keys(), (std::vector<int>{1, 2}));
  }
}

TEST_F(StoreTest, ReadOnlyFolderCanBeListedAndSaysWhyItCannotBeWritten) {
  auto jobs = make_jobs(2);
  store_.add(jobs);
  fs::remove(folder_ / "index");
  fs::permissions(temp_.path(), fs::perms(0755));
  fs::permissions(folder_, fs::perms(0555));
  const pid_t pid = start_child([&] {
    if (::getuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) {
      ::_exit(9);
    }
    if (store_.list().jobs.size() != 2 || !store_.list().problems.empty()) {
      ::_exit(2);
    }
    try {
      auto more = make_jobs(1);
      store_.add(more);
      ::_exit(3);
    } catch (const Error& error) {
      ::_exit(error.message().find(folder_.string()) != std::string::npos && !error.hint().empty() ? 0 : 4);
    }
  });
  EXPECT_EQ(wait_for(pid), ExitStatus::exited(0));
  fs::permissions(folder_, fs::perms(0755));
}

// ---- starters -------------------------------------------------------------------------------------------

TEST_F(StoreTest, StarterIsDeadExactlyWhenItDoesNotHoldItsLock) {
  EXPECT_TRUE(store_.starter_is_dead(launch_));
  {
    const FileLock held = store_.hold_start(launch_);
    EXPECT_FALSE(store_.starter_is_dead(launch_));
    auto jobs = make_jobs(1);
    store_.add(jobs);  // tidies up, but not this
    EXPECT_FALSE(store_.starter_is_dead(launch_));
    EXPECT_TRUE(store_.starter_is_dead(JobId::random()));
  }
  EXPECT_TRUE(store_.starter_is_dead(launch_));
  auto jobs = make_jobs(1);
  store_.add(jobs);
  EXPECT_TRUE(fs::is_empty(folder_ / "starts"));
}

TEST_F(StoreTest, StarterKilledIsDeadAndItsChildrenHoldNothing) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t pid = start_child([&] {
    const FileLock held = store_.hold_start(launch_);
    SubprocessSpec spec;
    spec.argv = {"sleep", "60"};
    Subprocess child(spec);
    const std::string text = std::to_string(child.pid()) + "\n";
    if (!write_all(ready[1], text)) {
      ::_exit(1);
    }
    ::pause();
  });
  ::close(ready[1]);
  std::string text;
  char c = 0;
  while (::read(ready[0], &c, 1) == 1 && c != '\n') {
    text += c;
  }
  ::close(ready[0]);
  const auto child = parse_number<int>(text);
  ASSERT_TRUE(child);
  EXPECT_FALSE(store_.starter_is_dead(launch_));
  ::kill(pid, SIGKILL);
  wait_for(pid);
  EXPECT_EQ(::kill(*child, 0), 0) << "the child lives on";
  EXPECT_TRUE(store_.starter_is_dead(launch_));
  ::kill(*child, SIGKILL);
}

// ---- speed ----------------------------------------------------------------------------------------------

TEST_F(StoreTest, TenThousandJobsAreListedFast) {
#ifdef NDEBUG
  constexpr std::size_t count = 10000;
#else
  constexpr std::size_t count = 1000;
#endif
  auto jobs = make_jobs(count);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].launch = JobId::random();
    if (i % (count / 10) != 0) {
      jobs[i].state = State::succeeded;
      jobs[i].result = ExitStatus::exited(0);
    }
  }
  fs::create_directories(folder_);
  for (Job& job : jobs) {
    static int key = 0;
    job.key = ++key;
    fs::create_directory(store_.job_folder(job.id));
    write_text(store_.record_file(job.id), to_json_text(job));
  }
  EXPECT_EQ(store_.list().jobs.size(), jobs.size());
  const auto best_of = [&](Store::Filter filter, std::size_t expected) {
    auto best = std::chrono::steady_clock::duration::max();
    for (int i = 0; i < 5; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      EXPECT_EQ(store_.list(filter).jobs.size(), expected);
      best = std::min(best, std::chrono::steady_clock::now() - begin);
    }
    return std::chrono::duration<double, std::milli>(best).count();
  };
  const double all = best_of({}, count);
  const double unfinished = best_of({.unfinished_only = true}, 10);
  RecordProperty("list_ms", std::to_string(all));
  RecordProperty("unfinished_ms", std::to_string(unfinished));
  ::printf("%zu jobs: all %.1f ms, unfinished %.1f ms\n", count, all, unfinished);
#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(all, 100);
  EXPECT_LT(unfinished, 50);
#endif
}

}  // namespace
}  // namespace remote::jobs
