#pragma once

#include <optional>
#include <string>
#include <vector>

#include <remote/network.hpp>

#include "servers/action.hpp"

// How servers reach each other, as pairs.sh and pairs.py on each of them find it out. The lines are described
// in docs/protocol.md.

namespace remote::servers {

// What one server is told of another, or of itself.
struct PairPeer {
  std::string token;                       // by which its listeners prove whose they are; letters and digits
  std::string address;                     // by which a launch would call it
  std::vector<int> ports;                  // on which it listens; two
  std::string data_address;                // that ranks on it would use; empty: not known
  std::vector<std::string> own_addresses;  // all by which others might reach it
};

struct PairsRequest {
  std::size_t own = 0;     // this server's number among them
  std::string token;       // its own
  std::string activate{};  // sh text that enters the Python environment
  std::vector<std::string>
      addresses{};          // by which a launch would call the servers, in their order; empty: takes no part
  int port = 20000;         // that all servers try to listen on: the answer then tells who has an address
  bool bandwidth = false;   // it will be asked how fast it sends
  std::string python = {};  // for tests: the only name that Python may have
};

// What a server has answered. `about` and `pairs` grow as the lines come.
struct PairsAnswer {
  std::size_t own = 0;
  std::vector<std::string> addresses{};  // PairsRequest's
  NetworkServer about{};
  std::vector<Pair> pairs{};  // for each server that it was told of, in their order, itself included
  bool has_python = true;
  bool listening = false;           // its listeners stand, and it waits for orders
  bool tried = false;               // all tries have come to their end
  std::optional<int> iperf_port{};  // on which iperf3 serves; 0: it is not there
  std::vector<Flow> sent{};         // what it has measured, one after the other

  explicit PairsAnswer(const PairsRequest& request);
  void take(AnswerLine& line);
};

// To which the ranks of a launch would connect: the first that takes part.
std::string master_of(const std::vector<std::string>& addresses);
// The script; it is spoken with (servers/conversation.hpp).
Script pairs_script(const PairsRequest& request);
// The order to try all servers, itself being the one at `own`: first those that follow it, so that not all
// begin with the same one. nullopt: that server takes no part.
std::string pairs_order(const std::vector<std::optional<PairPeer>>& peers, std::size_t own);

// For `bandwidth`: the order to serve iperf3.
inline constexpr const char* iperf_order = "iperf3\n";
// The order to send to a server for so long, by iperf3 (on that port) or, with 0, without.
std::string send_order(std::size_t to, const std::string& address, int iperf_port, int seconds,
                       bool with_latency);
// In which order all meet all: in each round every server has one partner, or none (its own index). With n
// servers there are n - 1 rounds, n when n is odd.
std::vector<std::vector<std::size_t>> rounds_of(std::size_t servers);

}  // namespace remote::servers
