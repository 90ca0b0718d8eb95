#include "rules/lease_turns.hpp"

#include <algorithm>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "random.hpp"
#include "seeds.hpp"

namespace remote::rules {
namespace {

using simulation::Random;
using wire::LeaseAction;
using wire::LeaseOrder;
using wire::LeaseReport;
using wire::LeaseTurn;
using Orders = std::map<std::string, LeaseOrder>;

const std::map<std::string, std::string> machines{{"a", "9"}, {"b", "3"}, {"c", "7"}, {"d", "1"}};
constexpr LeaseOrder wait{LeaseAction::wait};
constexpr LeaseOrder take{LeaseAction::take};
constexpr LeaseOrder start{LeaseAction::start, 4121};

class LeaseTurnsTest : public ::testing::Test {
 protected:
  void hear(const std::string& server, LeaseTurn state, int port = 0) {
    turns_.hear(server, {machines.at(server), state, port});
  }
  Orders decide(double now) { return turns_.decide(Seconds(now)); }

  LeaseTurns turns_{{"a", "b", "c"}, Seconds(60), [] { return 4121; }, [] { return Seconds(5); }};
};

TEST_F(LeaseTurnsTest, OneServerAfterTheOtherInTheOrderOfTheirMachines) {
  hear("a", LeaseTurn::waiting);
  hear("b", LeaseTurn::waiting);
  hear("d", LeaseTurn::waiting);
  EXPECT_EQ(decide(0), (Orders{{"a", wait}, {"b", wait}, {"c", wait}})) << "c has not reported";
  hear("c", LeaseTurn::waiting);
  EXPECT_EQ(decide(1), (Orders{{"a", wait}, {"b", take}, {"c", wait}}));
  hear("b", LeaseTurn::in_line);
  EXPECT_EQ(decide(1.5), (Orders{{"a", wait}, {"b", take}, {"c", wait}}));
  hear("b", LeaseTurn::held);
  EXPECT_EQ(decide(2), (Orders{{"a", wait}, {"b", take}, {"c", take}}));
  hear("c", LeaseTurn::held);
  EXPECT_EQ(decide(2.5), (Orders{{"a", take}, {"b", take}, {"c", take}}));
  hear("a", LeaseTurn::held);
  const Orders all{{"a", start}, {"b", start}, {"c", start}};
  EXPECT_EQ(decide(3), all);
  EXPECT_FALSE(turns_.has_started_any());
  hear("c", LeaseTurn::waiting);  // late
  EXPECT_EQ(decide(3.5), all);
  hear("b", LeaseTurn::started, 4121);
  EXPECT_EQ(decide(4000), all);
  EXPECT_TRUE(turns_.has_started_any());
  hear("a", LeaseTurn::started, 4121);
  EXPECT_FALSE(turns_.is_over());
  hear("c", LeaseTurn::started, 4121);
  EXPECT_TRUE(turns_.is_over());
}

TEST_F(LeaseTurnsTest, LeasesThatAreNotCompleteInTimeAreGivenBackBeforeTheNextTry) {
  const Orders none{{"a", wait}, {"b", wait}, {"c", wait}};
  hear("a", LeaseTurn::waiting);
  hear("b", LeaseTurn::held);
  hear("c", LeaseTurn::in_line);
  decide(10);
  EXPECT_EQ(decide(69).at("b"), take);
  EXPECT_EQ(decide(71), none);
  EXPECT_EQ(decide(100), none) << "b still has its lease";
  hear("b", LeaseTurn::waiting);
  hear("c", LeaseTurn::waiting);
  EXPECT_EQ(decide(101), (Orders{{"a", wait}, {"b", take}, {"c", wait}}));
}

TEST_F(LeaseTurnsTest, TheNextTryComesAfterAPause) {
  hear("a", LeaseTurn::waiting);
  hear("b", LeaseTurn::held);
  hear("c", LeaseTurn::waiting);
  decide(10);
  decide(71);
  hear("b", LeaseTurn::waiting);
  EXPECT_EQ(decide(75.9).at("b"), wait);
  EXPECT_EQ(decide(76).at("b"), take);
  hear("b", LeaseTurn::held);
  EXPECT_EQ(decide(80).at("c"), take);
  EXPECT_EQ(decide(139).at("c"), take) << "the time of the first try counts";
  EXPECT_EQ(decide(141).at("c"), wait);
}

TEST_F(LeaseTurnsTest, ANewCoordinatorContinues) {
  EXPECT_FALSE(turns_.is_over());
  hear("b", LeaseTurn::started, 99);
  EXPECT_FALSE(turns_.is_over());
  hear("a", LeaseTurn::held);
  EXPECT_EQ(decide(0).at("a"), wait);
  hear("c", LeaseTurn::held);
  const LeaseOrder order{LeaseAction::start, 99};
  EXPECT_EQ(decide(0), (Orders{{"a", order}, {"b", order}, {"c", order}}));
}

// Launches on some of four servers, each with capacity for one. Messages are delayed, lost, and duplicated.
// The rules can be broken, to check that this is noticed.
struct Broken {
  bool order = false;     // servers take their leases in any order
  bool one_each = false;  // all servers take their leases at the same time
  bool limit = false;     // leases are never given back
};

class Play {
 public:
  Play(std::uint64_t seed, Broken broken) : dice_(seed), broken_(broken) {
    for (std::size_t number = 0; number < 6; ++number) {
      std::vector<std::string> names{"a", "b", "c", "d"};
      dice_.shuffle(names);
      names.resize(1 + dice_.below(4));
      Launch launch{.names = names,
                    .turns = LeaseTurns(
                        names, Seconds(broken.limit ? 1e9 : 60), [] { return 1; },
                        [this] { return Seconds(dice_.uniform(0.5, 5)); })};
      for (const std::string& name : names) {
        launch.states[name] = LeaseTurn::waiting;
        launch.orders[name] = LeaseAction::wait;
        launch.machines[name] = broken.order ? std::to_string(dice_.below(1000)) : machines.at(name);
      }
      launches_.push_back(std::move(launch));
    }
  }
  Play(const Play&) = delete;

