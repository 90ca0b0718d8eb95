#pragma once

#include <memory>

#include "ssh/connector.hpp"

namespace remote::ssh {

// A connector that keeps connections for their next use. What connect() returns is a lease: one thread uses
// it at a time, and its destructor gives the connection back, unless the link broke or a command was left in
// the middle. Any thread may call connect(); leases may outlive the pool.
class Pool final : public Connector {
 public:
  // `maker` makes the connections that the pool does not have.
  explicit Pool(std::unique_ptr<Connector> maker);

  // An idle connection to this server whose link stands, else a new one.
  std::unique_ptr<Connection> connect(const config::Server& server, const Cancel& cancel,
                                      ConnectLimit limit = {}) override;
  // Always a new one, which is not kept: it is made to see whether the login works.
  std::unique_ptr<Connection> connect_with_key(const config::Server& server, const std::filesystem::path& key,
                                               const Cancel& cancel) override;

 private:
  class Idle;
  class Lease;
  std::unique_ptr<Connector> maker_;
  std::shared_ptr<Idle> idle_;
};

}  // namespace remote::ssh
