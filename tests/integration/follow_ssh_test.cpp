// Following over real SSH: TCP links that are cut under libssh, and more jobs than a connection allows
// channels.

#include <algorithm>
#include <atomic>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <remote/error.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.hpp"
#include "base/strings.hpp"
#include "jobs/follow.hpp"
#include "support/cut_proxy.hpp"
#include "support/ssh_job_world.hpp"

namespace remote::jobs {
namespace {

using test::CutProxy;
using test::SshJobWorld;

// Sanitizers make each byte several times slower; the test itself is the same.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int pieces = 4;
#else
constexpr int pieces = 40;
#endif
constexpr std::uint64_t piece_size = 2'621'440;  // 40 of them are 100 MiB

// Compares a stream with its source file byte by byte as it arrives, so that nothing is stored.
class Comparer {
 public:
  explicit Comparer(const std::filesystem::path& file) : fd_(::open(file.c_str(), O_RDONLY | O_CLOEXEC)) {}

  void take(std::string_view data) {
    there_.resize(data.size());
    std::size_t got = 0;
    while (got < data.size()) {
      const ssize_t count =
          ::pread(fd_.get(), there_.data() + got, data.size() - got, static_cast<off_t>(heard_ + got));
      if (count <= 0) {
        break;
      }
      got += static_cast<std::size_t>(count);
    }
    if (equal_ && (got < data.size() || there_ != data)) {
      equal_ = false;
      ADD_FAILURE() << "what came is not what was written, within " << data.size() << " bytes from byte "
                    << heard_;
    }
    heard_ += data.size();
  }
  std::uint64_t heard() const { return heard_; }

