#include <gtest/gtest.h>

#include "restart_world.hpp"
#include "seeds.hpp"

namespace remote::simulation {
namespace {

constexpr int steps = 300;

struct Played {
  bool two_attempts = false;  // were alive at the same time
  int restarts = 0;
};

Played play(std::uint64_t seed, const rules::RestartTimes& times, bool kills_guards = false) {
  WorldOptions options;
  options.kills_guards = kills_guards;
  options.servers = seed % 2 == 1 ? 3 : 5;
  options.spares = static_cast<int>(seed / 2 % 3);
  options.times = times;
  RestartWorld world(seed, options);
  try {
    for (int i = 0; i < steps; ++i) {
      world.step();
      world.make_trouble();
      if (world.living_attempts().size() > 1) {
        return {true, world.restarts};
      }
    }
  } catch (const std::logic_error&) {
    return {true, world.restarts};
  }
  return {false, world.restarts};
}

const rules::RestartTimes short_times{.longest_kill = Seconds(3), .longest_pause = Seconds(1)};

// The first seed below `seeds` with ranks of two attempts alive at the same time.
std::optional<std::uint64_t> find_overlap(std::uint64_t seeds, const rules::RestartTimes& times) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    if (play(seed, times).two_attempts) {
      return seed;
    }
  }
  return std::nullopt;
}

TEST(SimulatedRestarts, NeverHaveTwoLivingAttempts) {
  const std::uint64_t seeds = count_seeds();
  std::uint64_t restarts = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const Played played = play(seed, short_times);
    ASSERT_FALSE(played.two_attempts) << "seed " << seed;
    restarts += static_cast<std::uint64_t>(played.restarts);
  }
  EXPECT_GT(restarts, seeds);
}

TEST(SimulatedRestarts, NeverHaveTwoLivingAttemptsWhenGuardsAreKilled) {
  const std::uint64_t seeds = count_seeds();
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    ASSERT_FALSE(play(seed, short_times, true).two_attempts) << "seed " << seed;
  }
}

TEST(SimulatedRestarts, NeedLeasesThatCountFromTheQuestion) {
  rules::RestartTimes times = short_times;
  times.lease_counts_from_question = false;
  EXPECT_TRUE(find_overlap(1000, times));
}

TEST(SimulatedRestarts, NeedToWaitForTheLeasesOfSilentMembers) {
  rules::RestartTimes times = short_times;
  times.waits_for_silent_leases = false;
  EXPECT_TRUE(find_overlap(1000, times));
}

TEST(SimulatedRestarts, NeedARevivedCoordinatorToWait) {
  rules::RestartTimes times = short_times;
  times.revived_coordinator_waits = false;
  EXPECT_TRUE(find_overlap(1000, times));
}

// No message is delayed or lost unless a test does so.
class QuietWorld : public RestartWorld {
 public:
  explicit QuietWorld(WorldOptions wanted) : RestartWorld(1, without_delay(std::move(wanted))) {}

  template <typename Condition>
  bool reaches(const Condition& condition) {
    for (int i = 0; i < steps; ++i) {
      if (condition()) {
        return true;
      }
      step();
      if (living_attempts().size() > 1) {
        return false;
      }
    }
    return false;
  }
  bool reaches_second(double second) {
    return reaches([&] { return now > Seconds(second); });
  }

 private:
  static WorldOptions without_delay(WorldOptions wanted) {
    wanted.longest_delay = Seconds(0);
    return wanted;
  }
};

constexpr wire::Ending exit_9{wire::EndKind::exit, 9};

const wire::RankFailure* rank_failure(const RecordedAttempt& attempt) {
  return std::get_if<wire::RankFailure>(&attempt.cause);
}

TEST(Restarts, GiveThePlaceOfALostServerToASpare) {
  QuietWorld world({.servers = 3, .spares = 2, .least = 3});
  ASSERT_TRUE(world.reaches_second(5));
  EXPECT_TRUE(world.lives(1, {"s0", "s1", "s2"}));
  world.lose("s1");
  ASSERT_TRUE(world.reaches([&] { return world.lives(2, {"s0", "s2", "s3"}); }));
  const wire::Shape spare = world.server(3).starts.front();
  EXPECT_EQ(spare.world_size, 3);
  EXPECT_EQ(spare.first_rank, 1);  // the ranks of s1
  EXPECT_EQ(spare.node_rank, 1);
  EXPECT_EQ(world.server(2).starts.front().first_rank, 2);  // unchanged
  world.server(3).fail(exit_9);
  ASSERT_TRUE(world.reaches([&] { return world.lives(3, {"s0", "s2", "s3"}); }));
  ASSERT_EQ(world.attempts.size(), 2U);
  EXPECT_EQ(world.attempts[0].cause, wire::Cause(wire::ServerLoss{"s1"}));
  EXPECT_EQ(world.attempts[0].without, std::vector<std::string>{"s1"});
  EXPECT_EQ(rank_failure(world.attempts[1])->server, "s3");
}

