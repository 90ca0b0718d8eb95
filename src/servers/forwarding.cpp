#include "servers/forwarding.hpp"

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/error_of.hpp"
#include "base/loopback.hpp"
#include "base/strings.hpp"
#include "ssh/tcp.hpp"

namespace remote::servers {
namespace {

using std::chrono::milliseconds;

// Further connections wait until they can be accepted. By default, a process may have 1024 open files.
constexpr std::size_t most_links = 500;
constexpr milliseconds no_room_time{200};
// The time limit for connecting to a port of this machine, during which the other connections wait.
constexpr milliseconds connect_time{1000};

void prepare_socket(int fd) {
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  ::fcntl(fd, F_SETFL, O_NONBLOCK);
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Error cannot(const std::string& what, int number) {
  return Error(what, std::generic_category().message(number), "choose another port")
      .because(cause_of(number));
}

// `why` is the error of sshd, or of OpenSSH's master, which does not pass on sshd's error.
Error cannot_connect(const Tunnel& tunnel, const std::string& why) {
  const std::string place = host_and_port(tunnel.host, tunnel.port);
  const Error error =
      why == "Connection refused"
          ? Error(tunnel.host == "127.0.0.1" ? fmt::format("nothing listens on port {}", tunnel.port)
                                             : "nothing listens on " + place,
                  "", "start the program there, or name the port that it printed; the forwarding continues")
          : Error("cannot connect to " + place, why,
                  "is a program listening there, and does the server's sshd_config allow forwarding "
                  "(AllowTcpForwarding, PermitOpen)?");
  return error.because(Cause::refused);
}

bool listen_on(int fd, int port) {
  const int on = 1;  // allows reusing a port whose connections have just ended
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const sockaddr_in address = loopback(port);
  return ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
         ::listen(fd, 128) == 0;
}

// Connects to a port of this machine. On failure, the descriptor is empty and errno is set.
UniqueFd connect_here(int port) {
  UniqueFd fd = ssh::stream_socket(AF_INET);
  if (!fd) {
    return fd;
  }
  prepare_socket(fd.get());
  const sockaddr_in address = loopback(port);
  int error =
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd slot{fd.get(), POLLOUT, 0};
    socklen_t size = sizeof error;
    error = ETIMEDOUT;
    if (::poll(&slot, 1, static_cast<int>(connect_time.count())) > 0) {
      ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    }
  }
  if (error != 0) {
    fd.reset();
    errno = error;
  }
  return fd;
}

}  // namespace

UniqueFd listen_on_loopback(int& port) {
  UniqueFd fd = ssh::stream_socket(AF_INET);
  bool listens = fd && listen_on(fd.get(), port);
  if (fd && !listens && (errno == EADDRINUSE || errno == EACCES)) {
    fd = ssh::stream_socket(AF_INET);
    listens = fd && listen_on(fd.get(), 0);
  }
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (!listens || ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw cannot(fmt::format("cannot listen on port {} of this machine", port), errno);
  }
  prepare_socket(fd.get());
  port = ntohs(address.sin_port);
  return fd;
}

// A connection on this machine, and the channel to its other end.
struct Forwarding::Link {
  Link(ssh::Pump& pump, std::size_t which, UniqueFd end, const ssh::Flow::Open& open)
      : tunnel(which),
        fd(std::move(end)),
        flow(pump, open, [this](ssh::Stream, std::string_view data) { flow.pass_on(data); }) {
    flow.pass_on_to(fd.get());
    flow.send_from(fd.get(), [this](char /*last*/) { flow.end_input(); });
  }

  // Returns true when no more data has to be carried. Passes on an EOF from the server.
  bool over() {
    const ssh::Channel& channel = flow.channel();
    if (channel.opening()) {
      return false;
    }
    if (!channel.refusal().empty() || flow.swallows()) {
      return true;
    }
    if (channel.output_ended() && flow.passed_on() && !std::exchange(shut, true)) {
      ::shutdown(fd.get(), SHUT_WR);
    }
    return channel.finished() && flow.passed_on();
  }

