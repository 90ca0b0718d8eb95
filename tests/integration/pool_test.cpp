#include "ssh/pool.hpp"

#include <gtest/gtest.h>
#include <remote/error.hpp>

#include "support/local_connection.hpp"

namespace remote {
namespace {

// Counts the connections.
class Counting : public ssh::Connector {
 public:
  Counting(std::shared_ptr<test::LocalServers> servers, int& made)
      : servers_(std::move(servers)), made_(made) {}
  std::unique_ptr<ssh::Connection> connect(const config::Server& server, const Cancel& cancel,
                                           ssh::ConnectLimit limit) override {
    ++made_;
    return servers_->connect(server, cancel, limit);
  }

 private:
  std::shared_ptr<test::LocalServers> servers_;
  int& made_;
};

class ConnectionPool : public testing::Test {
 protected:
  static config::Server server(const std::string& name) {
    config::Server server;
    server.name = name;
    return server;
  }
  std::unique_ptr<ssh::Connection> take(const std::string& name = "a") {
    return pool->connect(server(name), Cancel());
  }

  std::shared_ptr<test::LocalServers> servers = std::make_shared<test::LocalServers>();
  int made = 0;
  std::unique_ptr<ssh::Pool> pool = std::make_unique<ssh::Pool>(std::make_unique<Counting>(servers, made));
};

TEST_F(ConnectionPool, OneConnectionServesOneCommandAfterTheOther) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(take()->exec({.command = "echo hi"}).out, "hi\n");
  }
  EXPECT_EQ(made, 1);
}

TEST_F(ConnectionPool, WhatIsInUseIsNotHandedOut) {
  {
    const auto one = take();
    const auto two = take();
    EXPECT_EQ(made, 2);
  }
  const auto one = take();
  const auto two = take();
  EXPECT_EQ(made, 2);
}

TEST_F(ConnectionPool, EachServerHasItsOwn) {
  take("a");
  take("b");
  EXPECT_EQ(made, 2);
  take("a");
  take("b");
  EXPECT_EQ(made, 2);
}

TEST_F(ConnectionPool, ABrokenLinkIsDropped) {
  servers->set_faults({.after = 1});
  EXPECT_THROW(take()->exec({.command = "true"}), ssh::Unreachable);
  EXPECT_EQ(take()->exec({.command = "echo hi"}).out, "hi\n");
  EXPECT_EQ(made, 2);
}

TEST_F(ConnectionPool, ABrokenLinkTakesTheIdleOnesOfItsServerWithIt) {
  {
    const auto one = take();
    const auto two = take();
  }
  servers->set_faults({.after = 1});
  EXPECT_THROW(take()->exec({.command = "true"}), ssh::Unreachable);
  take();
  EXPECT_EQ(made, 3);
}

TEST_F(ConnectionPool, AConnectionWhoseCommandWasLeftInTheMiddleIsDropped) {
  {
    const auto lease = take();
    EXPECT_THROW(lease->exec({.command = "sleep 5", .timeout = std::chrono::milliseconds(20)}), Error);
  }
  take();
  EXPECT_EQ(made, 2);
}

TEST_F(ConnectionPool, ALeaseMayOutliveThePool) {
  const auto lease = take();
  pool.reset();
  EXPECT_EQ(lease->exec({.command = "echo hi"}).out, "hi\n");
}

TEST_F(ConnectionPool, AnInterruptedCallerGetsNone) {
  take();
  Cancel cancel;
  cancel.cancel();
  EXPECT_THROW(pool->connect(server("a"), cancel), Interrupted);
}

}  // namespace
}  // namespace remote