TEST(Restarts, MissAServerThatIsLostBeforeItsFirstQuestion) {
  QuietWorld world({.servers = 2, .least = 1});
  world.server(0).hear("s1", wire::Hello{});
  world.drop_mail();
  world.lose("s1");
  EXPECT_TRUE(world.reaches([&] { return world.lives(2, {"s0"}); }));
}

TEST(Restarts, WaitForMembersThatHaveNotCome) {
  for (const bool comes : {true, false}) {
    QuietWorld world({.servers = 2, .least = 2});
    world.drop_mail();
    world.lose("s1");
    world.server(0).fail(exit_9);
    ASSERT_TRUE(world.reaches_second(3));
    EXPECT_FALSE(world.server(0).released);
    if (comes) {
      world.mend();
    }
    ASSERT_TRUE(world.reaches([&] { return world.server(0).released || world.lives(2, {"s0", "s1"}); }));
    EXPECT_EQ(world.lives(2, {"s0", "s1"}), comes);
    EXPECT_EQ(world.server(0).no_restart, comes ? std::nullopt : std::optional(NoRestart::unreached));
  }
}

TEST(Restarts, DoNotMissALostSpare) {
  QuietWorld world({.servers = 2, .spares = 1});
  ASSERT_TRUE(world.reaches_second(5));
  world.lose("s2");
  ASSERT_TRUE(world.reaches_second(20));
  EXPECT_TRUE(world.lives(1, {"s0", "s1"}));
  world.server(1).fail(exit_9);
  ASSERT_TRUE(world.reaches([&] { return world.lives(2, {"s0", "s1"}); }));
  world.server(0).end_round({wire::EndKind::exit, 0});
  world.server(1).end_round({wire::EndKind::exit, 0});
  EXPECT_TRUE(world.reaches([&] { return world.server(0).released && world.server(1).released; }));
  EXPECT_EQ(world.server(0).no_restart, std::nullopt) << "all ranks succeeded";
}

TEST(Restarts, LeaveOutAServerThatFailsTwiceByItself) {
  QuietWorld world({.servers = 2, .spares = 1, .least = 2});
  world.server(1).mark = "gpu";
  for (const int attempt : {1, 2}) {
    ASSERT_TRUE(world.reaches([&] { return world.lives(attempt, {"s0", "s1"}); }));
    world.server(1).fail(exit_9);
    ASSERT_TRUE(world.reaches([&] { return !world.server(1).lives; }));
  }
  ASSERT_TRUE(world.reaches([&] { return world.lives(3, {"s0", "s2"}); }));
  ASSERT_TRUE(world.reaches([&] { return world.server(1).released; }));
  EXPECT_EQ(world.sick, std::set<std::string>{"s1"});
  ASSERT_TRUE(world.reaches_second(world.now.count() + 20));
  EXPECT_TRUE(world.lives(3, {"s0", "s2"}));  // its end does not end the others
  ASSERT_EQ(world.attempts.size(), 2U);
  EXPECT_FALSE(world.attempts[0].sick);
  EXPECT_TRUE(world.attempts[1].sick);
}

TEST(Restarts, CountEachSicknessByItself) {
  QuietWorld world({.servers = 2, .spares = 1, .least = 2});
  int attempt = 1;
  for (const char* mark : {"gpu", "disk", "m1"}) {
    ASSERT_TRUE(world.reaches([&] { return world.lives(attempt, {"s0", "s1"}); }));
    world.server(1).mark = mark;
    world.server(1).fail(exit_9);
    ASSERT_TRUE(world.reaches([&] { return !world.server(1).lives; }));
    ++attempt;
  }
  EXPECT_TRUE(world.reaches([&] { return world.lives(4, {"s0", "s1"}); }));
  EXPECT_TRUE(world.sick.empty());
}

