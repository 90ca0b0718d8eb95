#pragma once

#include <memory>

#include "ssh/connector.hpp"

namespace remote::ssh {

// A connector that keeps connections for reuse. connect() returns a lease, which one thread uses at a time.
// Its destructor gives the connection back, unless it broke or a command was abandoned. connect() is
// thread-safe, and leases may outlive the pool.
class Pool final : public Connector {
 public:
  // `maker` creates the connections that the pool does not have.
  explicit Pool(std::unique_ptr<Connector> maker);

  // An idle connection to this server that still works, or else a new one.
  std::unique_ptr<Connection> connect(const config::Server& server, const Cancel& cancel,
                                      ConnectLimit limit = {}) override;
  // Always a new connection, which is not kept, because the purpose is to test the login.
  std::unique_ptr<Connection> connect_with_key(const config::Server& server, const std::filesystem::path& key,
                                               const Cancel& cancel) override;

 private:
  class Idle;
  class Lease;
  std::unique_ptr<Connector> maker_;
  std::shared_ptr<Idle> idle_;
};

}  // namespace remote::ssh
