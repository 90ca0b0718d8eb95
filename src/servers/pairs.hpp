#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <remote/network.hpp>

#include "wire/pairs.hpp"

// How servers can reach each other, measured by their agents.

namespace remote::servers {

struct PairsAnswer {
  std::size_t own = 0;                   // its index
  std::vector<std::string> addresses{};  // of all servers, for a launch; "": unreachable
  NetworkServer about{};
  std::vector<Pair> pairs{};  // one for each server, including itself
  int iperf_port = 0;         // the port of its iperf3 server; 0: none

  PairsAnswer(std::size_t index, std::vector<std::string> all_addresses);
  // These throw Error for an invalid answer.
  void take(wire::ListenReply reply);
  void take(wire::ReachReply reply);
  // False before the answer, and if no port is free.
  bool is_listening() const { return !about.ports.empty(); }
};

// The address that the ranks of a launch would connect to: that of the first server that takes part.
std::string master_of(const std::vector<std::string>& addresses);

// A listening server, in the form for requests to the others.
wire::ListeningServer to_listening(const PairsAnswer& answer, const std::string& token);

// A request to the server at `own` to try all others. It starts with those after `own`, so that not all
// servers start with the same one. nullopt: that server does not take part.
wire::ReachRequest reach_request(const std::vector<std::optional<wire::ListeningServer>>& servers,
                                 std::size_t own);

// The rounds in which every server meets every other. In each round, a server has one partner, or none (its
// own index). With n servers there are n - 1 rounds, or n if n is odd.
std::vector<std::vector<std::size_t>> rounds_of(std::size_t servers);

}  // namespace remote::servers
