// The API as a program uses it: callbacks run on the calling thread and may call the Project, a single call
// can be cancelled, and errors have causes.

#include <atomic>
#include <set>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>
#include <remote/history.hpp>
#include <unistd.h>

#include "base/error_of.hpp"
#include "base/files.hpp"
#include "config/trust.hpp"
#include "project/core.hpp"
#include "support/local_connection.hpp"
#include "support/paths.hpp"
#include "support/waiting.hpp"

namespace remote {
namespace {

using test::eventually;

class ApiCallbacks : public ::testing::Test {
 protected:
  ApiCallbacks() {
    make_folders(folder.path() / ".remote");
    configure("");
    for (const char* name : {"a", "b"}) {
      make_folders(servers->home(name) / "proj");
    }
  }
  void configure(const std::string& more) {
    write_file_atomic(folder.path() / ".remote/configs.yaml",
                      "name: proj\npython: {manager: system}\nservers:\n  a: {hostname: a" + more +
                          "}\n  b: {hostname: b}\n");
  }
  Project open(Hooks hooks = {}) {
    hooks.rsync_helper = test::remote_binary;
    return project::project_of(
        std::make_unique<project::State>(config::load(folder.path()), hooks, test::share(servers)));
  }
  // Called from every callback: it must run on this thread, and calls into the Project must work.
  void enter(Project& project, const std::string& from) {
    EXPECT_EQ(std::this_thread::get_id(), here) << from;
    if (inside) {
      return;  // the call below called back
    }
    inside = true;
    entered.insert(from);
    std::string text;
    RunRequest request;
    request.command = "echo again";
    request.on_output = [&](std::size_t, OutputStream, std::string_view data) { text += data; };
    for (const ServerRun& run : project.run(request)) {
      EXPECT_TRUE(run.status && run.status->success()) << from;
    }
    EXPECT_EQ(text, "again\nagain\n") << from;
    inside = false;
  }
  Job start(Project& project, const std::string& command) {
    JobRequest request;
    request.command = command;
    request.server = "a";
    return project.start(request).job;
  }