  std::size_t tunnel;
  UniqueFd fd;
  ssh::Flow flow;
  bool shut = false;
};

Forwarding::Forwarding(ssh::Connection& connection, std::vector<Tunnel>& tunnels, OnRefused on_refused,
                       const Cancel& cancel)
    : tunnels_(tunnels), on_refused_(std::move(on_refused)), pump_(connection, cancel) {
  for (const Tunnel& tunnel : tunnels_) {
    if (!tunnel.listener) {
      connection.listen_tcp(tunnel.port);
    }
  }
}

Forwarding::~Forwarding() = default;

void Forwarding::refuse(std::size_t tunnel, const Error& error) {
  if (!std::exchange(tunnels_[tunnel].refused, true)) {
    on_refused_(tunnel, error);
  }
}

void Forwarding::accept_all(std::size_t tunnel) {
  const Tunnel& to = tunnels_[tunnel];
  while (links_.size() < most_links) {
    UniqueFd fd(::accept(to.listener.get(), nullptr, nullptr));
    if (!fd) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        accept_after_ = Clock::now() + no_room_time;
      }
      return;
    }
    prepare_socket(fd.get());
    links_.push_back(std::make_unique<Link>(pump_, tunnel, std::move(fd), [&](ssh::Sink sink) {
      return pump_.connection().open_tcp(to.host, to.port, std::move(sink));
    }));
  }
}

void Forwarding::take_incoming(int port) {
  const auto open = [this](ssh::Sink sink) { return pump_.connection().accept_tcp(std::move(sink)); };
  for (std::size_t i = 0; i < tunnels_.size(); ++i) {
    if (tunnels_[i].listener || tunnels_[i].port != port) {
      continue;
    }
    UniqueFd fd = links_.size() < most_links ? connect_here(tunnels_[i].local) : UniqueFd();
    if (fd) {
      links_.push_back(std::make_unique<Link>(pump_, i, std::move(fd), open));
      return;
    }
    refuse(i, Error(fmt::format("cannot connect to port {} of this machine", tunnels_[i].local),
                    links_.size() < most_links ? std::generic_category().message(errno)
                                               : "too many connections are open",
                    "start the program that listens there"));
    break;
  }
  static_cast<void>(open([](ssh::Stream, std::string_view) {}));  // opens it only to close it
}

void Forwarding::drop_ended() {
  const bool had = !links_.empty();
  std::erase_if(links_, [this](const auto& link) {
    if (!link->over()) {
      tunnels_[link->tunnel].refused = tunnels_[link->tunnel].refused && link->flow.channel().opening();
      return false;
    }
    const Tunnel& tunnel = tunnels_[link->tunnel];
    if (const std::string why = link->flow.channel().refusal(); !why.empty()) {
      refuse(link->tunnel, cannot_connect(tunnel, why));
    }
    return true;
  });
  if (had && links_.empty()) {
    pump_.connection().be_watchful(false);
  }
}

void Forwarding::serve() {
  std::vector<pollfd> fds(tunnels_.size());
  for (;;) {
    drop_ended();  // including those that were refused while they were opened
    const auto now = Clock::now();
    const bool room = now >= accept_after_ && links_.size() < most_links;
    for (std::size_t i = 0; i < fds.size(); ++i) {
      fds[i] = {room ? tunnels_[i].listener.get() : -1, POLLIN, 0};
    }
    const bool idle = links_.empty();
    pump_.wait(now < accept_after_ ? no_room_time : milliseconds(60000), fds);
    for (std::size_t i = 0; i < fds.size(); ++i) {
      if (fds[i].revents != 0) {
        accept_all(i);
      }
    }
    while (const int port = pump_.connection().incoming()) {
      take_incoming(port);
    }
    if (idle && !links_.empty()) {
      pump_.connection().be_watchful(true);  // the user is waiting
    }
  }
}

}  // namespace remote::servers
