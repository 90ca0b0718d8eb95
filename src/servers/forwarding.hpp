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

// Forwards ports over one connection.

namespace remote::servers {

// A non-blocking socket that listens on 127.0.0.1. If `port` is taken, uses another one and changes `port`.
// Throws Error.
UniqueFd listen_on_loopback(int& port);

struct Tunnel {
  UniqueFd listener;  // on this machine; empty for a reverse tunnel
  int local = 0;      // the port of 127.0.0.1 that a reverse tunnel connects to
  std::string host;
  int port = 0;
  bool refused = false;  // and this was reported
};

// Serves tunnels while the connection lasts. Used only by the connection's thread.
class Forwarding {
 public:
  using OnRefused = std::function<void(std::size_t, const Error&)>;

  // Asks the server to listen for reverse tunnels. Throws Error if it refuses.
  Forwarding(ssh::Connection& connection, std::vector<Tunnel>& tunnels, OnRefused on_refused,
             const Cancel& cancel);
  ~Forwarding();
  Forwarding(const Forwarding&) = delete;
  Forwarding& operator=(const Forwarding&) = delete;

  // Throws ssh::Unreachable if the connection is lost, and Interrupted on cancel.
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
  Clock::time_point accept_after_;  // until then, this machine cannot open more connections
};

}  // namespace remote::servers
