#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <ratio>
#include <string>
#include <vector>

// Network tests between the servers, as plain data: every attempt from each server to every other one, and
// the settings that a launch would derive. Servers are identified by their index in Network::servers.

namespace remote {

using Microseconds = std::chrono::duration<double, std::micro>;

// The result of an attempt to connect to a listener on another server.
enum class ReachKind {
  ok,          // the listener answered, and a full-size packet passed in both directions
  dropped,     // no answer at all, as with a firewall that drops packets
  rejected,    // an ICMP error, as from a firewall that rejects
  reset,       // "connection refused" by TCP: a firewall with tcp-reset, or a port without a listener
  no_route,    // no route to it, or no machine on its network has that address
  wrong_peer,  // another program answered: on another server, or on the server itself
  silent,      // connected, but received nothing
  lost_large,  // connected, but full-size packets are lost: the MTU is wrong somewhere
  failed,      // any other reason
};

struct Reach {
  std::string address{};
  int port = 0;
  ReachKind kind = ReachKind::failed;
  Microseconds connect{0};                   // for ok: time to connect
  std::string seen_as{};                     // for ok: the address that the listener saw
  std::string rejected_by{};                 // for rejected and no_route: the sender of the ICMP message
  std::optional<std::size_t> answered_by{};  // for wrong_peer: the server, if it is one of these
  bool on_the_way_back = false;  // for lost_large: packets are lost on the way back, not on the way there
  int packet = 0;                // for ok and lost_large: the size in bytes that was tested
  int passes = 0;                // for lost_large: a smaller size that passed; 0: none of those tested
  std::string reason{};          // the system's error name: "ECONNREFUSED"
};

// The attempts from one server to another.
struct Pair {
  std::size_t from = 0;
  std::size_t to = 0;                    // if equal to `from`: how a server resolves itself, without attempts
  std::string name{};                    // the name that a launch would use for `to`
  std::vector<std::string> addresses{};  // its addresses, as resolved by `from`; none: it does not resolve
  std::string interface {};              // of `from`, on the route to the first address; empty: unknown
  std::string source{};                  // the address of `from` on that route; empty: unknown
  std::vector<Reach> tries{};            // those to the name's addresses first
};

struct NetworkInterface {
  std::string name{};
  int mtu = 0;         // bytes; 0: unknown
  int speed_mbit = 0;  // as reported by the kernel; 0: unknown
  std::vector<std::string> addresses{};
};

// Network facts that a server reports about itself.
struct NetworkServer {
  std::string server{};    // name in configs.yaml
  std::string address{};   // the address for a launch: internal_address, or else that which this machine uses
  std::string hostname{};  // its own hostname
  std::vector<std::string> host_addresses{};  // the addresses that it resolves that to
  std::vector<NetworkInterface> interfaces{};
  // The ports that it listened on: one as chosen by launches, one as assigned to NCCL and gloo.
  std::vector<int> ports{};
  // The program there that manages the firewall: ufw, firewall-cmd, iptables, nft, none.
  std::string firewall{};
  // The setting that a launch on all of these servers would use for its ranks there; empty: unknown.
  std::string master_addr{};
  // NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME: the interface on the route to master_addr.
  std::string interface {};
  // The server's address on that interface, which the ranks of other servers connect to.
  std::string data_address{};
  bool has_gpus = false;  // it has NVIDIA or AMD devices
  std::string skipped{};  // why this server made no tests; empty: it made them
  bool broken = false;    // skipped because its answer was missing or invalid
};

// Bandwidth from one server to another.
struct Flow {
  std::size_t from = 0;
  std::size_t to = 0;
  double gbit_s = 0;        // 10^9 bits per second, payload only; 0: could not be measured
  Microseconds latency{0};  // median round trip between two programs; 0: unknown
  std::string method{};     // "iperf3", or "own": the agent, if iperf3 is not installed
  std::string error{};      // why it could not be measured
  bool outlier = false;     // under 70 % of the median of all
};

struct Bandwidth {
  std::vector<Flow> flows{};  // each pair alone, in each direction; disjoint pairs at the same time
  std::vector<Flow>
      at_once{};  // each server with the one half the list away, all at the same time, in both directions
  double median_gbit_s = 0;  // of `flows`
  double total_gbit_s = 0;   // of `at_once`

  // nullptr: not measured.
  const Flow* flow(std::size_t from, std::size_t to) const;
};

struct Network {
  std::vector<NetworkServer> servers{};
  std::vector<Pair> pairs{};  // sorted by `from`, then `to`
  std::optional<Bandwidth> bandwidth{};

  // nullptr: not tested.
  const Pair* pair(std::size_t from, std::size_t to) const;
};

}  // namespace remote
