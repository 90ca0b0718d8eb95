#include "rules/launch_policy.hpp"

#include <gtest/gtest.h>

namespace remote::rules {
namespace {

class NoActs final : public LaunchActs {
 public:
  void broadcast(const wire::LinkMessage& message) override { sent.push_back(message); }
  void tell(const std::string& server, const wire::LinkMessage& message) override {
    told.emplace_back(server, message);
  }
  void record(const wire::LaunchEntry& entry) override { journal.push_back(entry); }
  std::vector<wire::LinkMessage> sent;
  std::vector<std::pair<std::string, wire::LinkMessage>> told;
  std::vector<wire::LaunchEntry> journal;
};

class LaunchPolicyTest : public testing::Test {
 protected:
  LaunchPolicy make(std::string own, int needed = 0) {
    LaunchSetup setup{std::move(own), {"a", "b", "c"}, Seconds(20), Seconds(60)};
    setup.needed = needed;
    return {std::move(setup),
            {LaunchJob{.id = "j0", .rank = 3}, LaunchJob{.id = "j1", .rank = 4}},
            Seconds(100),
            acts};
  }
  NoActs acts;
};

constexpr wire::Ending exit_1{wire::EndKind::exit, 1};
using Ids = std::vector<std::string>;

TEST_F(LaunchPolicyTest, EndsAllAfterTheGraceWhenARankFails) {
  LaunchPolicy policy = make("a");
  const wire::RankFailure failed{3, "a", exit_1, false, ""};
  policy.note_end(0, failed, Seconds(200));
  EXPECT_EQ(acts.sent,
            (std::vector<wire::LinkMessage>{wire::JobFailed{failed}, wire::EndLaunch{wire::RankEnded{3}}}));
  EXPECT_EQ(policy.jobs_to_kill(Seconds(219)), Ids());
  EXPECT_EQ(policy.jobs_to_kill(Seconds(220)), (Ids{"j0", "j1"}));  // including the failed one's leftovers
  EXPECT_EQ(policy.jobs_to_kill(Seconds(230)), Ids{"j1"});
  policy.hear("b", wire::EndLaunch{wire::RankEnded{9}}, Seconds(230));
  EXPECT_EQ(policy.reason(), wire::EndReason(wire::RankEnded{3}));  // the first reason counts
  EXPECT_FALSE(policy.try_to_leave(Seconds(240), true));
  EXPECT_EQ(policy.jobs_to_kill(Seconds(240)), Ids{"j1"});
  EXPECT_TRUE(policy.try_to_leave(Seconds(250), true));
  EXPECT_EQ(policy.jobs_to_kill(Seconds(250)), Ids());
}

// Some NATs drop a connection that is silent for 15 s.
TEST_F(LaunchPolicyTest, SendsSignsOfLifeInTime) {
  for (const Seconds timeout : {Seconds(4), Seconds(60), Seconds(100000)}) {
    const LaunchPolicy policy({"a", {"a", "b", "c"}, Seconds(20), timeout}, {}, Seconds(100), acts);
    EXPECT_LE(policy.beat(), Seconds(5));
    EXPECT_LE(policy.beat(), timeout / 4);
  }
}

TEST_F(LaunchPolicyTest, EndsAllWhenMpirunHangsAfterAFailure) {
  LaunchPolicy policy = make("a");
  const wire::RankFailure failed{3, "a", exit_1, false, ""};
  policy.note_failed_rank(0, failed, Seconds(200));
  policy.note_failed_rank(0, failed, Seconds(249));
  EXPECT_FALSE(policy.reason()) << "mpirun may still end the ranks";
  policy.note_failed_rank(0, failed, Seconds(250));
  policy.note_failed_rank(0, failed, Seconds(251));
  EXPECT_EQ(acts.sent,
            (std::vector<wire::LinkMessage>{wire::JobFailed{failed}, wire::EndLaunch{wire::RankEnded{3}}}));
  EXPECT_EQ(policy.first_failure()->failure, failed);
  EXPECT_EQ(policy.jobs_to_kill(Seconds(251)), (Ids{"j0", "j1"}));
}

TEST_F(LaunchPolicyTest, EndsAtOnceWhenAServerIsLost) {
  LaunchPolicy policy = make("a");
  policy.hear("b", wire::Hello{}, Seconds(101));
  policy.hear("c", wire::Hello{}, Seconds(101));
  policy.hear("c", wire::Beat{}, Seconds(150));
  policy.notice_silence(Seconds(161));
  EXPECT_FALSE(policy.reason());
  policy.notice_silence(Seconds(162));
  EXPECT_EQ(policy.reason(), wire::EndReason(wire::ServerLoss{"b"}));
  EXPECT_EQ(policy.jobs_to_kill(Seconds(162)), (Ids{"j0", "j1"}));
}

TEST_F(LaunchPolicyTest, KnowsAfterARestartWhomItHadHeard) {
  {
    LaunchPolicy before = make("a");
    before.hear("b", wire::Hello{}, Seconds(101));
    before.hear("c", wire::Hello{}, Seconds(101));
    before.hear("c", wire::Bye{}, Seconds(102));
  }
  LaunchPolicy policy = make("a");
  const std::vector<wire::LaunchEntry> journal = acts.journal;
  for (const wire::LaunchEntry& entry : journal) {
    policy.restore(entry, Seconds(300));
  }
  policy.notice_silence(Seconds(361));
  EXPECT_EQ(policy.reason(), wire::EndReason(wire::ServerLoss{"b"}));  // b sent it nothing
}

TEST_F(LaunchPolicyTest, SendsAMembersReportsOverEachLink) {
  LaunchPolicy policy = make("b");
  policy.note_end(0, wire::RankFailure{3, "b", exit_1, false, ""}, Seconds(200));
  ASSERT_EQ(policy.reports().size(), 1U);
  EXPECT_TRUE(std::holds_alternative<wire::JobFailed>(policy.reports().front()));
}

TEST_F(LaunchPolicyTest, NamesTheServerOfAFailureByItsSender) {
  LaunchPolicy policy = make("a");
  policy.hear("b", wire::JobFailed{{7, "c", exit_1, false, ""}}, Seconds(110));
  EXPECT_EQ(policy.first_failure()->failure.server, "b");
}

TEST_F(LaunchPolicyTest, ContinuesWithoutAServerWhileEnoughAreLeft) {
  LaunchPolicy policy = make("a", 2);
  policy.hear("b", wire::Left{wire::RankEnded{5}}, Seconds(110));
  EXPECT_FALSE(policy.reason());
  EXPECT_EQ(policy.present(), (Ids{"a", "c"}));
  policy.hear("c", wire::Left{wire::RankEnded{6}}, Seconds(111));
  EXPECT_EQ(policy.reason(), wire::EndReason(wire::RankEnded{6}));
}

using Messages = std::vector<wire::LinkMessage>;
constexpr wire::Ending signal_9{wire::EndKind::signal, 9};

wire::RankFailure failure(int rank, const std::string& server, wire::Ending ending, bool after_peer = false) {
  return {rank, server, ending, after_peer, ""};
}

TEST_F(LaunchPolicyTest, EndsNothingAfterASuccess) {
  LaunchPolicy policy = make("a");
  policy.note_end(0, std::nullopt, Seconds(200));
  EXPECT_EQ(acts.sent, Messages());
  EXPECT_FALSE(policy.reason() || policy.job(0).failed);
  EXPECT_EQ(policy.jobs_to_kill(Seconds(300)), Ids());
}

TEST_F(LaunchPolicyTest, EndsNothingIfRanksAreIndependent) {
  LaunchSetup setup{"a", {"a", "b"}, Seconds(20), Seconds(60)};
  setup.ends_alone = true;
  LaunchPolicy policy(setup, {LaunchJob{.id = "j0", .rank = 3}}, Seconds(100), acts);
  policy.hear("b", wire::JobFailed{failure(7, "b", exit_1)}, Seconds(110));
  policy.note_end(0, failure(3, "a", signal_9), Seconds(120));
  policy.notice_silence(Seconds(200));
  EXPECT_FALSE(policy.reason());
  EXPECT_EQ(policy.jobs_to_kill(Seconds(300)), Ids());
  const LaunchVerdict verdict = policy.verdict({{}});
  EXPECT_EQ(verdict.end, LaunchEnd::lost);
  EXPECT_EQ(verdict.server, "b");
}

TEST_F(LaunchPolicyTest, CountsNoPauseOfItsOwnAsSilence) {
  LaunchPolicy policy = make("a");
  policy.hear("b", wire::Hello{}, Seconds(110));
  policy.hear("c", wire::Hello{}, Seconds(110));
  policy.discount_pause(Seconds(30));
  policy.notice_silence(Seconds(200));
  EXPECT_FALSE(policy.reason());
  policy.hear("c", wire::Beat{}, Seconds(190));
  acts.sent.clear();
  policy.notice_silence(Seconds(201));
  EXPECT_EQ(acts.sent, Messages{wire::EndLaunch{wire::ServerLoss{"b"}}});
}

TEST_F(LaunchPolicyTest, LosesNoServerThatSaidBye) {
  LaunchPolicy policy = make("b");
  EXPECT_FALSE(policy.is_watched());
  policy.hear("a", wire::Welcome{}, Seconds(109));
  EXPECT_TRUE(policy.is_watched());
  policy.hear("a", wire::Bye{}, Seconds(110));
  EXPECT_FALSE(policy.is_watched());
  policy.notice_silence(Seconds(1000));
  EXPECT_FALSE(policy.reason());
}

TEST_F(LaunchPolicyTest, ReportsAStopByAUser) {
  LaunchPolicy policy = make("b");
  policy.job(0).stopped_for = Seconds(1.5);
  policy.note_end(0, std::nullopt, Seconds(200));
  EXPECT_EQ(acts.sent, (Messages{wire::JobStopped{3, 1500}}));
  EXPECT_EQ(policy.reports(), acts.sent);
  ASSERT_NE(policy.first_stop(nullptr), nullptr);
  EXPECT_EQ(policy.first_stop(nullptr)->began, Seconds(198.5));
}

TEST_F(LaunchPolicyTest, WelcomesAMemberWithWhatItMissed) {
  LaunchPolicy policy = make("a", 2);
  EXPECT_EQ(policy.welcome("b"), Messages{wire::Welcome{}});
  policy.hear("b", wire::Left{wire::RankEnded{2}}, Seconds(120));
  EXPECT_EQ(acts.sent, Messages({wire::ContinueWithout{"b", wire::RankEnded{2}}}));
  policy.hear("b", wire::EndLaunch{wire::RankEnded{2}}, Seconds(121));
  EXPECT_FALSE(policy.reason()) << "it was left out, and may have given up";
  EXPECT_EQ(policy.welcome("b"),
            (Messages{wire::Welcome{}, wire::ContinueWithout{"b", wire::ServerLoss{"b"}}}));
  policy.hear("c", wire::Hello{}, Seconds(122));
  policy.hear("b", wire::Beat{}, Seconds(180));
  policy.notice_silence(Seconds(190));
  EXPECT_EQ(policy.reason(), wire::EndReason(wire::ServerLoss{"c"})) << "too few are left";
  EXPECT_EQ(policy.welcome("c"), (Messages{wire::Welcome{}, wire::EndLaunch{wire::ServerLoss{"c"}},
                                           wire::ContinueWithout{"c", wire::ServerLoss{"c"}}}));
}

TEST_F(LaunchPolicyTest, AnAgentThatLeavesEndsOnlyItsOwnServer) {
  LaunchPolicy policy = make("b", 1);
  policy.note_end(0, failure(3, "b", signal_9), Seconds(200));
  EXPECT_EQ(acts.sent,
            (Messages{wire::JobFailed{failure(3, "b", signal_9)}, wire::Left{wire::RankEnded{3}}}));
  EXPECT_FALSE(policy.reason());
  EXPECT_EQ(policy.left_because(), wire::EndReason(wire::RankEnded{3}));
  EXPECT_EQ(policy.jobs_to_kill(Seconds(200)), (Ids{"j0", "j1"}));
  EXPECT_EQ(policy.jobs_to_kill(Seconds(201)), Ids());
  LaunchPolicy gives_up = make("b", 1);
  gives_up.note_end(0, failure(3, "b", exit_1), Seconds(200));
  EXPECT_EQ(gives_up.reason(), wire::EndReason(wire::RankEnded{3}));
  LaunchPolicy first = make("a", 1);
  first.note_end(0, failure(3, "a", signal_9), Seconds(200));
  EXPECT_EQ(first.reason(), wire::EndReason(wire::RankEnded{3})) << "without it the others do not meet";
}

TEST_F(LaunchPolicyTest, AServerThatWasLeftOutStopsItsJobs) {
  LaunchPolicy policy = make("b", 1);
  policy.hear("a", wire::ContinueWithout{"c", wire::ServerLoss{"c"}}, Seconds(110));
  EXPECT_FALSE(policy.left_because());
  EXPECT_EQ(acts.journal.front(), wire::LaunchEntry(wire::ServerLeftOut{"c", wire::ServerLoss{"c"}}));
  policy.hear("a", wire::ContinueWithout{"b", wire::ServerLoss{"b"}}, Seconds(111));
  EXPECT_EQ(policy.jobs_to_kill(Seconds(111)), (Ids{"j0", "j1"}));
}

TEST_F(LaunchPolicyTest, AMemberTakesNoReportsOfOthers) {
  LaunchPolicy policy = make("b", 1);
  policy.hear("a", wire::JobFailed{failure(7, "a", exit_1)}, Seconds(110));
  policy.hear("a", wire::JobStopped{7, 1}, Seconds(110));
  policy.hear("a", wire::Left{wire::RankEnded{7}}, Seconds(110));
  EXPECT_EQ(policy.first_failure(), nullptr);
  EXPECT_EQ(policy.first_stop(nullptr), nullptr);
  EXPECT_EQ(acts.sent, Messages());
}

TEST_F(LaunchPolicyTest, RemembersItsDecisions) {
  const auto restored = [&](const std::string& own, int needed, double now) {
    auto policy = std::make_unique<LaunchPolicy>(
        LaunchSetup{own, {"a", "b", "c"}, Seconds(20), Seconds(60), needed},
        std::vector{LaunchJob{.id = "j0"}, LaunchJob{.id = "j1"}}, Seconds(now), acts);
    for (const wire::LaunchEntry& entry : std::vector(acts.journal)) {
      policy->restore(entry, Seconds(now));
    }
    return policy;
  };
  LaunchPolicy member = make("b");
  member.hear("a", wire::EndLaunch{wire::RankEnded{7}}, Seconds(110));
  const auto after_rank = restored("b", 0, 200);
  EXPECT_EQ(after_rank->reason(), wire::EndReason(wire::RankEnded{7}));
  EXPECT_EQ(after_rank->jobs_to_kill(Seconds(219)), Ids());
  EXPECT_EQ(after_rank->jobs_to_kill(Seconds(220)), (Ids{"j0", "j1"}));
  acts.journal = {wire::LaunchEnding{wire::ServerLoss{"c"}}};
  EXPECT_EQ(restored("a", 0, 200)->jobs_to_kill(Seconds(200)), (Ids{"j0", "j1"}));
  acts.journal.clear();
  LaunchPolicy agent = make("b", 1);
  agent.note_end(0, failure(3, "b", signal_9), Seconds(200));
  EXPECT_EQ(restored("b", 1, 300)->left_because(), wire::EndReason(wire::RankEnded{3}));
  acts.journal.clear();
  LaunchPolicy coordinator = make("a", 2);
  coordinator.hear("b", wire::Left{wire::RankEnded{5}}, Seconds(110));
  EXPECT_EQ(restored("a", 2, 300)->present(), (Ids{"a", "c"}));
}

TEST_F(LaunchPolicyTest, ACoordinatorStaysAsLongAsOthersNeedIt) {
  LaunchPolicy policy = make("a");
  policy.note_end(0, std::nullopt, Seconds(101));
  EXPECT_FALSE(policy.try_to_leave(Seconds(200), true));
  policy.note_end(1, std::nullopt, Seconds(101));
  policy.hear("b", wire::Hello{}, Seconds(101));
  EXPECT_FALSE(policy.try_to_leave(Seconds(120), true)) << "c may still come, and b needs it";
  EXPECT_TRUE(policy.try_to_leave(Seconds(120), false)) << "none can come";
  EXPECT_EQ(policy.silent(Seconds(120)), Ids());
  policy.hear("b", wire::Bye{}, Seconds(121));
  EXPECT_FALSE(policy.try_to_leave(Seconds(121), true));
  EXPECT_TRUE(policy.try_to_leave(Seconds(131), true));
  EXPECT_EQ(policy.silent(Seconds(131)), Ids{"c"});
  EXPECT_EQ(policy.ended_there(Seconds(131)), (std::set<std::string>{"b", "c"}));
}

TEST_F(LaunchPolicyTest, AMemberStaysUntilTheCoordinatorHasNotedItsBye) {
  LaunchPolicy policy = make("b");
  policy.note_end(0, std::nullopt, Seconds(101));
  policy.note_end(1, std::nullopt, Seconds(101));
  EXPECT_FALSE(policy.try_to_leave(Seconds(120), false)) << "the coordinator may still come";
  EXPECT_TRUE(policy.try_to_leave(Seconds(131), false));
  policy.hear("a", wire::Beat{}, Seconds(132));
  EXPECT_FALSE(policy.try_to_leave(Seconds(140), false));
  EXPECT_EQ(acts.sent, (std::vector<wire::LinkMessage>{wire::Bye{}})) << "once";
  EXPECT_EQ(policy.reports(), acts.sent) << "and again over each new link";
  policy.hear("a", wire::ByeNoted{}, Seconds(141));
  EXPECT_TRUE(policy.try_to_leave(Seconds(141), false));
}

TEST_F(LaunchPolicyTest, AMemberNeedsNoAnswerOfACoordinatorThatLeaves) {
  LaunchPolicy policy = make("b");
  policy.note_end(0, std::nullopt, Seconds(101));
  policy.note_end(1, std::nullopt, Seconds(101));
  policy.hear("a", wire::Beat{}, Seconds(132));
  EXPECT_FALSE(policy.try_to_leave(Seconds(140), false));
  policy.hear("a", wire::Bye{}, Seconds(141));
  EXPECT_TRUE(policy.try_to_leave(Seconds(141), false));
}

TEST_F(LaunchPolicyTest, ACoordinatorAnswersAByeThatIsInItsJournal) {
  LaunchPolicy policy = make("a");
  policy.hear("b", wire::Bye{}, Seconds(121));
  EXPECT_EQ(acts.journal.front(), wire::LaunchEntry(wire::ServerGone{"b", wire::GoneHow::said_bye}));
  const std::pair<std::string, wire::LinkMessage> answer("b", wire::ByeNoted{});
  EXPECT_EQ(acts.told, std::vector{answer});
  policy.hear("b", wire::Bye{}, Seconds(122));  // the answer was lost
  EXPECT_EQ(acts.told, std::vector(2, answer));
}

TEST_F(LaunchPolicyTest, FailedJobsAreStoppedBeforeTheEnd) {
  LaunchPolicy policy = make("b");
  policy.note_end(0, failure(3, "b", exit_1), Seconds(200));
  policy.note_end(1, std::nullopt, Seconds(200));
  EXPECT_FALSE(policy.try_to_leave(Seconds(201), false)) << "the failed job may have left processes";
  EXPECT_EQ(policy.jobs_to_kill(Seconds(220)), Ids{"j0"});
  EXPECT_EQ(policy.jobs_to_kill(Seconds(221)), Ids());
  policy.hear("a", wire::Bye{}, Seconds(221));
  EXPECT_TRUE(policy.try_to_leave(Seconds(221), false));
}

TEST_F(LaunchPolicyTest, MpirunNeedNotWaitForAServerWithAFailure) {
  LaunchPolicy policy = make("a");
  policy.hear("b", wire::JobFailed{failure(7, "b", exit_1)}, Seconds(110));
  EXPECT_EQ(policy.ended_there(Seconds(111)), std::set<std::string>{"b"});
}

// The end of a launch, for the notification.
class LaunchVerdictTest : public LaunchPolicyTest {
 protected:
  LaunchVerdictTest() {
    for (const char* server : {"b", "c"}) {
      policy.hear(server, wire::Hello{}, Seconds(101));
    }
  }
  void hear_failure(int rank, const std::string& server, double now, bool after_peer = false) {
    policy.hear(server, wire::JobFailed{failure(rank, server, exit_1, after_peer)}, Seconds(now));
  }
  void lose(const std::string& lost) {
    for (const char* server : {"b", "c"}) {
      if (lost != server) {
        policy.hear(server, wire::Beat{}, Seconds(200));
      }
    }
    policy.notice_silence(Seconds(220));
  }

