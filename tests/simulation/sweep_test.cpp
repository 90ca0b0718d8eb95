#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "random.hpp"
#include "rules/sweep_policy.hpp"
#include "seeds.hpp"

// The points of a sweep, with delays, cuts, deaths, full disks and failed starts: no point runs twice, and
// none is lost.

namespace remote::simulation {
namespace {

using rules::PointStart;
using rules::Seconds;

class SweepWorld;

// Its disk and its jobs outlive its supervisor.
class SweepServer final : public rules::SweepJournal, public rules::SweepTakerActs {
 public:
  SweepServer(SweepWorld& world, std::string server_name, int slots)
      : world_(world), name(std::move(server_name)), slots_(slots) {}

  bool write(const wire::SweepEntry& entry) override;
  std::optional<int> take_lease() override {
    if (static_cast<int>(leases.size()) == slots_) {
      return std::nullopt;
    }
    leases.insert(++last_lease_);
    return last_lease_;
  }
  void give_back(int lease) override { ASSERT_EQ(leases.erase(lease), 1U); }
  PointStart start(const std::string& point, int lease) override;
  void tell(const wire::SweepMessage& message) override { outbox.push_back(message); }

  std::set<std::string> begun() const;
  void boot();
  void step();

  SweepWorld& world_;
  std::string name;
  std::vector<wire::SweepEntry> disk;
  std::map<std::string, std::optional<Seconds>> jobs;  // point -> end of its run; nullopt: has ended
  std::set<int> leases;
  std::unique_ptr<rules::SweepTaker> taker;
  bool linked = false;
  std::deque<wire::SweepMessage> inbox;
  std::deque<wire::SweepMessage> outbox;

 private:
  int slots_;
  int last_lease_ = 0;
};

std::string without_tries(std::string point) {
  point.erase(point.find_last_not_of('+') + 1);
  return point;
}

class SweepWorld {
 public:
  explicit SweepWorld(std::uint64_t seed) : random(seed) {
    full_disk = random.choose({0.0, 0.0, 0.05});
    bad_start = random.choose({0.0, 0.0, 0.1});
    const int count = random.choose({1, 2, 4});
    for (int i = 0; i < count; ++i) {
      servers.push_back(
          std::make_unique<SweepServer>(*this, "s" + std::to_string(i), random.choose({1, 2, 4})));
    }
    for (int i = 0; i < points; ++i) {
      ids.push_back("p" + std::to_string(i));
    }
    begin(ids);
  }

  void begin(const std::vector<std::string>& left) {
    giver = std::make_unique<rules::SweepGiver>(left, *servers.front());
    for (const auto& server : servers) {
      server->boot();
    }
  }

  void cut(SweepServer& server) {
    server.inbox.clear();
    server.outbox.clear();
    if (giver) {
      giver->forget(server.name);
    }
    server.linked = false;
    if (server.taker) {
      server.taker->unlink();
    }
    server.outbox.clear();
  }

  void step(bool trouble) {
    now += Seconds(0.5);
    for (const auto& server : servers) {
      if (trouble && random.chance() < 0.03) {
        cut(*server);
      }
      if (!server->linked && server->taker && giver && (!trouble || random.chance() < 0.3)) {
        server->linked = true;
        server->taker->link();
      }
      if (server->linked) {
        talk(*server);
      }
      server->step();
    }
    if (trouble && random.chance() < 0.01) {
      const std::size_t number = random.below(servers.size());
      cut(*servers[number]);
      servers[number]->taker.reset();  // killed, but its points keep running
      if (number == 0) {
        giver.reset();
      }
    }
  }

  // Like Project::resume_sweep: all supervisors end, and points without a job on any server are handed out
  // again.
  void resume() {
    std::set<std::string> started;
    std::set<std::string> begun;
    for (const auto& server : servers) {
      cut(*server);
      server->taker.reset();
      for (const auto& [point, end] : server->jobs) {
        started.insert(without_tries(point));
      }
      begun.merge(server->begun());
    }
    std::vector<std::string> left;
    for (std::string& id : ids) {
      id += begun.contains(id) ? "+" : "";  // an id that started is not used again
      if (!started.contains(without_tries(id))) {
        left.push_back(id);
      }
    }
    begin(left);
  }

  static constexpr int points = 30;
  Random random;
  Seconds now{0};
  double full_disk = 0;
  double bad_start = 0;
  std::map<std::string, int> starts;  // point -> number of starts
  std::vector<std::unique_ptr<SweepServer>> servers;
  std::vector<std::string> ids;
  std::unique_ptr<rules::SweepGiver> giver;

