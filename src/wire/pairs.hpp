#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <remote/network.hpp>

#include "wire/fields.hpp"

// Determines how servers can reach each other, and how fast they send. Each server listens; when all of them
// do, each tries to reach the others.

namespace remote::wire {

constexpr std::size_t max_servers = 10'000;
// The limits for one server.
constexpr std::size_t max_interfaces = 64;
constexpr std::size_t max_server_addresses = 16;
constexpr std::size_t max_tries = 32;

// For an address or a list of addresses.
constexpr Limits address_limit = a_word(".:%_-", 100);

// Listens on two ports until the stream is closed.
struct ListenRequest {
  static constexpr std::string_view kind = "listen";

  std::string token;   // sent by the listeners on each connection, to identify themselves
  std::string master;  // the address or name of the first server, for a launch
  // All servers try to listen on this port: if a server has the address of another one, it then answers in
  // its place.
  int port = 20000;
  bool with_iperf = false;  // also serve iperf3, if it is installed

  static constexpr auto fields() {
    using R = ListenRequest;
    return field_list(field("token", &R::token, a_name(100)), field("master", &R::master, a_line()),
                      field("port", &R::port, in_range(1, 65535)), field("with_iperf", &R::with_iperf));
  }
};

struct ListenReply {
  static constexpr std::string_view kind = "listens";

  NetworkServer server;  // without ports if none was free
  int iperf_port = 0;    // 0: not installed

  static constexpr auto fields() {
    return field_list(field("server", &ListenReply::server),
                      field("iperf_port", &ListenReply::iperf_port, in_range(0, 65535)));
  }
};

struct ListeningServer {
  int index = 0;  // in the client's list of servers
  std::string token;
  std::string name;  // the address or name for a launch
  int port = 0;
  int second_port = 0;
  std::string data_address;            // on the interface for ranks; "": unknown
  std::vector<std::string> addresses;  // other addresses where it might be reachable

  static constexpr auto fields() {
    using S = ListeningServer;
    return field_list(field("index", &S::index, in_range(0, max_servers)),
                      field("token", &S::token, a_name(100)), field("name", &S::name, a_line()),
                      field("port", &S::port, in_range(1, 65535)),
                      field("second_port", &S::second_port, in_range(1, 65535)),
                      field("data_address", &S::data_address, address_limit),
                      field("addresses", &S::addresses, address_limit));
  }
};

// Tries to reach all servers.
struct ReachRequest {
  static constexpr std::string_view kind = "reach";

  int own = 0;  // the index of this server, whose name is only resolved
  std::vector<ListeningServer> servers;

  static constexpr auto fields() {
    return field_list(field("own", &ReachRequest::own, in_range(0, max_servers)),
                      field("servers", &ReachRequest::servers, at_most(max_servers)));
  }
};

// The result for one server; they arrive in any order.
struct ReachReply {
  static constexpr std::string_view kind = "reached";

  Pair pair;

  static constexpr auto fields() { return field_list(field("pair", &ReachReply::pair)); }
};

// Measures how fast this server sends to a listener.
struct SendRequest {
  static constexpr std::string_view kind = "send";

  std::string token;  // the listener's
  std::string address;
  int port = 0;
  int iperf_port = 0;  // use iperf3 on this port; 0: do not use it
  int seconds = 1;
  bool with_latency = false;

  static constexpr auto fields() {
    using R = SendRequest;
    return field_list(
        field("token", &R::token, a_name(100)), field("address", &R::address, address_limit),
        field("port", &R::port, in_range(1, 65535)), field("iperf_port", &R::iperf_port, in_range(0, 65535)),
        field("seconds", &R::seconds, in_range(1, 3600)), field("with_latency", &R::with_latency));
  }
};

struct SendReply {
  static constexpr std::string_view kind = "sent";

  Flow flow;

  static constexpr auto fields() { return field_list(field("flow", &SendReply::flow)); }
};

// The fields of structs in public headers, without those that the client adds.

constexpr Limits microseconds_limit = in_range(0, 1'000'000'000);

template <>
struct Fields<NetworkInterface> {
  static constexpr auto fields() {
    using I = NetworkInterface;
    return field_list(field("name", &I::name, a_name(64)), field("mtu", &I::mtu, in_range(0, 1 << 30)),
                      field("speed_mbit", &I::speed_mbit, in_range(0, 1 << 30)),
                      field("addresses", &I::addresses, address_limit));
  }
};

template <>
struct Fields<NetworkServer> {
  static constexpr auto fields() {
    using S = NetworkServer;
    return field_list(
        field("hostname", &S::hostname, a_word("._-")),
        field("host_addresses", &S::host_addresses, address_limit),
        field("interfaces", &S::interfaces, at_most(max_interfaces)),
        field("ports", &S::ports, Limits{.least = 1, .most = 65535, .size = 2}),
        field("firewall", &S::firewall, a_name()), field("interface", &S::interface, a_word("._-")),
        field("data_address", &S::data_address, address_limit), field("has_gpus", &S::has_gpus));
  }
};

template <>
struct Fields<Reach> {
  static constexpr auto fields() {
    using R = Reach;
    return field_list(
        field("address", &R::address, address_limit), field("port", &R::port, in_range(1, 65535)),
        field("kind", &R::kind), field("connect", &R::connect, microseconds_limit),
        field("seen_as", &R::seen_as, address_limit), field("rejected_by", &R::rejected_by, address_limit),
        field("answered_by", &R::answered_by), field("on_the_way_back", &R::on_the_way_back),
        field("packet", &R::packet, in_range(0, 1 << 20)), field("passes", &R::passes, in_range(0, 1 << 20)),
        field("reason", &R::reason, a_word("", 32)));
  }
};

template <>
struct Fields<Pair> {
  static constexpr auto fields() {
    using P = Pair;
    return field_list(field("to", &P::to), field("addresses", &P::addresses, address_limit),
                      field("interface", &P::interface, a_word("._-")),
                      field("source", &P::source, address_limit),
                      field("tries", &P::tries, at_most(max_tries)));
  }
};

template <>
struct Fields<Flow> {
  static constexpr auto fields() {
    using F = Flow;
    return field_list(field("gbit_s", &F::gbit_s, in_range(0, 1'000'000)),
                      field("latency", &F::latency, microseconds_limit), field("error", &F::error, a_line()));
  }
};

}  // namespace remote::wire

template <>
inline constexpr std::array remote::wire::enum_names<remote::ReachKind> = {
    std::string_view("ok"),     std::string_view("dropped"),    std::string_view("rejected"),
    std::string_view("reset"),  std::string_view("no_route"),   std::string_view("wrong_peer"),
    std::string_view("silent"), std::string_view("lost_large"), std::string_view("failed")};