  // Returns whether each launch got all of its leases in time.
  bool run() {
    constexpr int most_steps = 2000;
    for (int i = 0; i < most_steps; ++i) {
      step();
      const bool are_over =
          std::ranges::all_of(launches_, [](const Launch& launch) { return launch.is_over; });
      if (are_over || had_two_holders_) {
        return !had_two_holders_;
      }
    }
    return false;
  }

 private:
  struct Launch {
    std::vector<std::string> names;
    LeaseTurns turns;
    std::map<std::string, LeaseTurn> states{};
    std::map<std::string, LeaseAction> orders{};
    std::map<std::string, std::string> machines{};
    std::size_t steps_left = 0;  // after the start of its ranks
    bool is_over = false;
  };

  void step() {
    constexpr double delivered = 0.6;
    now_ += Seconds(0.5);
    for (Launch& launch : launches_) {
      for (const std::string& name : launch.names) {
        if (dice_.chance() < delivered) {
          launch.turns.hear(name, {launch.machines.at(name), launch.states.at(name),
                                   launch.states.at(name) == LeaseTurn::started ? 1 : 0});
        }
      }
      const Orders orders = launch.turns.decide(now_);
      for (const std::string& name : launch.names) {
        if (dice_.chance() < delivered) {
          const bool may_take = broken_.one_each && orders.at(name).action == LeaseAction::wait;
          launch.orders[name] = may_take ? LeaseAction::take : orders.at(name).action;
        }
      }
    }
    for (const auto& machine : machines) {
      for (std::size_t i = 0; i < launches_.size(); ++i) {
        if (launches_[i].states.contains(machine.first)) {
          obey(i, machine.first);
        }
      }
    }
    for (std::size_t i = 0; i < launches_.size(); ++i) {
      Launch& launch = launches_[i];
      if (launch.steps_left > 0 && --launch.steps_left == 0) {
        launch.is_over = true;
        for (const std::string& name : launch.names) {
          had_two_holders_ = had_two_holders_ || holders_.at(name) != i;
          holders_.erase(name);
        }
      }
    }
  }

  // Like agent/lease/wait_for_lease.
  void obey(std::size_t number, const std::string& name) {
    Launch& launch = launches_[number];
    LeaseTurn& state = launch.states.at(name);
    const LeaseAction order = launch.orders.at(name);
    if (state == LeaseTurn::started) {
      return;
    }
    if (state == LeaseTurn::held) {
      if (order == LeaseAction::wait) {
        holders_.erase(name);
        state = LeaseTurn::waiting;
      } else if (order == LeaseAction::start) {
        state = LeaseTurn::started;
        if (std::ranges::all_of(launch.states,
                                [](const auto& each) { return each.second == LeaseTurn::started; })) {
          launch.steps_left = 1 + dice_.below(20);
        }
      }
      return;
    }
    state = order == LeaseAction::take ? LeaseTurn::in_line : LeaseTurn::waiting;
    bool is_behind = false;
    for (std::size_t i = 0; i < number; ++i) {
      const auto other = launches_[i].states.find(name);
      is_behind = is_behind || (other != launches_[i].states.end() && other->second == LeaseTurn::in_line);
    }
    if (order == LeaseAction::take && !holders_.contains(name) && !is_behind) {
      holders_[name] = number;
      state = LeaseTurn::held;
    }
  }

  Random dice_;
  Broken broken_;
  Seconds now_{0};
  std::map<std::string, std::size_t> holders_;  // server -> launch
  std::vector<Launch> launches_;
  bool had_two_holders_ = false;
};

TEST(LeaseTurnsPlay, EveryLaunchGetsAllOfItsLeases) {
  for (std::uint64_t seed = 0; seed < simulation::count_seeds(); ++seed) {
    EXPECT_TRUE(Play(seed, {}).run()) << "seed " << seed;
  }
}

// Launches that take their leases in different orders wait for each other until the time is up.
TEST(LeaseTurnsPlay, ALeftOutRuleIsFound) {
  for (const Broken broken :
       {Broken{.order = true, .limit = true}, Broken{.one_each = true, .limit = true}}) {
    bool is_found = false;
    for (std::uint64_t seed = 0; seed < 1000 && !is_found; ++seed) {
      is_found = !Play(seed, broken).run();
    }
    EXPECT_TRUE(is_found);
  }
}

// The order alone is enough: no launches wait for each other, even if leases are never given back.
TEST(LeaseTurnsPlay, TheOrderPreventsADeadlock) {
  for (std::uint64_t seed = 0; seed < simulation::count_seeds(); ++seed) {
    EXPECT_TRUE(Play(seed, {.limit = true}).run()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace remote::rules