  const std::shared_ptr<test::LocalServers> servers = std::make_shared<test::LocalServers>();
  const TempFolder folder;
  const std::thread::id here = std::this_thread::get_id();
  bool inside = false;
  std::set<std::string> entered;
};

TEST_F(ApiCallbacks, EveryCallbackMayCallTheProject) {
  std::optional<Project> project;
  Hooks hooks;
  hooks.on_event = [&](const Event& event) {
    enter(*project, "event " + std::to_string(event.index()));
    if (std::holds_alternative<Launched>(event)) {
      entered.insert("launched");
    }
  };
  project.emplace(open(hooks));

  RunRequest run;
  run.command = "echo one; echo two >&2";
  run.on_output = [&](std::size_t, OutputStream, std::string_view) { enter(*project, "run.on_output"); };
  run.on_ended = [&](std::size_t, const ServerRun&) { enter(*project, "run.on_ended"); };
  EXPECT_EQ(project->run(run).size(), 2U);

  PrepareRequest prepare;
  prepare.sync = false;
  for (const PrepareResult& result : project->prepare(prepare)) {
    EXPECT_FALSE(result.error) << result.error->message();
  }

  LaunchRequest launch;
  launch.command = "echo rank $RANK";
  launch.python = false;
  launch.nproc = 1;
  launch.check = false;
  const LaunchResult launched = project->launch(launch);
  EXPECT_TRUE(launched.errors.empty());

  FollowRequest follow;
  follow.judge = true;
  follow.on_output = [&](const JobOutput&) { enter(*project, "follow.on_output"); };
  follow.on_settled = [&](const std::string&) { enter(*project, "follow.on_settled"); };
  follow.on_ended = [&](std::size_t, const Job&) { enter(*project, "follow.on_ended"); };
  const FollowResult followed = project->follow(launched.jobs, follow);
  ASSERT_TRUE(followed.verdict);
  EXPECT_EQ(followed.verdict->succeeded, 2);

  const Job sleeper = start(*project, "sleep 0.3");
  project->wait({sleeper}, [&](std::size_t, const Job&) { enter(*project, "wait.on_ended"); });

  CheckRequest check;
  check.on_progress = [&](const std::string&, std::size_t, std::size_t) {
    enter(*project, "check.on_progress");
  };
  EXPECT_EQ(project->check(check).servers.size(), 2U);

  WatchRequest watch;
  watch.interval = std::chrono::milliseconds(50);
  int samples = 0;
  watch.on_sample = [&](std::size_t, const ServerSample&) {
    ++samples;
    enter(*project, "watch.on_sample");
  };
  watch.on_wake = [&] {
    enter(*project, "watch.on_wake");
    return samples < 2;
  };
  project->watch(watch);

  for (const char* name :
       {"launched", "run.on_output", "run.on_ended", "follow.on_output", "follow.on_settled",
        "follow.on_ended", "wait.on_ended", "check.on_progress", "watch.on_sample", "watch.on_wake"}) {
    EXPECT_TRUE(entered.contains(name)) << name;
  }
}

TEST_F(ApiCallbacks, FollowHandsOverOnlyTheRanksThatAreAskedFor) {
  Project project = open();
  LaunchRequest launch;
  launch.command = "echo the same; echo rank $RANK";
  launch.python = false;
  launch.nproc = 2;
  launch.check = false;
  const std::vector<Job> jobs = project.launch(launch).jobs;
  ASSERT_EQ(jobs.size(), 4U);
  for (const bool fold : {false, true}) {
    FollowRequest follow;
    follow.ranks = {1, 3};
    follow.grep = ".";  // whole lines
    follow.fold = fold;
    follow.judge = true;
    std::multiset<std::string> lines;
    follow.on_output = [&](const JobOutput& output) {
      const std::vector<int> ranks(output.ranks.begin(), output.ranks.end());
      if (output.text == "the same\n") {
        EXPECT_EQ(ranks, fold ? follow.ranks : std::vector<int>());
      }
      lines.emplace(output.text);
    };
    const FollowResult followed = project.follow(jobs, follow);
    ASSERT_TRUE(followed.verdict);
    EXPECT_EQ(followed.verdict->succeeded, 4);
    const std::multiset<std::string> folded{"the same\n", "rank 1\n", "rank 3\n"};
    const std::multiset<std::string> all{"the same\n", "the same\n", "rank 1\n", "rank 3\n"};
    EXPECT_EQ(lines, fold ? folded : all);
  }
}

TEST_F(ApiCallbacks, AJobCanBeKilledByTheCallbackThatShowsIt) {
  Project project = open();
  const Job job = start(project, "echo ready; exec sleep 300");
  FollowRequest follow;
  follow.on_output = [&](const JobOutput&) {
    EXPECT_EQ(project.kill({job}).entries.at(0).outcome, KillResult::Entry::Outcome::killed);
  };
  EXPECT_EQ(project.follow({job}, follow).jobs.at(0).state, JobState::killed);
}

TEST_F(ApiCallbacks, MuchOutputWaitsForASlowCallbackAndAllOfItComes) {
  Project project = open();
  std::size_t bytes = 0;
  RunRequest run;
  run.command = "head -c 20000000 /dev/zero";
  run.on_output = [&](std::size_t, OutputStream, std::string_view data) {
    if (bytes == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));  // slow reader
      EXPECT_EQ(project.jobs({.ask = false}).size(), 0U);
    }
    bytes += data.size();
  };
  project.run(run);
  EXPECT_EQ(bytes, 40000000U);
}

TEST_F(ApiCallbacks, WhatACallbackThrowsEndsTheCallAndComesOutOfIt) {
  Project project = open();
  RunRequest run;
  run.command = "echo hi; exec sleep 300";
  int calls = 0;
  run.on_output = [&](std::size_t, OutputStream, std::string_view) {
    ++calls;
    throw std::runtime_error("enough");
  };
  try {
    project.run(run);
    ADD_FAILURE() << "it did not throw";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "enough");
  }
  EXPECT_EQ(calls, 1);
  enter(project, "after a throw");
}

