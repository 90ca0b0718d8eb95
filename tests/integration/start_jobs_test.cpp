#include <algorithm>
#include <atomic>
#include <csignal>
#include <fstream>
#include <functional>

#include <gtest/gtest.h>
#include <remote/error.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs/refresh.hpp"
#include "jobs/start.hpp"
#include "support/job_world.hpp"
#include "support/processes.hpp"
#include "support/waiting.hpp"

// A launch on two servers with two ranks each, interrupted at every step. Afterwards a new process must see
// the true state of the servers, and a second start of the same jobs must start nothing.

namespace remote::jobs {
namespace {

using test::eventually;
using test::JobWorld;

// Where the starting process dies while it runs a server's command. Commands are counted over all servers.
struct Death {
  int command = 0;
  enum class When { before, opened, written, heard, finished } when = When::before;
  std::size_t bytes = 0;  // of the request or the answer
};

[[noreturn]] void die() {
  ::kill(::getpid(), SIGKILL);
  ::_exit(99);
}

// The commands of all connections of a process that is going to die.
struct Doom {
  Death death;
  std::atomic<int> commands{0};
  std::size_t written = 0;  // to the command at which it dies
};

class DoomedChannel : public ssh::Channel {
 public:
  DoomedChannel(std::unique_ptr<ssh::Channel> inner, Doom& doom, bool mine)
      : inner_(std::move(inner)), doom_(doom), mine_(mine) {}
  std::size_t writable() const override { return over_ ? 0 : inner_->writable(); }
  void write(std::string_view data) override {
    if (mine_ && doom_.death.when == Death::When::written && written_ + data.size() >= doom_.death.bytes) {
      inner_->write(data.substr(0, doom_.death.bytes - written_));
      over_ = true;  // the connection's next pump sends this, and then the process dies
      return;
    }
    written_ += data.size();
    if (mine_) {
      doom_.written = written_;
    }
    inner_->write(data);
  }
  void close_input() override {
    if (!over_) {
      inner_->close_input();
    }
  }
  void pause(bool paused) override { inner_->pause(paused); }
  bool finished() const override {
    const bool done = inner_->finished();
    if (done && mine_ && doom_.death.when == Death::When::finished) {
      die();
    }
    return done;
  }
  std::optional<ExitStatus> status() const override { return inner_->status(); }
  bool over() const { return over_; }

 private:
  std::unique_ptr<ssh::Channel> inner_;
  Doom& doom_;
  bool mine_;
  bool over_ = false;
  std::size_t written_ = 0;
};

class DoomedConnection : public ssh::Connection {
 public:
  DoomedConnection(std::unique_ptr<ssh::Connection> inner, Doom& doom)
      : inner_(std::move(inner)), doom_(doom) {}
  std::unique_ptr<ssh::Channel> open(const std::string& command, ssh::Sink sink) override {
    const bool mine = ++doom_.commands == doom_.death.command;
    if (mine && doom_.death.when == Death::When::before) {
      die();
    }
    std::size_t heard = 0;
    auto channel =
        inner_->open(command, [this, mine, heard, sink](ssh::Stream stream, std::string_view data) mutable {
          heard += data.size();
          if (mine && doom_.death.when == Death::When::heard && heard >= doom_.death.bytes) {
            die();
          }
          sink(stream, data);
        });
    if (mine && doom_.death.when == Death::When::opened) {
      die();
    }
    auto doomed = std::make_unique<DoomedChannel>(std::move(channel), doom_, mine);
    last_ = doomed.get();
    return doomed;
  }
  void pump(std::chrono::milliseconds timeout, std::span<pollfd> also) override {
    const bool over = last_ != nullptr && last_->over();
    inner_->pump(over ? std::chrono::milliseconds(100) : timeout, also);
    if (over) {
      die();
    }
  }
  std::string peer_address() const override { return inner_->peer_address(); }

 private:
  std::unique_ptr<ssh::Connection> inner_;
  Doom& doom_;
  DoomedChannel* last_ = nullptr;
};

class DoomedConnector : public ssh::Connector {
 public:
  DoomedConnector(ssh::Connector& inner, Doom* doom) : inner_(inner), doom_(doom) {}
  std::unique_ptr<ssh::Connection> connect(const config::Server& server, const Cancel& cancel,
                                           ssh::ConnectLimit limit) override {
    auto connection = inner_.connect(server, cancel, limit);
    if (doom_ != nullptr) {
      connection = std::make_unique<DoomedConnection>(std::move(connection), *doom_);
    }
    return connection;
  }

