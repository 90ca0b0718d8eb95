#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <ratio>
#include <string>
#include <vector>

// How the servers reach each other, as plain data: what was tried from each server to each other one, and
// what a launch would make of it. Servers are named by their index in Network::servers.

namespace remote {

using Microseconds = std::chrono::duration<double, std::micro>;

// How a try to talk with a listener on another server ended.
enum class ReachKind {
  ok,        // the listener answered, and a packet of full size passed in both directions
  dropped,   // no answer at all: what a firewall that drops packets does
  rejected,  // an ICMP message said no: what a firewall that rejects does
  reset,     // "connection refused" by TCP: a firewall with tcp-reset, or a machine on which nothing listens
  no_route,  // the server has no way there, or nobody has that address on its network
  wrong_peer,  // something else answered there: another server, or the one that tried
  silent,      // connected, and then nothing came
  lost_large,  // the connection stands, and packets of full size do not arrive: the MTU is wrong somewhere
  failed,      // for another reason
};

struct Reach {
  std::string address{};
  int port = 0;
  ReachKind kind = ReachKind::failed;
  Microseconds connect{0};                   // of ok: how long connecting took
  std::string seen_as{};                     // of ok: the address that the other one saw
  std::string rejected_by{};                 // of rejected and no_route: who sent the ICMP message
  std::optional<std::size_t> answered_by{};  // of wrong_peer: the server, where it is one of these
  bool on_the_way_back = false;              // of lost_large: not there, but back
  int packet = 0;                            // of ok and lost_large: the size in bytes that was tried
  int passes = 0;        // of lost_large: a smaller size that passed; 0: none that was tried
  std::string reason{};  // the system's name of the error: "ECONNREFUSED"
};

// From one server to another.
struct Pair {
  std::size_t from = 0;
  std::size_t to = 0;                    // equal to `from`: how a server finds itself, without tries
  std::string name{};                    // by which a launch would call `to`
  std::vector<std::string> addresses{};  // to which `from` resolves that; none: it does not resolve
  std::string interface {};              // of `from`, that leads to the first of them; empty: not known
  std::string source{};                  // the address of `from` on that way; empty: not known
  std::vector<Reach> tries{};            // those of the name's addresses first
};

struct NetworkInterface {
  std::string name{};
  int mtu = 0;         // bytes; 0: not known
  int speed_mbit = 0;  // as the kernel tells it; 0: not known
  std::vector<std::string> addresses{};
};

// What one server says about itself.
struct NetworkServer {
  std::string server{};                       // its name in configs.yaml
  std::string address{};                      // by which a launch would call it: internal_address, else the
                                              // address by which this machine reaches it
  std::string hostname{};                     // its own name for itself
  std::vector<std::string> host_addresses{};  // to which it resolves that
  std::vector<NetworkInterface> interfaces{};
  std::vector<int> ports{};  // on which it listened: one as launches choose, one as NCCL and gloo get
  std::string firewall{};    // the program there that would change a firewall: ufw, firewall-cmd, iptables,
                             // nft, none
  // What a launch on all of these servers would set for its ranks there; empty: not known.
  std::string master_addr{};
  std::string interface {};    // NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME: the one that leads to master_addr
  std::string data_address{};  // of the server on that interface: to which the ranks of others connect
  bool has_gpus = false;       // there are devices of NVIDIA or AMD
  std::string skipped{};       // why it was not looked at from this server; empty: it was
  bool broken = false;         // that is because its answer was wrong, or did not come
};

// How fast one server sends to another.
struct Flow {
  std::size_t from = 0;
  std::size_t to = 0;
  double gbit_s = 0;        // 10^9 bits a second, of what the programs sent; 0: could not be measured
  Microseconds latency{0};  // a round trip between two programs, the median; 0: not known
  std::string method{};     // "iperf3", or "own": the agent, if iperf3 is missing
  std::string error{};      // why it could not be measured
  bool outlier = false;     // under 70 % of the median of all
};

struct Bandwidth {
  std::vector<Flow> flows{};  // each pair by itself, in each direction; in rounds, side by side
  std::vector<Flow>
      at_once{};             // each server with the one half the list away, all at once, in both directions
  double median_gbit_s = 0;  // of `flows`
  double total_gbit_s = 0;   // of `at_once`

  // nullptr: it was not measured.
  const Flow* flow(std::size_t from, std::size_t to) const;
};

struct Network {
  std::vector<NetworkServer> servers{};
  std::vector<Pair> pairs{};  // sorted by `from`, then `to`
  std::optional<Bandwidth> bandwidth{};

  // nullptr: it was not tried.
  const Pair* pair(std::size_t from, std::size_t to) const;
};

}  // namespace remote