TEST(Restarts, NeverLeaveOutTheFirstServer) {
  QuietWorld world({.servers = 2, .spares = 1});
  world.server(0).mark = "gpu";
  ASSERT_TRUE(world.reaches_second(3));
  world.server(0).fail(exit_9);
  ASSERT_TRUE(world.reaches([&] { return world.lives(2, {"s0", "s1"}); }));
  world.server(0).fail({wire::EndKind::signal, 11});
  EXPECT_TRUE(world.reaches([&] { return world.lives(3, {"s0", "s1"}); }));
  EXPECT_TRUE(world.sick.empty());
}

TEST(Restarts, EndWithoutASpareForASickServer) {
  QuietWorld world({.servers = 2, .least = 2});
  world.server(1).mark = "gpu";
  for (const int attempt : {1, 2}) {
    ASSERT_TRUE(world.reaches([&] { return world.lives(attempt, {"s0", "s1"}) && world.now > Seconds(3); }));
    world.server(1).fail(exit_9);
    ASSERT_TRUE(world.reaches([&] { return !world.server(1).lives; }));
  }
  ASSERT_TRUE(world.reaches([&] { return world.server(0).released && world.server(1).released; }));
  EXPECT_EQ(world.server(0).policy->reason(), wire::EndReason(wire::RankEnded{1}));
  EXPECT_EQ(world.server(0).no_restart, NoRestart::too_few_servers);
}

TEST(Restarts, BlameTheCauseOfAPeersFailure) {
  QuietWorld world({.servers = 2, .least = 2, .final_codes = {7}});
  world.server(0).after_peer = true;
  world.server(1).mark = "m1";
  ASSERT_TRUE(world.reaches_second(5));
  world.server(0).fail({wire::EndKind::exit, 1});
  world.step();
  world.server(1).fail({wire::EndKind::exit, 3});
  ASSERT_TRUE(world.reaches([&] { return world.lives(2, {"s0", "s1"}); }));
  EXPECT_EQ(world.attempts[0].cause,
            wire::Cause(wire::RankFailure{1, "s1", {wire::EndKind::exit, 3}, false, "m1"}));
  ASSERT_TRUE(world.reaches_second(10));
  world.server(0).fail({wire::EndKind::exit, 1});
  world.step();
  world.server(1).fail({wire::EndKind::exit, 7});  // no attempt follows after this exit code
  ASSERT_TRUE(world.reaches([&] { return world.server(1).released; }));
  EXPECT_EQ(world.server(0).policy->reason(), wire::EndReason(wire::RankEnded{1}));
  EXPECT_EQ(world.server(0).no_restart, NoRestart::exit_code);
  EXPECT_EQ(world.server(1).no_restart, std::nullopt) << "the first server has decided";
}

TEST(Restarts, DoNotDecideByAFailureAfterAPeers) {
  QuietWorld world({.servers = 2, .most = 3, .least = 2, .kinds = {.signal = true}});
  ASSERT_TRUE(world.reaches_second(5));
  world.server(0).after_peer = true;
  world.server(0).fail({wire::EndKind::exit, 1});  // this alone would not be followed by another attempt
  world.step();
  world.server(1).fail({wire::EndKind::signal, 9});
  ASSERT_TRUE(world.reaches([&] { return world.lives(2, {"s0", "s1"}); }));
  EXPECT_EQ(rank_failure(world.attempts[0])->rank, 1);
  world.server(0).fail({wire::EndKind::exit, 1});
  EXPECT_TRUE(world.reaches([&] { return world.server(1).released; }));
  EXPECT_EQ(world.server(0).no_restart, NoRestart::cause);
}

// With mpirun, ranks are stopped before the server of the cause has reported it.
TEST(Restarts, WaitForTheCauseOnAServerWhoseRanksRun) {
  QuietWorld world({.servers = 2, .least = 2});
  ASSERT_TRUE(world.reaches_second(5));
  world.server(0).after_peer = true;
  world.server(0).fail({wire::EndKind::signal, 15});
  ASSERT_TRUE(world.reaches_second(8));
  world.server(1).fail({wire::EndKind::exit, 3});
  ASSERT_TRUE(world.reaches([&] { return world.lives(2, {"s0", "s1"}); }));
  EXPECT_EQ(rank_failure(world.attempts[0])->rank, 1);
}