 private:
  ssh::Connector& inner_;
  Doom* doom_;
};

class Launch : public ::testing::Test {
 protected:
  // Ranks 0 and 2 keep running, 1 and 3 end. Each leaves one line per start.
  std::vector<NewJob> ranks() {
    const JobId launch = JobId::random();
    std::vector<NewJob> all;
    for (int rank = 0; rank < 4; ++rank) {
      NewJob entry = world.job(rank < 2 ? "a" : "b", std::string("echo x >>~/ran-$REMOTE_JOB_ID; ") +
                                                         (rank % 2 == 0 ? "exec sleep 300" : "exit 3"));
      entry.job.launch = launch;
      entry.job.rank = rank;
      entry.job.world_size = 4;
      all.push_back(entry);
    }
    return all;
  }
  StartResult start_with(Store& store, const std::vector<NewJob>& entries, Doom* doom = nullptr) {
    DoomedConnector doomed(world.servers, doom);
    return start({world.config, store, doomed, Cancel()}, entries);
  }
  // Runs the work in a child process; returns whether it was killed.
  template <typename Work>
  static bool dies(const Work& work) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      try {
        work();
      } catch (const std::exception& error) {
        ::fprintf(stderr, "child: %s\n", error.what());
        ::_exit(1);
      }
      ::_exit(0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
  }
  std::string runs(const NewJob& entry) {
    return read_file_if_there(world.servers.home(entry.job.server) / ("ran-" + entry.job.id.text()))
        .value_or("");
  }
  static bool cookie_lives(const NewJob& entry) {
    return !test::processes_with("REMOTE_JOB_ID=" + entry.job.id.text()).empty();
  }

  // A new `job-list` permanently agrees with the servers.
  void expect_true_news(const std::vector<NewJob>& entries) {
    world.servers.set_faults({});
    Store store(world.store_folder());
    std::vector<Job> now;
    ASSERT_TRUE(eventually([&] {
      now =
          refresh({world.config, store, world.servers, Cancel()}, store.list().jobs, std::chrono::seconds(20))
              .jobs;
      return std::all_of(now.begin(), now.end(), [&](const Job& job) {
        const bool sleeper = job.rank.value_or(0) % 2 == 0;
        return is_final(job.state) || (sleeper && job.state == JobState::running);
      });
    }));
    EXPECT_TRUE(store.list().problems.empty());
    // A second start of the same jobs, from a machine without records of the first.
    std::vector<NewJob> recorded;
    for (const NewJob& entry : entries) {
      const auto found =
          std::find_if(now.begin(), now.end(), [&](const Job& job) { return job.id == entry.job.id; });
      if (found == now.end()) {
        EXPECT_EQ(runs(entry), "") << "it runs, and nobody knows of it";
        EXPECT_FALSE(std::filesystem::exists(world.servers.home(entry.job.server) / "proj/.jobs" /
                                             entry.job.id.text()));
        continue;
      }
      recorded.push_back(entry);
      EXPECT_THROW(start_with(store, {entry}), Error);
    }
    TempFolder elsewhere("remote-other-");
    Store other(elsewhere.path() / "jobs");
    if (!recorded.empty()) {
      const StartResult again = start_with(other, recorded);
      EXPECT_TRUE(again.errors.empty());
      for (const Job& job : again.jobs) {
        EXPECT_EQ(job.state, JobState::starting) << "it says that it started what was there";
      }
    }
    for (const NewJob& entry : recorded) {
      const Job job =
          *std::find_if(now.begin(), now.end(), [&](const Job& one) { return one.id == entry.job.id; });
      if (job.state == JobState::lost) {
        EXPECT_EQ(job.reason.kind, JobReason::Kind::never_started);
        EXPECT_EQ(runs(entry), "");
        EXPECT_FALSE(cookie_lives(entry));
      } else if (*job.rank % 2 == 0) {
        EXPECT_EQ(job.state, JobState::running);
        EXPECT_TRUE(eventually([&] { return runs(entry) == "x\n"; })) << runs(entry);
        EXPECT_TRUE(cookie_lives(entry));
      } else {
        EXPECT_EQ(job.state, JobState::failed);
        EXPECT_EQ(job.result, ExitStatus::exited(3));
        EXPECT_EQ(runs(entry), "x\n");
        EXPECT_FALSE(cookie_lives(entry));
      }
    }
  }

  // Calls attempt(entries, points) repeatedly. Each call fails after one more change on the local disk, until
  // attempt() returns false because it did not fail.
  void at_every_change(const std::function<bool(const std::vector<NewJob>&, int)>& attempt) {
    int points = 0;
    for (bool failed = true; failed;) {
      SCOPED_TRACE("at local step " + std::to_string(points + 1));
      const auto entries = ranks();
      failed = attempt(entries, points);
      expect_true_news(entries);
      points += failed ? 1 : 0;
    }
    EXPECT_GE(points, 20);
    RecordProperty("points", points);
  }