 private:
  UniqueFd fd_;
  std::string there_;
  std::uint64_t heard_ = 0;
  bool equal_ = true;
};

TEST(FollowOverSsh, EveryByteOnceThroughTwentyCutsOfTheTcpLink) {
  SshJobWorld world;
  CutProxy proxy(world.sshd.port());
  world.config.servers[0].port = proxy.port();
  const std::uint64_t total = piece_size * pieces;
  const auto jobs = world.run_all({fmt::format(
      "i=0; while [ $i -lt {} ]; do head -c {} /dev/urandom; echo err $i >&2; i=$((i + 1)); done; exit 7",
      pieces, piece_size)});
  constexpr int cuts = 20;
  std::vector<std::uint64_t> at;
  for (std::uint64_t i = 1; i <= cuts; ++i) {
    at.push_back(total / (cuts + 1) * i + 97 * i);  // somewhere inside a packet
  }
  proxy.cut_at(at);

  Comparer out(world.file(jobs[0], "job.out"));
  Comparer err(world.file(jobs[0], "job.err"));
  int lost = 0;
  int back = 0;
  int ended = 0;
  FollowEvents events;
  events.output = [&](std::size_t, ssh::Stream stream, std::string_view data) {
    (stream == ssh::Stream::out ? out : err).take(data);
  };
  events.ended = [&](std::size_t, const Job&) { ++ended; };
  events.link = [&](const Event& event) { ++(std::holds_alternative<LinkLost>(event) ? lost : back); };
  const test::Limit limit;
  const FollowResult result =
      follow({world.config, world.store, *world.connector, limit.cancel()}, jobs, {}, events);

  for (const Error& error : result.errors) {
    ADD_FAILURE() << error.message();
  }
  EXPECT_EQ(proxy.cuts(), cuts);
  EXPECT_EQ(proxy.connections(), cuts + 1);
  EXPECT_EQ(out.heard(), total);
  EXPECT_EQ(out.heard(), std::filesystem::file_size(world.file(jobs[0], "job.out")));
  EXPECT_EQ(err.heard(), std::filesystem::file_size(world.file(jobs[0], "job.err")));
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(result.jobs[0].result, ExitStatus::exited(7));
  EXPECT_EQ(lost, cuts);
  EXPECT_EQ(back, cuts);
}

// As when a rented container is reclaimed: its port refuses connections.
TEST(FollowOverSsh, AServerThatRefusesConnectionsAfterASigtermIsNamed) {
  if (test::over_openssh()) {
    GTEST_SKIP() << "the master holds the connection";
  }
  SshJobWorld world;
  make_folders(world.home() / "proj");
  const ExecResult started =
      world.remote({"launch", "--no-check", "--nproc-per-node", "1", "--cmd", "kill -TERM $$; sleep 1000"});
  ASSERT_TRUE(started.status.success()) << started.err;
  const auto judge = [&] { return world.remote({"job-wait", "--launch", "last"}).err; };
  const std::string gone = " and no longer answers: it may have been shut down";
  const auto ended = testing::HasSubstr("rank 0 on one failed (SIGTERM, ");
  EXPECT_THAT(judge(), testing::AllOf(ended, testing::Not(testing::HasSubstr(gone))));
  world.sshd.stop();
  EXPECT_THAT(judge(), testing::AllOf(ended, testing::HasSubstr("hint: one has not reported since 20"),
                                      testing::HasSubstr(gone)));
}

// For example, a process that the login shell's startup file leaves behind with each command.
TEST(FollowOverSsh, AProcessInTheBackgroundThatHoldsTheOutputDoesNotHoldItUp) {
  const TempFolder folder;
  const std::string pids = (folder.path() / "pids").string();
  SshJobWorld world({"ForceCommand sleep 60 & echo $! >>" + pids + "; exec sh -c \"$SSH_ORIGINAL_COMMAND\""});
  const auto jobs = world.run_all({"echo one; exit 3"});
  std::string out;
  FollowEvents events;
  events.output = [&](std::size_t, ssh::Stream, std::string_view data) { out += data; };
  events.ended = [](std::size_t, const Job&) {};
  events.link = [](const Event&) {};
  const test::Limit limit(std::chrono::seconds(50));
  const FollowResult result =
      follow({world.config, world.store, *world.connector, limit.cancel()}, jobs, {}, events);
  EXPECT_EQ(result.jobs[0].result, ExitStatus::exited(3));
  EXPECT_EQ(out, "one\n");
  for (const std::string& pid : split_words(read_file(pids))) {
    EXPECT_EQ(::kill(parse_number<pid_t>(pid).value(), SIGKILL), 0) << "its end was waited for";
  }
}

class FollowManyJobs : public ::testing::TestWithParam<int> {};

TEST_P(FollowManyJobs, SixtyFourAtOnce) {
  SshJobWorld world({fmt::format("MaxSessions {}", GetParam())});
  constexpr std::size_t count = 64;
  // No job ends before all are followed at the same time. They wait without processes, because so many
  // processes would overload a machine.
  const std::string gate = (world.home() / "go").string();
  ASSERT_EQ(::mkfifo(gate.c_str(), 0600), 0);
  const UniqueFd go(::open(gate.c_str(), O_RDWR | O_CLOEXEC));
  const auto jobs = world.run_all(
      std::vector<std::string>(count, "echo begin $REMOTE_JOB_ID; read -r _ <~/go; echo end $REMOTE_JOB_ID"));
  std::mutex mutex;
  std::map<std::size_t, std::string> heard;
  std::set<std::size_t> ended;
  bool told = false;
  FollowEvents events;
  events.output = [&](std::size_t index, ssh::Stream, std::string_view data) {
    const std::lock_guard lock(mutex);
    heard[index] += data;
    if (heard.size() == count && !std::exchange(told, true)) {
      const std::string lines(count, '\n');
      EXPECT_EQ(::write(go.get(), lines.data(), count), static_cast<ssize_t>(count));
    }
  };
  events.ended = [&](std::size_t index, const Job& job) {
    const std::lock_guard lock(mutex);
    EXPECT_EQ(job.state, JobState::succeeded);
    EXPECT_TRUE(ended.insert(index).second);
  };
  std::vector<std::string> news;
  events.link = [&](const Event& event) {
    const std::lock_guard lock(mutex);
    const auto* lost = std::get_if<LinkLost>(&event);
    news.push_back(lost == nullptr ? "back" : "lost: " + lost->reason);
  };
  const test::Limit limit;
  const FollowResult result =
      follow({world.config, world.store, *world.connector, limit.cancel()}, jobs, {}, events);
  for (const Error& error : result.errors) {
    ADD_FAILURE() << error.message();
  }
  EXPECT_THAT(news, ::testing::IsEmpty());
  EXPECT_EQ(ended.size(), count);
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(heard[i], fmt::format("begin {}\nend {}\n", jobs[i].id.text(), jobs[i].id.text()));
  }
}

INSTANTIATE_TEST_SUITE_P(MaxSessions, FollowManyJobs, ::testing::Values(10, 1),
                         [](const auto& sessions) { return std::to_string(sessions.param); });

}  // namespace
}  // namespace remote::jobs
