#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <remote/cancel.hpp>
#include <remote/error.hpp>

#include "base/files.hpp"
#include "ssh/connection.hpp"
#include "ssh/pump.hpp"

// Ports that are forwarded over one connection.

namespace remote::servers {

// A socket that listens on 127.0.0.1, and does not block. Where `port` is taken it gets another one, which it
// is set to. Throws Error.
UniqueFd listen_on_loopback(int& port);

struct Tunnel {
  UniqueFd listener;  // here; none for a reverse one
  int local = 0;      // a reverse one ends at this port of 127.0.0.1
  std::string host;
  int port = 0;
  bool refused = false;  // and that was told
};

// Serves tunnels for as long as the connection lasts. One thread, the connection's.
class Forwarding {
 public:
  using OnRefused = std::function<void(std::size_t, const Error&)>;

  // Asks the server to listen for reverse tunnels. Throws Error when it refuses.
  Forwarding(ssh::Connection& connection, std::vector<Tunnel>& tunnels, OnRefused on_refused,
             const Cancel& cancel);
  ~Forwarding();
  Forwarding(const Forwarding&) = delete;
  Forwarding& operator=(const Forwarding&) = delete;

  // Throws ssh::Unreachable when the connection is lost, Interrupted on cancel.
  [[noreturn]] void serve();

 private:
  struct Link;
  using Clock = std::chrono::steady_clock;

  void accept_all(std::size_t tunnel);
  void take_incoming(int port);
  void refuse(std::size_t tunnel, const Error& error);
  void drop_ended();

  std::vector<Tunnel>& tunnels_;
  OnRefused on_refused_;
  ssh::Pump pump_;
  std::vector<std::unique_ptr<Link>> links_;
  Clock::time_point accept_after_;  // this machine has no room for more before
};

}  // namespace remote::servers