// As when a provider reclaims a machine.
TEST(Restarts, FollowALossThatASigtermAnnounced) {
  for (const wire::Ending& told : {wire::Ending{wire::EndKind::signal, 15}, {wire::EndKind::exit, 143}}) {
    for (const bool goes : {true, false}) {
      QuietWorld world({.servers = 2, .spares = 1, .least = 2, .kinds = {.lost = true}});
      ASSERT_TRUE(world.reaches_second(5));
      world.server(1).fail(told);
      ASSERT_TRUE(world.reaches_second(25));
      EXPECT_FALSE(world.server(0).released);
      if (goes) {
        world.lose("s1");
      }
      ASSERT_TRUE(world.reaches([&] { return world.server(0).released || world.lives(2, {"s0", "s2"}); }));
      EXPECT_EQ(world.lives(2, {"s0", "s2"}), goes);
      EXPECT_EQ(world.server(0).no_restart, goes ? std::nullopt : std::optional(NoRestart::cause));
      if (goes) {
        EXPECT_EQ(world.attempts.at(0).cause, wire::Cause(wire::ServerLoss{"s1"}));
      }
    }
  }
}

// If a provider kills everything on a server, its supervisor may be started again before the machine is gone.
TEST(Restarts, LeaveOutAServerWhoseGuardsWereKilled) {
  for (const bool ended : {true, false}) {
    QuietWorld world({.servers = 2, .spares = 1, .least = 2, .kinds = {.lost = true}});
    ASSERT_TRUE(world.reaches_second(5));
    if (ended) {
      world.server(1).end_round({wire::EndKind::exit, 0});  // it has saved a checkpoint
      ASSERT_TRUE(world.reaches_second(8));
    }
    world.server(1).lose_guard();
    world.server(1).revive();
    ASSERT_TRUE(world.reaches([&] { return world.lives(2, {"s0", "s2"}); })) << ended;
    EXPECT_EQ(world.attempts.at(0).cause, wire::Cause(wire::ServerLoss{"s1"}));
    EXPECT_EQ(world.attempts.at(0).without, std::vector<std::string>{"s1"});
  }
}

TEST(Restarts, LeaveOutAServerThatCannotStartAnother) {
  QuietWorld world({.servers = 2, .spares = 1, .least = 2});
  ASSERT_TRUE(world.reaches_second(5));
  world.server(1).end_round({wire::EndKind::exit, 0});
  ASSERT_TRUE(world.reaches_second(8));
  world.server(1).lose_guard();
  world.server(0).fail(exit_9);
  ASSERT_TRUE(world.reaches([&] { return world.lives(2, {"s0", "s2"}); }));
  EXPECT_EQ(rank_failure(world.attempts.at(0))->server, "s0");
  EXPECT_EQ(world.attempts.at(0).without, std::vector<std::string>{"s1"});
}

TEST(Restarts, EndWhenTheGuardsOfTheCoordinatorWereKilled) {
  QuietWorld world({.servers = 2, .spares = 1, .least = 2});
  ASSERT_TRUE(world.reaches_second(5));
  world.server(0).lose_guard();
  ASSERT_TRUE(world.reaches([&] { return world.server(0).released && world.server(1).released; }));
  EXPECT_EQ(world.server(0).no_restart, NoRestart::unfinished);
}

TEST(Restarts, EndAfterTheSameFailureTwice) {
  for (const bool progresses : {false, true}) {
    QuietWorld world({.servers = 2, .most = 5, .least = 2});
    world.server(1).mark = "m1";
    for (const int attempt : {1, 2}) {
      world.checkpoint = progresses ? "c" + std::to_string(attempt) : "";
      ASSERT_TRUE(world.reaches([&] {
        return world.lives(attempt, {"s0", "s1"}) && world.now > Seconds(5);
      }));
      world.server(1).fail(exit_9);
      ASSERT_TRUE(world.reaches([&] { return !world.server(1).lives; }));
    }
    ASSERT_TRUE(world.reaches([&] { return world.server(1).released || world.lives(3, {"s0", "s1"}); }));
    EXPECT_EQ(world.server(1).released, !progresses);
    EXPECT_EQ(world.server(0).no_restart, progresses ? std::nullopt : std::optional(NoRestart::repeated));
  }
}