  LaunchPolicy policy = make("a");
  const std::vector<JobResult> good = std::vector(2, JobResult{true, {}});
  const std::vector<JobResult> bad = {{true, {}}, {false, {}}};
};

TEST_F(LaunchVerdictTest, SucceededOrUnknown) {
  EXPECT_EQ(policy.verdict(good).end, LaunchEnd::succeeded);
  LaunchPolicy alone = make("a");
  alone.hear("c", wire::Hello{}, Seconds(101));
  EXPECT_EQ(alone.verdict(good), (LaunchVerdict{LaunchEnd::unknown, {}, "", {}, 0, {"b"}, false}));
}

TEST_F(LaunchVerdictTest, FailedByTheFirstCause) {
  hear_failure(7, "c", 110, true);
  hear_failure(5, "b", 111);
  EXPECT_EQ(policy.verdict(bad).end, LaunchEnd::killed) << "nothing was ended because of it";
  policy.hear("c", wire::EndLaunch{wire::RankEnded{7}}, Seconds(112));
  EXPECT_EQ(policy.verdict(bad), (LaunchVerdict{LaunchEnd::failed, 5, "b", exit_1, 0, {}, false}));
}

TEST_F(LaunchVerdictTest, FailedByARankThatReportedNothing) {
  policy.hear("c", wire::EndLaunch{wire::RankEnded{7}}, Seconds(112));
  EXPECT_EQ(policy.verdict(bad), (LaunchVerdict{LaunchEnd::failed, 7, "", {}, 0, {}, false}));
}

TEST_F(LaunchVerdictTest, ARestartedCoordinatorReadsTheResults) {
  const std::vector<JobResult> ended = {{true, {}}, {false, wire::EndReason(wire::RankEnded{7})}};
  EXPECT_EQ(policy.verdict(ended), (LaunchVerdict{LaunchEnd::failed, 7, "", {}, 0, {}, false}));
  const std::vector<JobResult> lost = {{false, wire::EndReason(wire::ServerLoss{"c"})}};
  EXPECT_EQ(policy.verdict(lost), (LaunchVerdict{LaunchEnd::lost, {}, "c", {}, 0, {}, false}));
}

TEST_F(LaunchVerdictTest, KilledByAUser) {
  policy.hear("b", wire::JobStopped{5, 1000}, Seconds(110));
  EXPECT_EQ(policy.verdict({{}}), (LaunchVerdict{LaunchEnd::killed, {}, "", {}, 0, {}, false})) << "all were";
  EXPECT_EQ(policy.verdict(bad), (LaunchVerdict{LaunchEnd::killed, 5, "b", {}, 0, {}, false}));
  hear_failure(7, "c", 110.1, true);
  EXPECT_EQ(policy.verdict({{}}), (LaunchVerdict{LaunchEnd::killed, 5, "b", {}, 0, {}, false}))
      << "the failure follows from it";
}

TEST_F(LaunchVerdictTest, FailedBeforeAUserStoppedTheRest) {
  hear_failure(7, "c", 110);
  policy.hear("c", wire::EndLaunch{wire::RankEnded{7}}, Seconds(110));
  policy.hear("b", wire::JobStopped{5, 1000}, Seconds(150));
  EXPECT_EQ(policy.verdict({{}}), (LaunchVerdict{LaunchEnd::failed, 7, "c", exit_1, 0, {}, false}));
}

TEST_F(LaunchVerdictTest, LostByAServer) {
  lose("c");
  EXPECT_EQ(policy.verdict(bad), (LaunchVerdict{LaunchEnd::lost, {}, "c", {}, 0, {}, false}));
  EXPECT_EQ(policy.verdict(good).end, LaunchEnd::lost) << "it was lost before the end";
}

TEST_F(LaunchVerdictTest, LostBeforeItsPeersFailed) {
  LaunchPolicy elastic = make("a", 1);
  elastic.hear("b", wire::Hello{}, Seconds(101));
  elastic.hear("c", wire::Hello{}, Seconds(101));
  elastic.hear("b", wire::Beat{}, Seconds(200));
  elastic.notice_silence(Seconds(220));
  ASSERT_FALSE(elastic.reason());
  elastic.hear("b", wire::JobFailed{failure(5, "b", exit_1, true)}, Seconds(221));
  elastic.hear("b", wire::EndLaunch{wire::RankEnded{5}}, Seconds(221));
  EXPECT_EQ(elastic.verdict(bad), (LaunchVerdict{LaunchEnd::lost, {}, "c", {}, 0, {}, false}));
  elastic.hear("b", wire::JobStopped{6, 1000}, Seconds(221.5));
  EXPECT_EQ(elastic.verdict(bad), (LaunchVerdict{LaunchEnd::killed, 6, "b", {}, 0, {}, false}))
      << "the failure follows from the stop";
}

TEST_F(LaunchVerdictTest, ACoordinatorThatLosesAllOthersWasCutOff) {
  policy.notice_silence(Seconds(220));
  EXPECT_EQ(policy.verdict(bad), (LaunchVerdict{LaunchEnd::lost, {}, "a", {}, 0, {}, true}));
}

TEST_F(LaunchVerdictTest, UnknownIfTheLastServerIsLostAfterTheEnd) {
  policy.hear("b", wire::Bye{}, Seconds(150));
  policy.note_end(0, std::nullopt, Seconds(150));
  policy.note_end(1, std::nullopt, Seconds(150));
  policy.notice_silence(Seconds(220));
  EXPECT_EQ(policy.verdict(good), (LaunchVerdict{LaunchEnd::unknown, {}, "c", {}, 0, {}, false}));
}

TEST_F(LaunchVerdictTest, HungForSeconds) {
  policy.end_hung({90}, false, Seconds(150));
  EXPECT_EQ(policy.verdict(bad), (LaunchVerdict{LaunchEnd::hung, {}, "", {}, 90, {}, false}));
}

}  // namespace
}  // namespace remote::rules
