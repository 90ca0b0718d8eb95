#include <chrono>
#include <functional>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <remote/error.hpp>

#include "base/clock.hpp"
#include "ssh/program_channel.hpp"
#include "support/program_as.hpp"
#include "support/script_test.hpp"

// How follow.sh follows jobs, under every sh that servers have.

namespace remote::jobs {
namespace {

using std::chrono::milliseconds;

// What a follower got, and how.
struct Followed {
  std::string out;
  std::string err;
  std::unique_ptr<ssh::Pump> pump;
  std::unique_ptr<ssh::Flow> flow;
  std::pair<std::uint64_t, std::uint64_t> offsets;
};

class JobFollow : public test::ScriptTest {
 protected:
  std::unique_ptr<Followed> follow(const FollowRequest& request) {
    auto followed = std::make_unique<Followed>();
    Followed* target = followed.get();
    followed->pump = std::make_unique<ssh::Pump>(*connection, cancel_);
    followed->flow =
        ssh::open_program(*followed->pump, follow_script(jobs_folder, request),
                          [target](ssh::Stream stream, std::string_view data) {
                            (stream == ssh::Stream::out ? target->out : target->err).append(data);
                          });
    // The header comes on both streams; an error on stdout alone, and then the channel ends.
    const auto whole = [](const std::string& text) {
      const std::size_t at = text.find("@remote1 ");
      return at != std::string::npos && text.find('\n', at) != std::string::npos;
    };
    pump_until(*followed, [&] { return whole(target->out) && whole(target->err); });
    for (std::string* text : {&target->err, &target->out}) {
      if (whole(*text)) {
        const std::size_t at = text->find("@remote1 ");
        const std::size_t end = text->find('\n', at);
        followed->offsets = parse_follow(text->substr(at, end - at)).value();
        text->erase(0, end + 1);
      }
    }
    return followed;
  }
  void pump_until(const Followed& followed, const std::function<bool()>& condition) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition() && !followed.flow->channel().finished()) {
      ASSERT_LT(std::chrono::steady_clock::now(), limit) << "out: " << followed.out.substr(0, 1000);
      followed.pump->wait(milliseconds(20));
    }
  }

 private:
  const Cancel cancel_;
};

TEST_P(JobFollow, EveryByteOnceUntilTheEnd) {
  // binary data, in pieces, on both streams, without a newline at the end
  const JobId id = start(
      "i=0; while [ $i -lt 20 ]; do head -c 50000 /dev/urandom; head -c 1000 /dev/urandom >&2; "
      "i=$((i+1)); sleep 0.01; done; printf end");
  const auto followed = follow({id, 0, 0, std::nullopt, true});
  pump_until(*followed, [] { return false; });
  EXPECT_TRUE(followed->flow->channel().finished());
  EXPECT_EQ(followed->flow->channel().status(), ExitStatus::exited(0));
  EXPECT_EQ(followed->out.size(), 1000003U);
  EXPECT_TRUE(followed->out == file(id, "job.out"));
  EXPECT_TRUE(followed->err == file(id, "job.err"));
  EXPECT_EQ(status(id).phase, Phase::ended);
  expect_nothing_left();
  // from the middle, after the end
  const auto again = follow({id, 500000, 19999, std::nullopt, true});
  pump_until(*again, [] { return false; });
  EXPECT_EQ(again->offsets, std::pair(std::uint64_t{500000}, std::uint64_t{19999}));
  EXPECT_TRUE(again->out == file(id, "job.out").substr(500000));
  EXPECT_TRUE(again->err == file(id, "job.err").substr(19999));
}

TEST_P(JobFollow, ALineWithoutNewlinePassesAndTheEndOfInputEndsIt) {
  const JobId id =
      start("printf one; echo e >&2; while ! [ -e go ]; do sleep 0.2; done; printf two; sleep 1000");
  const auto followed = follow({id, 0, 0, std::nullopt, true});
  pump_until(*followed, [&] { return followed->out == "one" && followed->err == "e\n"; });
  std::ofstream(place() / "go") << "";
  pump_until(*followed, [&] { return followed->out == "onetwo"; });
  EXPECT_FALSE(followed->flow->channel().finished());
  const std::size_t with_follower = servers.processes().size();
  followed->flow->channel().close_input();
  pump_until(*followed, [] { return false; });
  EXPECT_EQ(followed->out, "onetwo");
  EXPECT_EQ(followed->err, "e\n");
  until([&] { return servers.processes().size() == 2; }, "the follower's end");
  EXPECT_GT(with_follower, 2U);
  EXPECT_EQ(status(id).phase, Phase::running);
  EXPECT_EQ(kill(id).outcome, KillReply::Outcome::killed);
}

TEST_P(JobFollow, NothingStaysBehindWhenTheClientIsGone) {
  const JobId id = start("while :; do echo line; sleep 0.01; done");
  {
    const auto followed = follow({id, 0, 0, std::nullopt, true});
    pump_until(*followed, [&] { return followed->out.size() > 20; });
  }
  until([&] { return servers.processes().size() <= 3; }, "the follower's end");
  // a kill is not disturbed by followers, nor does it end them as if they were the job's
  const auto followed = follow({id, 0, 0, 2, true});
  EXPECT_EQ(kill(id).outcome, KillReply::Outcome::killed);
  pump_until(*followed, [] { return false; });
  EXPECT_EQ(followed->flow->channel().status(), ExitStatus::exited(0));
  EXPECT_EQ(followed->out, file(id, "job.out").substr(followed->offsets.first));
  expect_nothing_left();
}

