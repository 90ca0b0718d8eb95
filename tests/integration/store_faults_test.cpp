#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <thread>

#include <gtest/gtest.h>
#include <remote/error.hpp>
#ifdef __linux__
#include <sys/inotify.h>
#endif
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/subprocess.hpp"
#include "jobs/job_json.hpp"
#include "jobs/launch_store.hpp"
#include "support/instants.hpp"
#include "support/store_test.hpp"

// The job store under faults: killed processes, full disks, many concurrent writers.

namespace remote::jobs {
namespace {

// Runs `work` in a child process; returns its exit status. The child never returns into the test.
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

class StoreFaults : public StoreTest {};

TEST_F(StoreFaults, WhoWaitsForTheLockCanBeInterrupted) {
  Cancel cancel;
  const fs::path folder = folder_;
  make_folders(folder);
  const FileLock held(folder / "lock");
  cancel.cancel();
  Store store(folder, {}, cancel);
  Job job;
  job.id = JobId::random();
  std::vector<Job> jobs{job};
  EXPECT_THROW(store.add(jobs), Interrupted);
}

#ifdef __linux__
// A record is durable only if the folder that contains its folder is, too: that folder is opened, to be
// synced, after the record's folder was created.
TEST_F(StoreFaults, TheFolderThatNamesARecordIsSynced) {
  make_folders(folder_);
  const UniqueFd watch(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  ASSERT_GE(::inotify_add_watch(watch.get(), folder_.c_str(), IN_CREATE | IN_OPEN), 0);
  auto jobs = make_jobs(1);
  store_.add(jobs);
  alignas(inotify_event) std::array<char, 16384> data{};
  const ssize_t count = ::read(watch.get(), data.data(), data.size());
  bool made = false;
  bool synced = false;
  for (ssize_t at = 0; at < count;) {
    const auto& event = *reinterpret_cast<const inotify_event*>(data.data() + at);
    made = made || (event.mask == (IN_CREATE | IN_ISDIR) && event.name == jobs[0].id.text());
    synced = synced || (made && event.mask == (IN_OPEN | IN_ISDIR) && event.len == 0);
    at += static_cast<ssize_t>(sizeof event + event.len);
  }
  EXPECT_TRUE(made);
  EXPECT_TRUE(synced);
}
#endif

// Each step is a call that the killed process never reaches. It leaves its temporary files behind.
TEST_F(StoreFaults, WhoIsKilledWhileItWritesTheRecordOfALaunchLeavesOneThatIsRead) {
  const auto killed_after = [&](int steps, const auto& work) {
    const pid_t child = start_child([&] {
      LaunchStore dying(store_, [&](std::string_view) {
        if (steps-- == 0) {
          ::raise(SIGKILL);
        }
      });
      work(dying);
    });
    return wait_for(child).signal() == SIGKILL;
  };
  LaunchStore records(store_);
  PastLaunch old;
  old.id = JobId::random();
  old.began_at = instant(1700000000);
  records.add(old, "the patch");
  int steps = 0;
  for (bool killed = true; killed; ++steps) {
    SCOPED_TRACE(steps);
    ASSERT_LT(steps, 20);
    PastLaunch next;
    next.id = JobId::random();
    next.began_at = instant(1800000000);
    const std::string note = "note " + std::to_string(steps);
    const bool not_added = killed_after(steps, [&](LaunchStore& dying) { dying.add(next, "its patch"); });
    killed = killed_after(
        steps, [&](LaunchStore& dying) { dying.change(old.id, [&](PastLaunch& now) { now.note = note; }); });
    const auto read = records.read(old.id);
    ASSERT_TRUE(read);
    EXPECT_EQ(read_file(read->patch), "the patch");
    EXPECT_TRUE(killed || read->note == note);
    const auto added = records.read(next.id);
    EXPECT_TRUE(not_added || added);
    EXPECT_TRUE(!added || read_file(added->patch) == "its patch");
    for (int i = 0; i < 2; ++i) {  // from the files of killed processes, and from the recreated index
      std::vector<std::string> problems;
      const auto listed = records.list(&problems);
      EXPECT_TRUE(problems.empty());
      ASSERT_EQ(listed.size(), added ? 2U : 1U);
      EXPECT_EQ(listed.back(), static_cast<const LaunchSummary&>(*read));
    }
    records.remove(next.id);
  }
  EXPECT_GE(steps, 4);
  EXPECT_EQ(records.open(), std::vector<JobId>{old.id});
}

TEST_F(StoreFaults, AnyDamageToTheIndexIsHarmless) {
  auto jobs = make_jobs(6);
  jobs[2].tags = {"x"};
  store_.add(jobs);
  Job done = jobs[1];
  done.state = JobState::killed;
  done.result = ExitStatus::signalled(15);
  done.checked_at = instant(1700000009);
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
  EXPECT_EQ(next_key(), 7);
}

TEST_F(StoreFaults, FailureAtAnyStepOfAddLeavesNoneOfTheJobs) {
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

// For each of the store's actions, the process dies before every single change on disk.
TEST_F(StoreFaults, KillAtAnyStepLeavesAUsableStore) {
  auto first = make_jobs(3);
  first[0].state = JobState::running;
  store_.add(first);
  const auto actions = [&](Store& store) {
    auto jobs = make_jobs(2);
    store.add(jobs);
    jobs[0].state = JobState::failed;
    jobs[0].result = ExitStatus::exited(1);
    store.update(jobs);
    jobs[1].state = JobState::lost;
    jobs[1].checked_at = instant(1700000001);
    store.update(jobs);
    jobs[1].state = JobState::running;
    jobs[1].checked_at = instant(1700000002);
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

TEST_F(StoreFaults, OutputIsRemovedBeforeAFullDiskHasToTakeAFile) {
  auto jobs = make_jobs(2);
  store_.add(jobs);
  for (const char* name : {"job.out", "job.err"}) {
    write_text(store_.job_folder(jobs[0].id) / name, "much");
    write_text(store_.job_folder(jobs[1].id) / name, "much");
  }
  int writes = 0;
  Store full(folder_, [&](std::string_view step) {
    if (step.starts_with("write")) {
      ++writes;
      throw Error("cannot write", "No space left on device");
    }
  });
  EXPECT_THROW(full.remove({jobs[0].id}), Error);
  EXPECT_GT(writes, 0);
  EXPECT_FALSE(fs::exists(store_.job_folder(jobs[0].id) / "job.out"));
  EXPECT_FALSE(fs::exists(store_.job_folder(jobs[0].id) / "job.err"));
  EXPECT_TRUE(fs::exists(store_.job_folder(jobs[1].id) / "job.out"));
  EXPECT_EQ(keys(), (std::vector<int>{1, 2})) << "its record stays";
}

TEST_F(StoreFaults, KillAtRandomInstantsLeavesAUsableStore) {
  for (int round = 0; round < 40; ++round) {
    const pid_t pid = start_child([&] {
      Store store(folder_);
      for (;;) {
        auto jobs = make_jobs(3);
        store.add(jobs);
        jobs[0].state = JobState::running;
        store.update(jobs);
        store.remove({jobs[1].id, jobs[2].id});
      }
    });
    ::usleep(random_between(0, 15000));  // at a random moment
    ::kill(pid, SIGKILL);
    wait_for(pid);
    expect_sound();
  }
}

TEST_F(StoreFaults, HundredProcessesGetHundredKeys) {
  std::vector<pid_t> children;
  for (int i = 0; i < 100; ++i) {
    children.push_back(start_child([&] {
      auto jobs = make_jobs(1);
      Store store(folder_);
      store.add(jobs);
      jobs[0].state = JobState::running;
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
    EXPECT_EQ(job.state, JobState::running);
  }
}

TEST_F(StoreFaults, DiskThatTakesNoMoreFailsNamingTheFileAndKeepsTheRest) {
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
      done.state = JobState::succeeded;
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

TEST_F(StoreFaults, ReadOnlyFolderCanBeListedAndSaysWhyItCannotBeWritten) {
  auto jobs = make_jobs(2);
  store_.add(jobs);
  fs::remove(folder_ / "index");
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
    if (entry.is_regular_file()) {
      fs::permissions(entry, fs::perms(0644));  // private records, and root becomes another user below
    }
  }
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

TEST_F(StoreFaults, StarterKilledIsDeadAndItsChildrenHoldNothing) {
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

TEST_F(StoreFaults, ThreadsShareAStore) {
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

TEST_F(StoreFaults, TenThousandJobsAreListedFast) {
#ifdef NDEBUG
  constexpr std::size_t count = 10000;
#else
  constexpr std::size_t count = 1000;
#endif
  auto jobs = make_jobs(count);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].launch = JobId::random();
    if (i % (count / 10) != 0) {
      jobs[i].state = JobState::succeeded;
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