  JobWorld world;
};

TEST_F(Launch, StartsAllRanksOnceAndTellsThem) {
  const auto entries = ranks();
  const StartResult result = start_with(world.store, entries);
  EXPECT_TRUE(result.errors.empty());
  ASSERT_EQ(result.jobs.size(), 4U);
  EXPECT_EQ(world.servers.commands(), 6) << "three a server: the first start there lacks the program";
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(result.jobs[static_cast<std::size_t>(i)].key, i + 1);
    EXPECT_EQ(result.jobs[static_cast<std::size_t>(i)].state, JobState::running);
  }
  expect_true_news(entries);
}

TEST_F(Launch, IsKilledAtEveryChangeOnTheLocalDisk) {
  at_every_change([&](const std::vector<NewJob>& entries, int points) {
    return dies([&] {
      int count = 0;
      Store store(world.store_folder(), [&](std::string_view) {
        if (++count > points) {
          die();
        }
      });
      start_with(store, entries);
    });
  });
}

TEST_F(Launch, FailsAtEveryChangeOnTheLocalDisk) {
  at_every_change([&](const std::vector<NewJob>& entries, int points) {
    int count = 0;
    Store store(world.store_folder(), [&](std::string_view step) {
      if (++count > points) {
        throw Error("cannot " + std::string(step), "the disk is full");
      }
    });
    const int commands = world.servers.commands();
    try {
      const StartResult result = start_with(store, entries);
      EXPECT_TRUE(result.errors.empty());
      EXPECT_EQ(result.jobs.size(), entries.size());
      for (const Job& job : result.jobs) {
        EXPECT_GT(job.key, 0);
        EXPECT_EQ(job.state, JobState::running);
      }
      EXPECT_EQ(result.unsaved.has_value(), count > points);
    } catch (const Error& error) {
      EXPECT_EQ(error.reason(), "the disk is full");
      EXPECT_EQ(world.servers.commands(), commands) << "something went out, and the result is lost";
    }
    return count > points;
  });
}

TEST_F(Launch, LosesItsLinkBeforeAfterAndWithinTheAnswer) {
  int points = 0;
  const auto one = [&](const test::Faults& faults, const std::string& what) {
    SCOPED_TRACE(what);
    const auto entries = ranks();
    test::Faults shifted = faults;
    const int base = world.servers.commands();
    for (int* number : {&shifted.before, &shifted.after, &shifted.cut}) {
      *number += *number > 0 ? base : 0;
    }
    world.servers.set_faults(shifted);
    const StartResult result = start_with(world.store, entries);
    EXPECT_EQ(result.errors.size(), 1U) << "the server whose link broke, and no other";
    expect_true_news(entries);
    ++points;
  };
  for (const int command : {1, 2}) {
    const std::string name = " command " + std::to_string(command);
    test::Faults faults;
    faults.before = command;
    one(faults, "before" + name);
    faults = {};
    faults.after = command;
    one(faults, "after" + name);
    for (const std::size_t bytes : {0, 1, 9, 17, 30, 48, 60, 80, 110, 150, 180}) {
      faults = {};
      faults.cut = command;
      faults.cut_bytes = bytes;
      one(faults, "cut after " + std::to_string(bytes) + " bytes of" + name);
    }
  }
  EXPECT_GE(points, 24);
}

TEST_F(Launch, IsKilledBeforeWithinAndAfterEveryExec) {
  int points = 0;
  const auto one = [&](const Death& death, const std::string& what) {
    SCOPED_TRACE(what);
    const auto entries = ranks();
    EXPECT_TRUE(dies([&] {
      Doom doom;
      doom.death = death;
      Store store(world.store_folder());
      start_with(store, entries, &doom);
    })) << "the point was not reached";
    expect_true_news(entries);
    ++points;
  };
  using When = Death::When;
  // The size of a request: the first start there also copies the program.
  std::size_t request = 0;
  for (int i = 0; i < 2; ++i) {
    const auto entries = ranks();
    Doom none;
    none.death = {1, When::written, static_cast<std::size_t>(-1)};
    EXPECT_TRUE(start_with(world.store, entries, &none).errors.empty());
    request = none.written;
    expect_true_news(entries);
  }
  ASSERT_GT(request, 500U);
  for (const int command : {1, 2}) {
    const std::string name = " of command " + std::to_string(command);
    one({command, When::before, 0}, "before" + name);
    one({command, When::opened, 0}, "opened" + name);
    // All but the last byte, and all of it, because the agent answers only complete requests.
    std::vector<std::size_t> written{1, request - 1, request};
    constexpr std::size_t parts = 7;
    for (std::size_t i = 1; i < parts; ++i) {
      written.push_back(request * i / parts);
    }
    for (const std::size_t bytes : written) {
      one({command, When::written, bytes}, std::to_string(bytes) + " bytes written" + name);
    }
    for (std::size_t bytes = 1; bytes <= 211; bytes += 30) {
      one({command, When::heard, bytes}, std::to_string(bytes) + " bytes heard" + name);
    }
    one({command, When::finished, 0}, "after the end" + name);
  }
  EXPECT_EQ(points, 40);
}

TEST_F(Launch, SaysWhatAServerRefuses) {
  std::filesystem::permissions(world.servers.home("b"), std::filesystem::perms::all);
  make_folders(world.servers.home("b") / "proj");
  std::ofstream(world.servers.home("b") / "proj/.jobs") << "a file where the folder belongs";
  const auto entries = ranks();
  const StartResult result = start_with(world.store, entries);
  ASSERT_FALSE(result.errors.empty());
  for (const Error& error : result.errors) {
    EXPECT_EQ(error.server(), "b");
  }
  EXPECT_EQ(result.jobs[0].state, JobState::running);
  EXPECT_NE(result.jobs[2].state, JobState::running);
}

}  // namespace
}  // namespace remote::jobs
