#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <remote/network.hpp>

#include "wire/pairs.hpp"

// How servers reach each other, as the agent of each of them finds out.

namespace remote::servers {

// What one server has answered.
struct PairsAnswer {
  std::size_t own = 0;                   // its index
  std::vector<std::string> addresses{};  // of all servers, for a launch; "": not reachable
  NetworkServer about{};
  std::vector<Pair> pairs{};  // for each server, itself included
  int iperf_port = 0;         // of its iperf3 server; 0: there is none

  PairsAnswer(std::size_t index, std::vector<std::string> all_addresses);
  // These throw Error for an invalid answer.
  void take(wire::ListenReply reply);
  void take(wire::ReachReply reply);
  // False before the answer, and if no port is free.
  bool is_listening() const { return !about.ports.empty(); }
};

// To which the ranks of a launch would connect: the first that takes part.
std::string master_of(const std::vector<std::string>& addresses);

// A listening server, for requests to the others.
wire::ListeningServer to_listening(const PairsAnswer& answer, const std::string& token);

// To try all servers from the one at `own`: first those that follow it, so that not all begin with the same
// one. nullopt: that server takes no part.
wire::ReachRequest reach_request(const std::vector<std::optional<wire::ListeningServer>>& servers,
                                 std::size_t own);

// In which order all meet all: in each round every server has one partner, or none (its own index). With n
// servers there are n - 1 rounds, n when n is odd.
std::vector<std::vector<std::size_t>> rounds_of(std::size_t servers);

}  // namespace remote::servers
