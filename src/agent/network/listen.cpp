#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "agent/facts/ports.hpp"
#include "agent/host/run.hpp"
#include "agent/network/about.hpp"
#include "agent/network/answers.hpp"
#include "agent/network/iperf.hpp"
#include "agent/network/socket_address.hpp"
#include "agent/network/visit.hpp"
#include "base/format.hpp"

namespace remote::agent {
namespace {

constexpr std::chrono::minutes unvisited_limit{10};
constexpr milliseconds closed_look{100};  // the stream is checked at least this often
constexpr milliseconds deaf_wait{100};    // if too many files are open
constexpr std::size_t max_visits = 2000;
constexpr std::size_t accepted_at_once = 64;
constexpr int visit_backlog = 512;

Descriptor listen_on(int port) {
  for (const int family : {AF_INET6, AF_INET}) {
    Descriptor socket = open_tcp_socket(family);
    const int off = 0;
    if (family == AF_INET6) {
      ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    }
    const SocketAddress any = make_any_address(family, port);
    if (socket && ::bind(socket.get(), any.get(), any.size) == 0 &&
        ::listen(socket.get(), visit_backlog) == 0) {
      return socket;
    }
  }
  return {};
}

// Listens on a port that is chosen like a launch's port.
Descriptor listen_as_launch(const Host& host, int first) {
  Descriptor socket = listen_on(first);
  for (int i = 0; i < 25 && !socket; ++i) {
    const wire::PortFacts free = look_at_port(host, 0);
    for (const std::optional<int> port :
         {std::optional<int>(free.suggested), std::optional<int>(free.second)}) {
      if (!socket && port.value_or(0) > 0) {
        socket = listen_on(*port);
      }
    }
  }
  return socket;
}

class Visitors {
 public:
  Visitors(std::string token, std::array<Descriptor, 2> listeners)
      : token_(std::move(token)), listeners_(std::move(listeners)) {}

  Talk::Clock::time_point last_visit() const { return last_visit_; }
  void turn(IperfServer* iperf) {
    std::vector<pollfd> ready;
    const bool is_deaf = Talk::Clock::now() < deaf_until_;
    for (const Descriptor& listener : listeners_) {
      ready.push_back({is_deaf ? -1 : listener.get(), POLLIN, 0});
    }
    ready.push_back({iperf == nullptr ? -1 : iperf->output(), POLLIN, 0});
    talks_.turn(ready, closed_look);
    for (std::size_t i = 0; i < listeners_.size(); ++i) {
      if (ready[i].revents != 0) {
        accept(listeners_[i]);
      }
    }
    if (ready[listeners_.size()].revents != 0) {
      iperf->drain();
    }
  }

 private:
  void accept(const Descriptor& listener) {
    for (std::size_t i = 0; i < accepted_at_once; ++i) {
      SocketAddress peer;
      Descriptor socket(::accept4(listener.get(), peer.get(), &peer.size, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) {
        if (errno != EAGAIN) {
          deaf_until_ = Talk::Clock::now() + deaf_wait;
        }
        return;
      }
      last_visit_ = Talk::Clock::now();
      if (talks_.size() < max_visits) {
        const int on = 1;
        ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        talks_.add(
            std::make_unique<Visit>(std::move(socket), text::format("remote1 {} {}\n", token_, peer.text())));
      }
    }
  }

  std::string token_;
  std::array<Descriptor, 2> listeners_;
  Talks talks_;
  Talk::Clock::time_point last_visit_ = Talk::Clock::now();
  Talk::Clock::time_point deaf_until_{};
};

}  // namespace

void answer_listen(const Host& host, const wire::ListenRequest& request, Stream& stream) {
  if (!stream.has_thread()) {
    throw CannotStart();  // this would block all other requests
  }
  wire::ListenReply reply;
  describe_server(host, request.master, reply.server);
  std::array listeners{listen_as_launch(host, request.port), listen_on(0)};
  if (!listeners[0] || !listeners[1]) {
    stream.send(std::move(reply));
    return;
  }
  reply.server.ports = {find_port(listeners[0]), find_port(listeners[1])};
  std::optional<IperfServer> iperf;
  if (request.with_iperf) {
    iperf.emplace(host, [&] { return stream.is_closed(); });
    reply.iperf_port = iperf->port();
  }
  Visitors visitors(request.token, std::move(listeners));
  stream.send(std::move(reply));
  while (!stream.is_closed() && Talk::Clock::now() < visitors.last_visit() + unvisited_limit) {
    visitors.turn(iperf ? &*iperf : nullptr);
  }
}

}  // namespace remote::agent
