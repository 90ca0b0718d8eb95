// Servers on this machine run a few at a time; all others run at once.

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/threads.hpp"
#include "jobs/job_servers.hpp"

namespace remote::jobs {
namespace {

// The maximum number of these servers that run at the same time.
int most_at_once(const config::Config& config) {
  HostTurns turns(config);
  std::atomic<int> now = 0;
  std::atomic<int> most = 0;
  {
    std::vector<JoiningThread> threads;
    for (const config::Server& server : config.servers) {
      threads.emplace_back([&] {
        const HostTurns::Turn turn(turns, server);
        const int mine = ++now;
        for (int seen = most; seen < mine && !most.compare_exchange_weak(seen, mine);) {
        }
        // Wait until the maximum is reached.
        const int wanted = config.servers.front().hostname == "127.0.0.1" ? 16 : 40;
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (most < wanted && std::chrono::steady_clock::now() < end) {
          std::this_thread::yield();
        }
        --now;
      });
    }
  }
  return most;
}

config::Config forty_servers(const std::string& host) {
  config::Config config;
  for (int i = 0; i < 40; ++i) {
    config::Server server;
    server.name = "node-" + std::to_string(i);
    server.hostname = host;
    config.servers.push_back(server);
  }
  return config;
}

TEST(HostTurns, SixteenServersOfThisMachineAtATime) {
  EXPECT_EQ(most_at_once(forty_servers("127.0.0.1")), 16);
}

TEST(HostTurns, ServersBehindOneGatewayDoNotWaitForEachOther) {
  EXPECT_EQ(most_at_once(forty_servers("gpus.example.org")), 40);
}

}  // namespace
}  // namespace remote::jobs
