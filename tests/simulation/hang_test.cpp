#include <gtest/gtest.h>

#include "rules/hang_policy.hpp"

namespace remote::rules {
namespace {

const std::string job_id(32, 'a');

std::map<std::string, JobSample> sample(std::uint64_t out, std::uint64_t ticks, bool in_debugger = false) {
  return {{job_id, JobSample{{out, 0}, {{5, ticks}}, in_debugger}}};
}

TEST(StillnessMeter, MeasuresSilenceAndIdleness) {
  StillnessMeter meter(Seconds(5));
  const auto expect = [&](double silent, double idle) {
    EXPECT_EQ(meter.silent(), Seconds(silent));
    EXPECT_EQ(meter.idle(), Seconds(idle));
  };
  meter.add(sample(10, 100), Seconds(0));
  meter.add(sample(10, 110), Seconds(5));  // 2 % of a processor
  expect(5, 5);
  meter.add(sample(10, 200), Seconds(10));
  expect(10, 0);
  meter.add(sample(11, 200), Seconds(15));
  expect(0, 5);
  meter.add(sample(11, 200), Seconds(1000));  // this process was stopped in between
  expect(15, 20);
  meter.add(sample(11, 200, true), Seconds(1005));
  EXPECT_EQ(meter.silent(), Seconds(0));
  meter.add({}, Seconds(1010));
  expect(0, 0);
}

class HangPolicyTest : public testing::Test, public LaunchActs, public HangActs {
 protected:
  HangPolicyTest() { reset(); }

  void reset() {
    done.clear();
    sent.clear();
    launch = std::make_unique<LaunchPolicy>(LaunchSetup{"a", {"a", "b"}, Seconds(20), Seconds(60)},
                                            std::vector{LaunchJob{.id = job_id}}, Seconds(0), *this);
    hang = std::make_unique<HangPolicy>(Seconds(60), HangAction::end, *launch, "a", false, Seconds(0), *this);
  }

  void broadcast(const wire::LinkMessage& message) override { sent.push_back(message); }
  void tell(const std::string& /*server*/, const wire::LinkMessage& /*message*/) override {}
  void record(const wire::LaunchEntry& /*entry*/) override {}
  void take_evidence(int number) override {
    done.emplace_back("take");
    question = number;
  }
  void keep_evidence(int seconds) override { done.push_back("keep " + std::to_string(seconds)); }
  void drop_evidence() override { done.emplace_back("drop"); }
  void note_continued() override { done.emplace_back("continued"); }
  void end(HangAction /*action*/, const wire::Hang& found) override {
    done.push_back("end " + std::to_string(found.seconds));
  }