TEST(Restarts, FollowAFailureAlsoWhenMpirunHangs) {
  for (const unsigned server : {0U, 1U}) {
    QuietWorld world({.servers = 2, .most = 1, .least = 2});
    ASSERT_TRUE(world.reaches_second(5));
    world.server(server).fail_a_rank(exit_9);
    ASSERT_TRUE(world.reaches_second(30));
    EXPECT_TRUE(world.lives(1, {"s0", "s1"}));
    ASSERT_TRUE(world.reaches([&] { return world.lives(2, {"s0", "s1"}); }));
    EXPECT_EQ(rank_failure(world.attempts[0])->server, "s" + std::to_string(server));
    world.server(server).fail_a_rank(exit_9);
    EXPECT_TRUE(world.reaches([&] { return world.server(0).released && world.server(1).released; }));
  }
}

TEST(Restarts, EndWhenTheCoordinatorIsLost) {
  QuietWorld world({.servers = 2, .most = 3, .least = 1});
  ASSERT_TRUE(world.reaches_second(5));
  world.lose("s0");
  ASSERT_TRUE(world.reaches([&] { return world.server(1).released; }));
  EXPECT_EQ(world.server(1).no_restart, NoRestart::coordinator_lost);
}

TEST(Restarts, EndWhenAUserStopsAJob) {
  QuietWorld world({.servers = 2, .least = 2, .grace = Seconds(5)});
  ASSERT_TRUE(world.reaches_second(5));
  world.server(0).fail({wire::EndKind::exit, 1});  // because of the stop, but reported first
  world.step();
  world.server(1).stop();
  ASSERT_TRUE(world.reaches([&] { return world.server(0).released && world.server(1).released; }));
  EXPECT_EQ(world.restarts, 0);
  EXPECT_FALSE(world.server(0).policy->reason());
  EXPECT_EQ(world.server(0).no_restart, NoRestart::stopped);
}

TEST(Restarts, EndWhenAUserStopsAJobWhileAnAttemptIsEnded) {
  QuietWorld world({.servers = 3, .least = 2, .grace = Seconds(0)});
  ASSERT_TRUE(world.reaches_second(5));
  world.server(2).fail({wire::EndKind::exit, 1});
  ASSERT_TRUE(world.reaches([&] { return world.server(0).policy->is_ending(); }));
  world.server(1).stop();
  ASSERT_TRUE(world.reaches([&] { return world.server(0).released && world.server(1).released; }));
  EXPECT_EQ(world.restarts, 0);
  EXPECT_EQ(world.server(0).policy->reason(), wire::EndReason(wire::RankEnded{2}));
}

TEST(Restarts, ReportALossInPlaceOfItsConsequences) {
  for (const bool any : {false, true}) {
    QuietWorld world({.servers = 3, .most = 3, .least = 2, .kinds = {.any = any, .lost = true}});
    ASSERT_TRUE(world.reaches_second(5));
    world.lose("s2");
    world.server(1).after_peer = true;
    world.server(1).fail({wire::EndKind::exit, 1});
    ASSERT_TRUE(world.reaches([&] { return world.lives(2, {"s0", "s1"}); }));
    EXPECT_EQ(world.attempts[0].cause, wire::Cause(wire::ServerLoss{"s2"}));
  }
}

TEST(Restarts, SendOrdersOnlyToServersThatHaveTheAttempt) {
  QuietWorld world({.servers = 2});
  rules::RestartPolicy& coordinator = *world.server(0).policy;
  EXPECT_FALSE(coordinator.takes_orders("s1"));
  ASSERT_TRUE(world.reaches([&] { return coordinator.takes_orders("s1"); }));
  world.server(0).fail({wire::EndKind::exit, 3});
  ASSERT_TRUE(world.reaches([&] { return coordinator.granted() == 2; }));
  ASSERT_TRUE(world.reaches([&] { return coordinator.takes_orders("s1"); }));
  EXPECT_TRUE(world.lives(2, {"s0", "s1"}));
}

TEST(Restarts, EndWhenRanksCannotBeStopped) {
  QuietWorld world({.servers = 3});
  ASSERT_TRUE(world.reaches_second(5));
  world.server(1).is_stubborn = true;
  world.server(2).fail(exit_9);
  ASSERT_TRUE(world.reaches([&] { return world.server(0).released && world.server(2).released; }));
  EXPECT_EQ(world.restarts, 0);
  EXPECT_EQ(world.server(0).no_restart, NoRestart::unfinished);
}

