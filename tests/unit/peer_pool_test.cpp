#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "servers/peers.hpp"

namespace remote::servers {
namespace {

PeerSource named(const std::string& name) {
  PeerSource source;
  source.server = name;
  return source;
}

// Starts all servers that can start, then finishes all of them. Returns how many there were.
std::size_t round(PeerPool& pool, std::vector<std::string>& waiting) {
  struct Begun {
    std::string name;
    std::optional<std::string> source;
  };
  std::vector<Begun> begun;
  std::erase_if(waiting, [&](const std::string& name) {
    const PeerPool::Next next = pool.next(named(name));
    if (next.turn == PeerPool::Turn::wait) {
      return false;
    }
    begun.push_back({name, next.source ? std::optional(next.source->server) : std::nullopt});
    return true;
  });
  for (const Begun& one : begun) {
    if (one.source) {
      pool.release(*one.source);
    }
    pool.finish(named(one.name));
  }
  return begun.size();
}

TEST(PeerPool, EightServersTakeThreeRoundsAfterTheFirst) {
  PeerPool pool;
  std::vector<std::string> waiting = {"1", "2", "3", "4", "5", "6", "7", "8"};
  std::vector<std::size_t> rounds;
  while (!waiting.empty()) {
    rounds.push_back(round(pool, waiting));
  }
  EXPECT_EQ(rounds, (std::vector<std::size_t>{1, 1, 2, 4}));
}

TEST(PeerPool, WhoWaitsIsToldWhomFor) {
  PeerPool pool;
  EXPECT_EQ(pool.next(named("a")).turn, PeerPool::Turn::from_here);
  const PeerPool::Next next = pool.next(named("b"));
  EXPECT_EQ(next.turn, PeerPool::Turn::wait);
  ASSERT_TRUE(next.source);
  EXPECT_EQ(next.source->server, "a");
}

TEST(PeerPool, WhenTheFirstFailsAnotherTakesItsPlace) {
  PeerPool pool;
  pool.next(named("a"));
  EXPECT_EQ(pool.next(named("b")).turn, PeerPool::Turn::wait);
  pool.finish(std::nullopt);
  EXPECT_EQ(pool.next(named("b")).turn, PeerPool::Turn::from_here);
}

TEST(PeerPool, OneThatDoesNotWaitCanServeOthers) {
  PeerPool pool;
  pool.next(named("a"));
  pool.begin_from_here();  // b cannot reach a
  pool.finish(std::nullopt);
  EXPECT_EQ(pool.next(named("c")).turn, PeerPool::Turn::wait);  // b is being sent
  pool.finish(named("b"));
  const PeerPool::Next next = pool.next(named("c"));
  EXPECT_EQ(next.turn, PeerPool::Turn::from_peer);
  EXPECT_EQ(next.source->server, "b");
}

}  // namespace
}  // namespace remote::servers