 private:
  // Delivers some of the messages in transit, in order.
  void talk(SweepServer& server) {
    for (int i = random.choose({0, 1, 1, 3}); i > 0; --i) {
      if (!server.outbox.empty() && giver) {
        const wire::SweepMessage message = server.outbox.front();
        server.outbox.pop_front();
        giver->hear(server.name, message, [&](const std::string& /*name*/, const wire::SweepMessage& answer) {
          server.inbox.push_back(answer);
        });
      }
      if (!server.inbox.empty() && server.taker) {
        const wire::SweepMessage message = server.inbox.front();
        server.inbox.pop_front();
        server.taker->hear(message, now);
      }
    }
  }
};

bool SweepServer::write(const wire::SweepEntry& entry) {
  if (world_.random.chance() < world_.full_disk) {
    return false;
  }
  disk.push_back(entry);
  return true;
}

PointStart SweepServer::start(const std::string& point, int /*lease*/) {
  if (world_.random.chance() < world_.bad_start) {
    return PointStart::failed;
  }
  EXPECT_FALSE(jobs.contains(point)) << "begins twice on one server";
  for (const auto& other : world_.servers) {
    for (const auto& [there, end] : other->jobs) {
      EXPECT_NE(without_tries(point), without_tries(there)) << "runs on two servers";
    }
  }
  ++world_.starts[without_tries(point)];
  jobs[point] = world_.now + Seconds(world_.random.uniform(0, 20));
  return PointStart::started;
}

std::set<std::string> SweepServer::begun() const {
  std::set<std::string> points;
  for (const wire::SweepEntry& entry : disk) {
    if (const auto* begun = std::get_if<wire::PointBegun>(&entry)) {
      points.insert(begun->point);
    } else if (const auto* failed = std::get_if<wire::PointNotStarted>(&entry)) {
      points.erase(failed->point);
    }
  }
  return points;
}

void SweepServer::boot() {
  leases.clear();
  std::map<std::string, int> running;
  for (const auto& [point, end] : jobs) {
    if (end) {
      leases.insert(++last_lease_);
      running[point] = last_lease_;
    }
  }
  inbox.clear();
  outbox.clear();
  linked = false;
  taker = std::make_unique<rules::SweepTaker>(begun(), running, *this, *this);
}

void SweepServer::step() {
  for (auto& [point, end] : jobs) {
    if (end && *end <= world_.now) {
      end.reset();
      if (taker) {
        taker->note_end(point);
      }
    }
  }
  if (taker) {
    taker->tick(world_.now);
  }
}

void play(std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  SweepWorld world(seed);
  for (int i = 0; i < 600; ++i) {
    world.step(true);
    if (world.random.chance() < 0.005) {
      world.resume();
    }
  }
  world.full_disk = world.bad_start = 0;
  world.resume();
  const auto is_done = [&] {
    return world.giver->is_over({}) &&
           std::ranges::all_of(world.servers, [](const auto& server) { return server->taker->is_idle(); });
  };
  for (int i = 0; i < 3000 && !is_done(); ++i) {
    world.step(false);
  }
  ASSERT_TRUE(is_done()) << "points are forgotten";
  for (int i = 0; i < SweepWorld::points; ++i) {
    ASSERT_EQ(world.starts["p" + std::to_string(i)], 1) << "point " << i;
  }
  for (const auto& server : world.servers) {
    server->taker->unlink();
    ASSERT_TRUE(server->leases.empty()) << "a lease is not given back";
  }
}

TEST(SimulatedSweeps, RunEachPointOnce) {
  for (std::uint64_t seed = 0; seed < count_seeds() && !testing::Test::HasFailure(); ++seed) {
    play(seed);
  }
}

TEST(SweepTaker, AsksNoMoreWhereNothingStarts) {
  SweepWorld world(1);
  world.bad_start = 1;
  world.full_disk = 0;
  for (int i = 0; i < 2000; ++i) {
    world.step(false);
  }
  EXPECT_EQ(world.giver->left(), 30U);
  for (const auto& server : world.servers) {
    EXPECT_TRUE(server->taker->is_idle());
    EXPECT_TRUE(server->leases.empty());
  }
}

// Accepts all entries.
class Disk final : public rules::SweepJournal {
 public:
  bool write(const wire::SweepEntry& /*entry*/) override { return true; }
};

TEST(SweepGiver, WaitsForNoSilentServerAndGivesItsPointsToNoOther) {
  Disk disk;
  rules::SweepGiver giver({"a", "b"}, disk);
  std::vector<wire::SweepMessage> sent;
  const auto send = [&](const std::string& /*server*/, const wire::SweepMessage& message) {
    sent.push_back(message);
  };
  giver.hear("s0", wire::WantPoint{}, send);
  giver.hear("s1", wire::WantPoint{}, send);
  giver.hear("s0", wire::WantPoint{}, send);
  EXPECT_EQ(sent,
            (std::vector<wire::SweepMessage>{wire::GivePoint{"a"}, wire::GivePoint{"b"}, wire::NoPoint{}}));
  giver.hear("s0", wire::EndedPoints{{"a", "b"}}, send);  // b does not belong to s0
  EXPECT_FALSE(giver.is_over({}));
  EXPECT_TRUE(giver.is_over({"s1"}));
  giver.hear("s0", wire::ReturnPoint{"b"}, send);
  giver.hear("s0", wire::WantPoint{}, send);
  EXPECT_EQ(sent.back(), wire::SweepMessage(wire::NoPoint{}));
}

TEST(SweepTaker, GivesTheLeaseOfAPointBackThatWasNotStartedAfterAll) {
  SweepWorld world(1);
  world.full_disk = world.bad_start = 0;
  SweepServer& server = *world.servers.front();
  while (server.jobs.empty()) {
    world.step(false);
  }
  const std::string point = server.jobs.begin()->first;
  const std::size_t held = server.leases.size();
  server.jobs.clear();
  server.taker->note_failed(point, world.now);
  EXPECT_EQ(server.leases.size(), held - 1);
  EXPECT_EQ(server.outbox.back(), wire::SweepMessage(wire::ReturnPoint{point}));
}

}  // namespace
}  // namespace remote::simulation