TEST(Restarts, LeaveAnEndedJobToItsGuardForAMoment) {
  QuietWorld world({.servers = 2, .most = 0, .grace = Seconds(0)});
  ASSERT_TRUE(world.reaches_second(5));
  SimulatedServer& server = world.server(1);
  server.fail({wire::EndKind::exit, 3});
  ASSERT_TRUE(world.reaches([&] { return server.released; }));
  rules::RestartPolicy& policy = *server.policy;
  EXPECT_EQ(policy.reason(), wire::EndReason(wire::RankEnded{1}));
  EXPECT_TRUE(policy.jobs_to_kill(server.clock()).empty());  // otherwise it would seem to be the cause
  EXPECT_EQ(world.server(0).policy->jobs_to_kill(world.server(0).clock()),
            std::vector<std::string>{"job-s0"});
  EXPECT_EQ(policy.jobs_to_kill(server.clock() + Seconds(3)), std::vector<std::string>{"job-s1"});
  EXPECT_EQ(world.server(0).no_restart, std::nullopt) << "no restart was left";
}

// On a busy server, recording takes its guards longer than a few more kills would take.
TEST(Restarts, WaitForTheGuardsRecordsAfterAKill) {
  QuietWorld world({.servers = 2});
  ASSERT_TRUE(world.reaches_second(5));
  SimulatedServer& server = world.server(1);
  rules::RestartPolicy& policy = *server.policy;
  const Seconds now = server.clock();
  policy.hear("s0", wire::StopAttempt{1}, now);
  const std::vector<std::string> jobs = {"job-s1"};
  EXPECT_EQ(policy.jobs_to_kill(now), jobs);
  policy.note_killed(true, now);
  for (int i = 1; i <= 10; ++i) {
    EXPECT_TRUE(policy.jobs_to_kill(now + Seconds(0.4 * i)).empty());
  }
  EXPECT_EQ(policy.jobs_to_kill(now + Seconds(6)), jobs);
  policy.note_killed(false, now + Seconds(7));
  EXPECT_EQ(policy.jobs_to_kill(now + Seconds(7)), jobs) << "something lives";
}

TEST(Restarts, StopAtFinalExitCodes) {
  for (const int code : {8, 9}) {
    QuietWorld world({.servers = 2, .least = 2, .final_codes = {2, 9}});
    ASSERT_TRUE(world.reaches_second(3));
    world.server(1).fail({wire::EndKind::exit, code});
    ASSERT_TRUE(world.reaches([&] { return world.server(0).released || world.lives(2, {"s0", "s1"}); }));
    EXPECT_EQ(world.lives(2, {"s0", "s1"}), code == 8);
  }
}

TEST(Restarts, TakeNoSignalForAnExitCode) {
  QuietWorld world({.servers = 2, .least = 2, .final_codes = {9}});
  ASSERT_TRUE(world.reaches_second(3));
  world.server(1).fail({wire::EndKind::signal, 9});
  EXPECT_TRUE(world.reaches([&] { return world.lives(2, {"s0", "s1"}); }));
}

TEST(Restarts, EndAfterTwoFailuresAtOnePlace) {
  for (const bool has_newer : {false, true}) {
    QuietWorld world({.servers = 2, .least = 2});
    world.checkpoint = "c1";
    world.server(1).mark = "m1";
    for (const int attempt : {1, 2, 3}) {  // the first attempt had no checkpoint
      ASSERT_TRUE(world.reaches([&] {
        return world.lives(attempt, {"s0", "s1"}) && world.now > Seconds(3);
      }));
      world.checkpoint = has_newer && attempt == 2 ? "c2" : "c1";
      world.server(1).fail(exit_9);
      ASSERT_TRUE(world.reaches([&] { return !world.server(1).lives; }));
    }
    ASSERT_TRUE(world.reaches([&] { return world.server(0).released || world.lives(4, {"s0", "s1"}); }));
    EXPECT_EQ(world.server(0).released, !has_newer);
  }
}

TEST(Restarts, DoNotBeginAgainAfterTheEnd) {
  for (const std::size_t revived : {0, 1}) {
    QuietWorld world({.servers = 2});
    ASSERT_TRUE(world.reaches_second(5));
    world.server(0).end_round({wire::EndKind::exit, 0});
    world.server(1).end_round({wire::EndKind::exit, 0});
    ASSERT_TRUE(world.reaches([&] { return world.server(0).released && world.server(1).released; }));
    world.server(revived).revive();
    ASSERT_TRUE(world.reaches_second(world.now.count() + 60));
    EXPECT_EQ(world.restarts, 0);
    EXPECT_TRUE(world.server(revived).policy->is_released());
    EXPECT_FALSE(world.server(revived).policy->reason());
  }
}