TEST_F(ApiCallbacks, OneOfTwoCallsIsCancelledAndTheProjectGoesOn) {
  Project project = open();
  std::string text;
  RunRequest outer;
  outer.command = "echo begin; sleep 0.2; echo end";
  outer.servers = {"a"};
  outer.on_output = [&](std::size_t, OutputStream, std::string_view data) {
    text += data;
    if (text != "begin\n") {
      return;
    }
    Cancel cancel;
    const std::jthread other([&] {
      ::usleep(100'000);  // while the call waits
      cancel.cancel();
    });
    RunRequest inner;
    inner.command = "exec sleep 300";
    EXPECT_THROW(project.run(inner, cancel), Interrupted);
  };
  const auto runs = project.run(outer);
  EXPECT_TRUE(runs.at(0).status && runs.at(0).status->success());
  EXPECT_EQ(text, "begin\nend\n");
  enter(project, "after a cancel");
}

TEST_F(ApiCallbacks, EveryKindOfCallCanBeCancelledAndThenMadeAgain) {
  Project project = open();
  const Job job = start(project, "exec sleep 300");
  Cancel cancelled;
  cancelled.cancel();
  EXPECT_THROW(project.run({.command = "true"}, cancelled), Interrupted);
  EXPECT_THROW(project.prepare({}, cancelled), Interrupted);
  EXPECT_THROW(project.follow({job}, {}, cancelled), Interrupted);
  EXPECT_THROW(project.wait({job}, {}, cancelled), Interrupted);
  EXPECT_THROW(project.check({}, cancelled), Interrupted);
  EXPECT_THROW(project.watch({}, cancelled), Interrupted);
  EXPECT_THROW(project.kill({job}, {}, cancelled), Interrupted);
  LaunchRequest launch;
  launch.command = "true";
  EXPECT_THROW(project.launch(launch, cancelled), Interrupted);
  EXPECT_EQ(project.kill({job}, {.grace = std::chrono::seconds(2)}).entries.at(0).outcome,
            KillResult::Entry::Outcome::killed);
}

TEST_F(ApiCallbacks, TheProgramsOwnCancelEndsEveryCall) {
  Hooks hooks;
  Project project = open(hooks);
  const std::jthread other([cancel = hooks.cancel]() mutable {
    ::usleep(100'000);  // while the call waits
    cancel.cancel();
  });
  EXPECT_THROW(project.run({.command = "exec sleep 300"}), Interrupted);
  EXPECT_THROW(project.run({.command = "true"}), Interrupted);
}

TEST_F(ApiCallbacks, WhileItAsksNoServerIsUsed) {
  configure(", password_command: echo x");
  std::optional<Project> project;
  Hooks hooks;
  std::optional<Cause> refused;
  hooks.allow = [&](const std::vector<Demand>&) {
    EXPECT_EQ(std::this_thread::get_id(), here);
    EXPECT_TRUE(project->jobs({.ask = false}).empty());
    try {
      project->run({.command = "true"});
    } catch (const Error& error) {
      refused = error.cause();
    }
    return true;
  };
  project.emplace(open(hooks));
  EXPECT_EQ(project->run({.command = "true"}).size(), 2U);
  EXPECT_EQ(refused, Cause::usage);
  Project::forget(folder.path());
}

TEST_F(ApiCallbacks, TwoProjectsOfOneFolderWorkInTwoThreads) {
  constexpr int rounds = 5;
  const auto work = [&] {
    Project project = open();
    for (int i = 0; i < rounds; ++i) {
      const Job job = [&] {
        JobRequest request;
        request.command = "true";
        request.server = "b";
        return project.start(request).job;
      }();
      const FollowResult result = project.wait({job});
      EXPECT_EQ(result.jobs.at(0).state, JobState::succeeded);
    }
  };
  {
    const std::jthread one(work);
    const std::jthread two(work);
  }
  std::set<int> keys;
  Project project = open();
  for (const Job& job : project.jobs()) {
    keys.insert(job.key);
  }
  EXPECT_EQ(keys.size(), 2U * rounds);
}

// Unknown states are not shown as known, neither in a list, nor in a record, nor in a comparison.
TEST_F(ApiCallbacks, ALaunchWhoseServerDoesNotAnswerIsUnknown) {
  Project project = open();
  LaunchRequest request;
  request.command = "exec sleep 1000";
  request.python = request.check = false;
  request.servers = {"a"};
  ASSERT_TRUE(project.launch(request).errors.empty());
  EXPECT_EQ(project.history().launch("last").state, JobState::running);
  servers->set_faults({.unreachable = {"a"}});
  const History history = open().history();  // this one has no connection yet
  EXPECT_EQ(history.list().at(0).state, JobState::unknown);
  const PastLaunch launch = history.launch("last");
  EXPECT_EQ(launch.state, JobState::unknown);
  EXPECT_EQ(launch.jobs.at(0).state, JobState::unknown);
  EXPECT_EQ(history.diff("last", "now").from.state, JobState::unknown);
  EXPECT_EQ(History(folder.path()).launch("last").state, JobState::running) << "as it was last heard of";
  servers->set_faults({});
  EXPECT_EQ(project.history().launch("last").state, JobState::running);
}

TEST_F(ApiCallbacks, ErrorsHaveCauses) {
  test::Faults faults;
  faults.before = servers->commands() + 1;
  servers->set_faults(faults);
  Project project = open();
  const auto runs = project.run({.command = "true", .servers = {"a"}});
  ASSERT_TRUE(runs.at(0).error);
  EXPECT_EQ(runs.at(0).error->cause(), Cause::unreachable);
  EXPECT_EQ(runs.at(0).error->server(), "a");
  try {
    project.run({.command = ""});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.cause(), Cause::usage);
  }
  EXPECT_EQ(file_error("write", "x", ENOSPC).on("a").because(Cause::other).cause(), Cause::disk_full);
  EXPECT_EQ(error_of(std::system_error(EAGAIN, std::generic_category())).cause(), Cause::no_resources);
  EXPECT_EQ(error_of(std::filesystem::filesystem_error("x", "/closed/x",
                                                       std::make_error_code(std::errc::permission_denied)))
                .cause(),
            Cause::permission);
}

}  // namespace
}  // namespace remote