TEST_P(JobFollow, TheLastLines) {
  const JobId id = start("i=0; while [ $i -lt 30000 ]; do echo line $i; i=$((i+1)); done; printf part");
  EXPECT_EQ(wait_end(id).result(), ExitStatus::exited(0));
  const std::string all = file(id, "job.out");
  for (const auto& [lines, text] : std::vector<std::pair<int, std::string>>{
           {0, ""}, {1, "part"}, {3, "line 29998\nline 29999\npart"}, {1000000, all}}) {
    const auto followed = follow({id, 0, 0, lines, false});
    pump_until(*followed, [] { return false; });
    EXPECT_TRUE(followed->out == text) << lines << followed->out.substr(0, 100);
    EXPECT_EQ(followed->offsets.first, all.size() - text.size());
    EXPECT_EQ(followed->offsets.second, 0U);
  }
}

TEST_P(JobFollow, SinceAMoment) {
  const JobId id = start("printf 'one\\ntwo\\nthree\\n'; echo e >&2");
  EXPECT_EQ(wait_end(id).result(), ExitStatus::exited(0));
  const auto now = now_seconds().time_since_epoch().count();
  std::ofstream(place() / ".jobs" / id.text() / "marks")
      << fmt::format("{}000 4 0\nnonsense\n{}000 6 0\n1 2\n{}000 8 2\n{}000 99 99\n", now - 500, now - 400,
                     now - 300, now - 200);
  const auto since = [&](int seconds) {
    const auto followed =
        follow({id, 0, 0, std::nullopt, false, false, std::nullopt, std::chrono::seconds(seconds)});
    pump_until(*followed, [] { return false; });
    EXPECT_EQ(followed->offsets.first + followed->out.size(), file(id, "job.out").size());
    return followed->out + "|" + followed->err;
  };
  EXPECT_EQ(since(1000), "one\ntwo\nthree\n|e\n");
  EXPECT_EQ(since(450), "two\nthree\n|e\n");
  EXPECT_EQ(since(350), "two\nthree\n|e\n");  // in the middle of a line, which is shown whole
  EXPECT_EQ(since(250), "three\n|");
  EXPECT_EQ(since(150), "|");  // lengths that the files have no more
  // Without notes there is the time of the last write alone.
  fs::remove(place() / ".jobs" / id.text() / "marks");
  EXPECT_EQ(since(450), "one\ntwo\nthree\n|e\n");
  fs::last_write_time(place() / ".jobs" / id.text() / "job.out",
                      fs::file_time_type::clock::now() - std::chrono::seconds(460));
  EXPECT_EQ(since(450), "|e\n");
}

// The terminal shows both: the stream that was written last comes last. busybox compares whole seconds.
TEST_P(JobFollow, WhatWasWrittenLastComesLast) {
  for (const char* command :
       {"echo first; sleep 1.1; echo last >&2", "echo first >&2; sleep 1.1; echo last"}) {
    SCOPED_TRACE(command);
    const JobId ended = start(command);
    const JobId running = start(command + std::string("; exec sleep 1000"));
    wait_end(ended);
    until(
        [&] {
          return file(running, "job.out") + file(running, "job.err") ==
                 file(ended, "job.out") + file(ended, "job.err");
        },
        "the lines of the job that runs");
    for (const JobId& id : {ended, running}) {
      const auto request =
          test::program_as("exec 2>&1;", follow_script(jobs_folder, {id, 0, 0, std::nullopt, id == running}));
      EXPECT_THAT(test::program_output(*connection, request), ::testing::EndsWith("\nfirst\nlast\n"));
    }
    kill(running);
  }
}

TEST_P(JobFollow, NoSuchJobIsAnError) {
  const std::string out = [&] {
    ssh::ExecRequest request;
    request.input = follow_script(jobs_folder, {JobId::random(), 0, 0, std::nullopt, true});
    const auto result = connection->exec(request);
    EXPECT_EQ(result.status, ExitStatus::exited(1));
    return result.out;
  }();
  EXPECT_THROW(parse_follow(trim(out)), Error);
}

TEST_P(JobFollow, AJobWhoseSupervisorDied) {
  const JobId id = start("printf one; while ! [ -e go ]; do sleep 0.2; done; echo two");
  const auto followed = follow({id, 0, 0, std::nullopt, true});
  pump_until(*followed, [&] { return followed->out == "one"; });
  ::kill(supervisor_of(id), SIGKILL);
  std::ofstream(place() / "go") << "";
  pump_until(*followed, [] { return false; });
  EXPECT_EQ(followed->out, "onetwo\n");
  EXPECT_EQ(status(id).phase, Phase::gone);
}

INSTANTIATE_TEST_SUITE_P(Shells, JobFollow, test::every_shell, test::shell_name);

}  // namespace
}  // namespace remote::jobs