TEST(Restarts, ResumeOnlyFromACheckpointThatTheServerOffered) {
  for (const bool offered : {true, false}) {
    QuietWorld world({.servers = 2});
    world.checkpoint = "c1";
    ASSERT_TRUE(world.reaches_second(5));
    SimulatedServer& member = world.server(1);
    member.fail(exit_9);
    ASSERT_TRUE(world.reaches([&] { return world.server(0).attempt == 2; }));
    // The coordinator's grant is in transit; a hostile grant would name any file.
    world.drop_mail();
    member.policy->tick(member.clock() + Seconds(1));
    wire::GrantLease grant{
        member.last_question, 2, {.world_size = 2, .first_rank = 1, .node_rank = 1, .nodes = 2}};
    grant.shape.resume_from = offered ? "c1" : "/tmp/evil.pt";
    member.hear("s0", grant);
    EXPECT_EQ(member.refused.contains("s1"), !offered);
    EXPECT_EQ(member.lives, offered);
  }
}

TEST(Restarts, FollowAHangIfTheyMay) {
  for (const bool restart : {true, false}) {
    QuietWorld world({.servers = 2});
    ASSERT_TRUE(world.reaches_second(5));
    rules::RestartPolicy& coordinator = *world.server(0).policy;
    EXPECT_TRUE(coordinator.should_watch());
    EXPECT_EQ(coordinator.present(), (std::vector<std::string>{"s0", "s1"}));
    coordinator.end_hung({60}, restart, world.server(0).clock());
    EXPECT_FALSE(coordinator.should_watch()) << "what it sees now is the end of the attempt";
    ASSERT_TRUE(world.reaches([&] { return world.server(0).released || world.lives(2, {"s0", "s1"}); }));
    EXPECT_EQ(world.lives(2, {"s0", "s1"}), restart);
    EXPECT_EQ(coordinator.reason(), restart ? std::nullopt : std::optional<wire::EndReason>(wire::Hang{60}));
    EXPECT_EQ(coordinator.should_watch(), restart);
  }
}

TEST(Restarts, AreOverForAMemberThatConnectsLate) {
  QuietWorld world({.servers = 2, .most = 0, .grace = Seconds(0)});
  ASSERT_TRUE(world.reaches_second(5));
  rules::RestartPolicy& coordinator = *world.server(0).policy;
  EXPECT_EQ(coordinator.welcome("s1").size(), 1U);
  EXPECT_TRUE(coordinator.ended_there(world.server(0).clock()).empty());
  EXPECT_FALSE(coordinator.try_to_leave(world.server(0).clock(), false));
  world.server(1).fail({wire::EndKind::exit, 3});
  ASSERT_TRUE(world.reaches([&] { return !coordinator.ended_there(world.server(0).clock()).empty(); }));
  ASSERT_TRUE(world.reaches([&] { return world.server(0).released; }));
  const std::vector<wire::LinkMessage> messages = coordinator.welcome("s1");
  EXPECT_EQ(messages.back(), wire::LinkMessage(wire::NoMoreAttempts{wire::RankEnded{1}}));
}

TEST(Restarts, FollowOnlyTheWantedFailures) {
  using wire::EndKind;
  using Kinds = rules::RestartSetup::Kinds;
  const auto restarts_after = [](Kinds kinds, EndKind kind) {
    QuietWorld world({.servers = 2, .kinds = kinds});
    EXPECT_TRUE(world.reaches_second(5));
    world.server(1).fail({kind, 9});
    EXPECT_TRUE(world.reaches([&] { return world.server(0).released || world.lives(2, {"s0", "s1"}); }));
    return world.lives(2, {"s0", "s1"});
  };
  const std::vector<std::pair<EndKind, Kinds>> all = {{EndKind::exit, {.exit = true}},
                                                      {EndKind::signal, {.signal = true}},
                                                      {EndKind::out_of_memory, {.out_of_memory = true}}};
  for (const auto& [kind, kinds] : all) {
    for (const auto& [other, other_kinds] : all) {
      EXPECT_EQ(restarts_after(other_kinds, kind), kind == other);
    }
  }
}

}  // namespace
}  // namespace remote::simulation
