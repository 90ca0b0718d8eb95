#include "jobs/protocol.hpp"

#include <gtest/gtest.h>
#include <remote/error.hpp>

#include "jobs/trees.hpp"
#include "support/instants.hpp"
#include "support/noise.hpp"

namespace remote::jobs {
namespace {

using servers::read_answer;

const std::string id_a = "0123456789abcdef0123456789abcdef";
const std::string id_b = "ffffffffffffffffffffffffffffffff";
const JobId job_a = *JobId::parse(id_a);

TEST(Protocol, StartRepliesAreRead) {
  const auto replies =
      read_answer<StartAnswer>("Welcome!\n@remote1 start " + id_a + " started 4121\nnoise\n@remote1 start " +
                               id_b + " exists -\n@remote1 start " + id_a +
                               " failed - mkdir: no space left\n@remote1 end\n")
          .jobs;
  ASSERT_EQ(replies.size(), 3U);
  EXPECT_EQ(replies[0].id, job_a);
  EXPECT_EQ(replies[0].outcome, StartReply::Outcome::started);
  EXPECT_EQ(replies[0].pid, 4121);
  EXPECT_EQ(replies[1].outcome, StartReply::Outcome::exists);
  EXPECT_FALSE(replies[1].pid);
  EXPECT_EQ(replies[2].outcome, StartReply::Outcome::failed);
  EXPECT_EQ(replies[2].reason, "mkdir: no space left");
}

TEST(Protocol, AnswersAboutATreeAreRead) {
  EXPECT_TRUE(read_answer<TreeAnswer>("@remote1 tree ready\n@remote1 end\n").ready);
  EXPECT_TRUE(read_answer<TreeAnswer>("@remote1 tree unknown\n@remote1 end\n").unknown);
  const auto answer = read_answer<TreeAnswer>(
      "@remote1 tree differs a b.py\n@remote1 tree differs \033[2Jc\n@remote1 tree more 7\n@remote1 end\n");
  ASSERT_EQ(answer.differing.size(), 2U);
  EXPECT_EQ(answer.differing[0], "a b.py");
  EXPECT_EQ(answer.differing[1].find('\033'), std::string::npos);
  EXPECT_EQ(answer.more, 7);
  EXPECT_EQ(read_answer<TreeAnswer>("@remote1 tree fail full\n@remote1 end\n").failure, "full");
  for (const char* wrong : {"", "@remote1 tree\n", "@remote1 tree ready 1\n", "@remote1 tree differs\n",
                            "@remote1 tree more -1\n", "@remote1 start x\n"}) {
    EXPECT_THROW(read_answer<TreeAnswer>(std::string(wrong) + "@remote1 end\n"), Error) << wrong;
  }
}

TEST(Protocol, StatusIsRead) {
  const auto answer = read_answer<StatusAnswer>(
      "@remote1 now 1763712000\n@remote1 job " + id_a +
      " ended pid=7 supervised=0 end=signal:9:12042:supervisor started=11 stop=15 "
      "by=a%20b%25 at=11999 oom=1 out=5000000000 err=0\n"
      "@remote1 job " +
      id_b + " none\n@remote1 job " + id_a + " running pid=8 left=1 out=0 err=0\n@remote1 end\n");
  EXPECT_EQ(answer.server_now, instant(1763712000));
  ASSERT_EQ(answer.jobs.size(), 3U);
  const StatusReply& job = answer.jobs[0];
  EXPECT_EQ(job.phase, StatusReply::Phase::ended);
  EXPECT_EQ(job.pid, 7);
  EXPECT_FALSE(job.supervised);
  ASSERT_TRUE(job.end);
  EXPECT_EQ(job.end->status, ExitStatus::signalled(9));
  EXPECT_EQ(job.end->at, exact_instant(12042));
  EXPECT_EQ(job.end->by, "supervisor");
  EXPECT_EQ(job.started_at, instant(11));
  EXPECT_EQ(job.stopped_at, exact_instant(11999));
  EXPECT_EQ(job.stop_signal, 15);
  EXPECT_EQ(job.stop_by, (JobReason{.kind = JobReason::Kind::by_user, .text = "a b%"}));
  EXPECT_TRUE(job.oom);
  EXPECT_EQ(job.out_size, 5000000000U);
  EXPECT_FALSE(job.left);
  EXPECT_EQ(answer.jobs[1].phase, StatusReply::Phase::none);
  EXPECT_TRUE(answer.jobs[2].left);
}

TEST(Protocol, WhoEndedAJobIsOneWord) {
  using Kind = JobReason::Kind;
  const auto user = [](std::string name) {
    return JobReason{.kind = Kind::by_user, .text = std::move(name)};
  };
  const JobReason rank{.kind = Kind::after_rank, .number = 12};
  const JobReason loss{.kind = Kind::after_loss, .text = "b é: %41"};
  const JobReason hang{.kind = Kind::after_hang, .number = 90};
  EXPECT_EQ(parse_by("hang:90"), hang);
  EXPECT_EQ(parse_by("hang:x"), user("hang:x"));
  EXPECT_EQ(parse_by("rank:12"), rank);
  EXPECT_EQ(parse_by("lost:b%20%C3%A9%3A%20%2541"), loss);
  EXPECT_EQ(parse_by("launch"), JobReason{.kind = Kind::by_launch});
  EXPECT_EQ(parse_by("user:rank%202"), user("rank 2"));
  EXPECT_EQ(parse_by("user:launch"), user("launch"));
  EXPECT_EQ(parse_by("user:a%3Ab"), user("a:b"));
  EXPECT_EQ(parse_by("user:-"), user(""));
  EXPECT_EQ(parse_by("rank:x"), user("rank:x"));
  EXPECT_FALSE(parse_by("user:%4"));
  for (const JobReason& by : {rank, loss, hang, JobReason{.kind = Kind::by_launch}, user("rank 2"),
                              user("launch"), user("a:b"), user("")}) {
    EXPECT_EQ(parse_by(by_word(by)), by) << by_word(by);
  }
  // of older builds
  EXPECT_EQ(parse_by("rank%2012"), rank);
  EXPECT_EQ(parse_by("loss%20of%20b%20%C3%A9%3A%20%2541"), loss);
  EXPECT_EQ(parse_by("ada@laptop"), user("ada@laptop"));
  EXPECT_EQ(parse_by("rank%20x"), user("rank x"));
  EXPECT_EQ(parse_by("-"), user(""));
}

TEST(Protocol, WhenALaunchStoodStillIsRead) {
  const auto hung_in = [](const std::string& word) {
    return read_answer<StatusAnswer>("@remote1 now 1763712000\n@remote1 job " + id_a +
                                     " running hung=" + word + " out=0 err=9\n@remote1 end\n")
        .jobs.front()
        .hung;
  };
  EXPECT_EQ(hung_in("1763711000:1800:"),
            (Hung{.at = instant(1763711000), .stood = std::chrono::minutes(30)}));
  EXPECT_EQ(
      hung_in("1763711000:1800:1763711500"),
      (Hung{.at = instant(1763711000), .stood = std::chrono::minutes(30), .moved_at = instant(1763711500)}));
  for (const char* word : {"1:2", "x:2:", "1:-2:", "1:2:x", "9999999999999:2:"}) {
    EXPECT_THROW(hung_in(word), Error) << word;
  }
}

TEST(Protocol, PartsOfASecondAreRead) {
  const auto answer =
      read_answer<StatusAnswer>("@remote1 now 1763712000.042\n@remote1 job " + id_a +
                                " ended end=exit:1:12007:- wrote=11.900 raised=11800 out=0 err=9\n"
                                "@remote1 job " +
                                id_b + " ended end=exit:1::- out=0 err=9\n@remote1 end\n");
  EXPECT_EQ(answer.server_now, exact_instant(1763712000042));
  EXPECT_TRUE(answer.exact);
  EXPECT_EQ(answer.jobs.at(0).wrote_at, exact_instant(11900));
  EXPECT_EQ(answer.jobs.at(0).raised_at, exact_instant(11800));
  EXPECT_EQ(answer.jobs.at(0).end->at, exact_instant(12007));
  EXPECT_FALSE(answer.jobs.at(1).wrote_at);
  EXPECT_FALSE(answer.jobs.at(1).end->at);
  EXPECT_FALSE(read_answer<StatusAnswer>("@remote1 now 1763712000\n@remote1 end\n").exact);
  for (const std::string moment :
       {"", "1", "1.", "1.2", "1.23", "1.2345", ".123", "-1.123", "1.-12", "-0.123", "1.2.3", "+1.123",
        "1.12a", "0x1.123", "99999999999999.000", "99999999999999999999.000", "nan"}) {
    EXPECT_THROW(read_answer<StatusAnswer>("@remote1 now 1\n@remote1 job " + id_a +
                                           " ended end=exit:1:1:- wrote=" + moment + "\n@remote1 end\n"),
                 Error)
        << moment;
    if (moment != "1") {
      EXPECT_THROW(read_answer<StatusAnswer>("@remote1 now " + moment + "\n@remote1 end\n"), Error) << moment;
    }
  }
}

TEST(Protocol, WhatWaitsInADebuggerIsRead) {
  const std::string job = "@remote1 now 1\n@remote1 job " + id_a + " running pid=7 out=0 err=0\n";
  const auto read = [&](const std::string& line) {
    return read_answer<StatusAnswer>(job + "@remote1 waits " + line + "\n@remote1 end\n").jobs.at(0).waits;
  };
  EXPECT_EQ(read(id_a + " 1.7 3 88 - |my train.py"),
            (std::vector<DebuggerWait>{{"1.7", 3, "my train.py", 88, ""}}));
  EXPECT_EQ(read(id_a + " 12.7 - 90 ValueError ||"),
            (std::vector<DebuggerWait>{{"12.7", std::nullopt, "|", 90, "ValueError"}}));
  for (const std::string& line :
       {id_b + " 1.7 3 88 - |x", id_a + " ../x 3 88 - |x", id_a + " 1.7 x 88 - |x", id_a + " 1.7 3 x - |x",
        id_a + " 1.7 3 88 - x", id_a + " 1.7 3 88", std::string()}) {
    EXPECT_THROW(read(line), Error) << line;
  }
  // of a job that does not run
  EXPECT_THROW(read_answer<StatusAnswer>("@remote1 now 1\n@remote1 job " + id_a +
                                         " starting out=0 err=0\n@remote1 waits " + id_a +
                                         " 1.7 3 88 - |x\n@remote1 end\n"),
               Error);
}

TEST(Protocol, AttemptsAreRead) {
  const auto read = [&](const std::string& line) {
    return read_answer<StatusAnswer>("@remote1 now 1\n@remote1 job " + id_a +
                                     " ended end=exit:0:9000:supervisor out=0 err=0\n@remote1 attempt " +
                                     line + "\n@remote1 end\n")
        .jobs.at(0)
        .attempts;
  };
  Attempt attempt{.number = 1,
                  .began_at = instant(1),
                  .failed_at = instant(2),
                  .next_at = instant(3),
                  .cause = RestartCause::exit};
  attempt.rank = 3;
  attempt.server = "my gpu";
  attempt.result = ExitStatus::exited(7);
  EXPECT_EQ(read(id_a + " 1 1000 2500 3000 exit 7 3 0 my%20gpu"), std::vector<Attempt>{attempt});
  attempt.cause = RestartCause::oom;
  attempt.result = ExitStatus::signalled(9);
  attempt.left_out = true;
  EXPECT_EQ(read(id_a + " 1 1000 2500 3000 oom 9 3 1 my%20gpu"), std::vector<Attempt>{attempt});
  attempt = {.number = 2,
             .began_at = instant(1),
             .failed_at = instant(2),
             .next_at = instant(3),
             .cause = RestartCause::lost};
  attempt.server = "b";
  EXPECT_EQ(read(id_a + " 2 1000 2000 3000 lost - - 0 b"), std::vector<Attempt>{attempt});
  for (const std::string& line :
       {id_b + " 1 1 2 3 lost - - 0 b", id_a + " 0 1 2 3 lost - - 0 b", id_a + " 1 x 2 3 lost - - 0 b",
        id_a + " 1 1 2 3 boredom - - 0 b", id_a + " 1 1 2 3 exit 256 0 0 b", id_a + " 1 1 2 3 lost - - 0",
        id_a + " 1 1 2 3 lost - - 0 %zz", id_a + " 1 1 2 3 lost - - 0 b c"}) {
    EXPECT_THROW(read(line), Error) << line;
  }
}

TEST(Protocol, KillRepliesAreRead) {
  const auto answer = read_answer<KillAnswer>(
      "@remote1 now 5\n@remote1 kill " + id_a + " killed 3\n@remote1 kill " + id_b +
      " survivors 2\n@remote1 survivor " + id_b + " 4121 D ada (python3 (x) y)\n@remote1 job " + id_a +
      " ended end=signal:15:1000:supervisor\n@remote1 end\n");
  ASSERT_EQ(answer.status.jobs.size(), 1U);
  EXPECT_THROW(read_answer<KillAnswer>("@remote1 kill " + id_a + " killed 3\n@remote1 end\n"), Error);
  EXPECT_EQ(answer.status.jobs[0].phase, StatusReply::Phase::ended);
  EXPECT_EQ(answer.status.server_now, instant(5));
  EXPECT_GT(answer.status.told_at, ExactInstant());
  const auto& replies = answer.jobs;
  ASSERT_EQ(replies.size(), 2U);
  EXPECT_EQ(replies[0].outcome, KillReply::Outcome::killed);
  EXPECT_EQ(replies[0].signalled, 3);
  EXPECT_EQ(replies[1].outcome, KillReply::Outcome::survivors);
  ASSERT_EQ(replies[1].survivors.size(), 1U);
  EXPECT_EQ(replies[1].survivors[0], "pid 4121 ((python3 (x) y), user ada, state D)");
}

TEST(Protocol, WhatMayBeOfAKilledJobIsRead) {
  const auto reply =
      read_answer<KillAnswer>("@remote1 now 5\n@remote1 kill " + id_a + " killed 3\n@remote1 suspect " +
                              id_a + " 4121 its+files+may+not+be+read S ada ssh-agent\n@remote1 end\n")
          .jobs.at(0);
  ASSERT_EQ(reply.suspects.size(), 1U);
  EXPECT_EQ(reply.suspects[0], "pid 4121 (ssh-agent, user ada, state S): its files may not be read");
  EXPECT_THROW(
      read_answer<KillAnswer>("@remote1 now 5\n@remote1 suspect " + id_a + " 1 why S ada x\n@remote1 end\n"),
      Error);
}

TEST(Protocol, FollowLineIsRead) {
  EXPECT_FALSE(parse_follow("Welcome"));
  EXPECT_EQ(parse_follow("@remote1 follow 12 0"), std::pair(std::uint64_t{12}, std::uint64_t{0}));
  EXPECT_THROW(parse_follow("@remote1 follow 12"), Error);
  EXPECT_THROW(parse_follow("@remote1 error the server has no job x"), Error);
}

TEST(Protocol, WhatIsNotUnderstoodIsAnError) {
  const std::string end = "@remote1 end\n";
  const std::string now = "@remote1 now 1\n";
  for (const std::string& bad : std::vector<std::string>{
           "", "hello\n", "@remote1 end", "@remote1 \n" + end, "@remote1 nonsense\n" + end,
           "@remote1 start " + id_a + " started\n" + end, "@remote1 start " + id_a + " started 0\n" + end,
           "@remote1 start " + id_a + " started -5\n" + end,
           "@remote1 start " + id_a + " started 5 6\n" + end,
           "@remote1 start " + id_a + " started 5x\n" + end, "@remote1 start x started 5\n" + end,
           "@remote1 start " + id_a + " started  5\n" + end, "@remote1 start " + id_a + " started 5 \n" + end,
           "@remote1 start " + id_a + " started 99999999999999999999\n" + end, end + "@remote1 start x\n",
           end + end, "@remote1 error no right\n" + end}) {
    EXPECT_THROW(read_answer<StartAnswer>(bad), Error) << bad;
  }
  for (const std::string& bad : std::vector<std::string>{
           end, now, "@remote1 job " + id_a + " none\n" + end, now + "@remote1 job " + id_a + "\n" + end,
           now + "@remote1 job " + id_a + " walking\n" + end, now + "@remote1 job " + id_a + " ended\n" + end,
           now + "@remote1 job " + id_a + " ended end=exit:256:1:-\n" + end,
           now + "@remote1 job " + id_a + " ended end=signal:0:1:-\n" + end,
           now + "@remote1 job " + id_a + " ended end=never:0:1:-\n" + end,
           now + "@remote1 job " + id_a + " ended end=exit:1\n" + end,
           now + "@remote1 job " + id_a + " ended end=exit:1:-1:-\n" + end,
           now + "@remote1 job " + id_a + " running pid\n" + end,
           now + "@remote1 job " + id_a + " running pid=1 colour=red\n" + end,
           now + "@remote1 job " + id_a + " running by=%4\n" + end,
           now + "@remote1 job " + id_a + " running by=%zz\n" + end,
           now + "@remote1 job " + id_a + " running started=253402300801\n" + end,
           "@remote1 now 253402300801\n" + end,  // in the year 10000
           now + "@remote1 job " + id_a + " running out=-1\n" + end}) {
    EXPECT_THROW(read_answer<StatusAnswer>(bad), Error) << bad;
  }
  EXPECT_THROW(read_answer<KillAnswer>(now + "@remote1 survivor " + id_a + " 5 D u c\n" + end), Error);
  EXPECT_THROW(read_answer<KillAnswer>(now + "@remote1 kill " + id_a + " killed x\n" + end), Error);
}

TEST(Protocol, AnErrorShowsItsLineWithoutControlCharacters) {
  try {
    read_answer<StartAnswer>("@remote1 \x1b[2Jstart\n@remote1 end\n").jobs;
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message().find('\x1b'), std::string::npos);
    EXPECT_NE(error.message().find("start"), std::string::npos);
  }
}

// Any bytes give a value or an Error, nothing else.
TEST(Protocol, SurvivesNoise) {
  std::mt19937 random(7);  // NOLINT: the same noise every time
  const std::string good = "@remote1 now 1\n@remote1 job " + id_a +
                           " ended pid=7 end=exit:3:5:slurm@n1 by=a%20b stop=15 out=1 err=2\n@remote1 kill " +
                           id_b + " survivors 2\n@remote1 survivor " + id_b + " 4 D ada x\n@remote1 start " +
                           id_a + " failed - why\n@remote1 follow 1 2\n@remote1 end\n";
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {  // the fuzzers do more
    const std::string text = test::damaged(good, random);
    const auto attempt = [&](auto parse) {
      try {
        parse(text);
      } catch (const Error&) {
        ++refused;
      }
    };
    attempt([](std::string_view out) { read_answer<StartAnswer>(out); });
    attempt([](std::string_view out) { read_answer<StatusAnswer>(out); });
    attempt([](std::string_view out) { read_answer<KillAnswer>(out); });
    attempt(parse_follow);
  }
  EXPECT_GT(refused, 1000);
}

TEST(Protocol, WrongNamesNeverReachAServer) {
  EXPECT_THROW(kill_action({"~/p", ".jobs"}, {job_a}, {0, 1, ""}), Error);
  EXPECT_THROW(kill_action({"~/p", ".jobs"}, {job_a}, {65, 1, ""}), Error);
  for (const char* name : {"", "1A", "A-B", "A B", "A=B", "É", "REMOTE_JOB_ID", "UID", "PPID"}) {
    EXPECT_THROW(start_action({"~/p", ".jobs"}, {{job_a, "true", "", {{name, "x"}}}}), Error) << name;
  }
  EXPECT_THROW(start_action({"~/p", ".jobs"}, {{job_a, std::string("a\0b", 3), "", {}}}), Error);
}

TEST(Protocol, RequestsAreShortAndClosed) {
  for (const std::string& script : {start_action({"~/p", ".jobs"}, {{job_a, "true", "", {}}}).script.input(),
                                    status_action({"~/p", ".jobs"}, {job_a}, {}).script.input(),
                                    kill_action({"~/p", ".jobs"}, {job_a}, {15, 1, "me"}).script.input(),
                                    follow_script({"~/p", ".jobs"}, {job_a, 0, 0, {}, true})}) {
    EXPECT_TRUE(script.ends_with("\n.null\n") || script.ends_with("\n.open\n")) << script;
    EXPECT_LT(script.size(), 1000U);
  }
}

}  // namespace
}  // namespace remote::jobs