  struct Still {
    double silent;
    double idle;
  };
  // Both servers report, then the policy decides.
  void at(double second, Still own, std::optional<Still> other) {
    StillnessMeter meter{Seconds(1000)};
    meter.add(sample(1, 0), Seconds(0));
    meter.add(sample(1, static_cast<std::uint64_t>(own.silent - own.idle > 0 ? 100'000 : 0)),
              Seconds(own.silent - own.idle));
    meter.add(sample(1, static_cast<std::uint64_t>(own.silent - own.idle > 0 ? 100'000 : 0)),
              Seconds(own.silent));
    hang->report(meter, Seconds(second));
    wire::Stillness still;
    if (other) {
      still = {other->silent, other->idle};
    }
    hang->hear("b", still, Seconds(second));
    hang->tick(Seconds(second));
  }
  void answer(bool own, bool other, double second) {
    hang->note_evidence(question, own);
    hang->hear("b", wire::EvidenceTaken{question, other}, Seconds(second));
    hang->tick(Seconds(second));
  }

  using Done = std::vector<std::string>;
  Done done;
  std::vector<wire::LinkMessage> sent;
  int question = 0;
  std::unique_ptr<LaunchPolicy> launch;
  std::unique_ptr<HangPolicy> hang;
};

TEST_F(HangPolicyTest, FindsAHangWhenAllAreIdle) {
  at(70, {70, 70}, Still{59, 70});
  EXPECT_EQ(done, Done());
  at(71, {71, 71}, Still{60, 71});
  EXPECT_EQ(done, Done{"take"});
  EXPECT_EQ(sent, std::vector<wire::LinkMessage>{wire::TakeEvidence{question}});
  answer(false, false, 72);  // idle ranks need no evidence
  EXPECT_EQ(done, (Done{"take", "keep 60", "end 60"}));
  at(200, {190, 190}, Still{190, 190});
  EXPECT_EQ(done.size(), 3U);  // only once
  at(205, {195, 195}, Still{1, 195});
  at(300, {290, 290}, Still{96, 290});
  EXPECT_EQ(done, (Done{"take", "keep 60", "end 60", "continued", "take"}));
}

TEST_F(HangPolicyTest, NeedsTheEvidenceOfAllWhenOneComputes) {
  at(80, {80, 0}, Still{80, 80});
  answer(true, false, 81);
  EXPECT_EQ(done, (Done{"take", "drop"}));
  at(82, {82, 0}, Still{82, 0});
  EXPECT_EQ(done, (Done{"take", "drop"}));  // it does not keep asking
  at(142, {142, 0}, Still{142, 0});
  EXPECT_EQ(done, (Done{"take", "drop", "take"}));
  reset();
  at(80, {80, 0}, Still{80, 80});
  answer(true, true, 81);
  EXPECT_EQ(done, (Done{"take", "keep 80", "end 80"}));
}

TEST_F(HangPolicyTest, DropsTheEvidenceWhenARankWrites) {
  at(80, {80, 80}, Still{80, 80});
  hang->note_evidence(question, true);
  at(81, {81, 81}, Still{0, 81});
  EXPECT_EQ(done, Done{"take"});
  at(170, {1, 170}, Still{90, 170});  // b never answered
  EXPECT_EQ(done, (Done{"take", "drop"}));
}

TEST_F(HangPolicyTest, DecidesNothingWithoutAllServers) {
  hang->hear("b", wire::Stillness{500.0, 500.0}, Seconds(400));  // too old
  StillnessMeter meter{Seconds(1000)};
  meter.add(sample(1, 0), Seconds(0));
  meter.add(sample(1, 0), Seconds(500));
  hang->report(meter, Seconds(500));
  hang->tick(Seconds(500));
  EXPECT_EQ(done, Done());
  at(501, {501, 501}, std::nullopt);  // all of its ranks have ended
  EXPECT_EQ(done, Done{"take"});
}

TEST_F(HangPolicyTest, EndsTheLaunchWithoutAGrace) {
  launch->end_hung({60}, false, Seconds(100));
  EXPECT_EQ(launch->reason(), wire::EndReason(wire::Hang{60}));
  EXPECT_EQ(launch->jobs_to_kill(Seconds(100)), std::vector{job_id});
  EXPECT_FALSE(launch->should_watch());
  EXPECT_EQ(launch->verdict({{false, std::nullopt}}).end, LaunchEnd::hung);
}

TEST_F(HangPolicyTest, WatchesNothingWhileTheLaunchEnds) {
  launch->end_hung({60}, false, Seconds(50));
  at(80, {80, 80}, Still{80, 80});
  EXPECT_EQ(done, Done());
}

TEST_F(HangPolicyTest, AMemberReportsAndDoesWhatTheCoordinatorSays) {
  launch = std::make_unique<LaunchPolicy>(LaunchSetup{"b", {"a", "b"}, Seconds(20), Seconds(60)},
                                          std::vector{LaunchJob{.id = job_id}}, Seconds(0), *this);
  hang = std::make_unique<HangPolicy>(Seconds(60), HangAction::end, *launch, "b", false, Seconds(0), *this);
  StillnessMeter meter{Seconds(1000)};
  meter.add(sample(1, 0), Seconds(0));
  meter.add(sample(1, 0), Seconds(70));
  hang->report(meter, Seconds(70));
  hang->report(std::nullopt, Seconds(70));
  hang->tick(Seconds(1000));
  hang->note_evidence(7, true);
  EXPECT_EQ(sent, (std::vector<wire::LinkMessage>{wire::Stillness{70.0, 70.0}, wire::Stillness{},
                                                  wire::EvidenceTaken{7, true}}));
  hang->hear("a", wire::TakeEvidence{7}, Seconds(71));
  EXPECT_EQ(question, 7);
  hang->hear("a", wire::Hangs{60}, Seconds(72));
  hang->hear("a", wire::Continued{}, Seconds(73));
  hang->hear("a", wire::DropEvidence{}, Seconds(74));
  EXPECT_EQ(done, (Done{"take", "keep 60", "continued", "drop"}));
}

}  // namespace
}  // namespace remote::rules
