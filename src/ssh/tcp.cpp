#include "ssh/tcp.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <future>
#include <memory>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/error_of.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "ssh/connection.hpp"

namespace remote::ssh {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

// The addresses of a name, or getaddrinfo(3)'s error code.
struct Lookup {
  Addresses addresses;
  int code = 0;
};

Lookup look_up(const std::string& host, const std::string& port, int flags) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags;
  addrinfo* list = nullptr;
  const int code = ::getaddrinfo(host.c_str(), port.c_str(), &wanted, &list);
  return {Addresses(list), code};
}

Addresses resolve(const std::string& host, const std::string& port, const Patience& patience) {
  if (Lookup numeric = look_up(host, port, AI_NUMERICHOST); numeric.code == 0) {
    return std::move(numeric.addresses);
  }
  // getaddrinfo(3) cannot be interrupted and may take arbitrarily long, so it runs in a separate thread,
  // which is abandoned if its result is no longer needed.
  std::packaged_task<Lookup()> task([host, port] { return look_up(host, port, AI_ADDRCONFIG); });
  std::future<Lookup> answer = task.get_future();
  std::thread(std::move(task)).detach();
  const std::string network_hint = "check this machine's network and its name servers";
  while (answer.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) {
    patience.cancel().check();
    if (patience.over()) {
      throw Unreachable(Error("cannot connect",
                              fmt::format("the name '{}' was not resolved within {}", host, patience.text()),
                              network_hint)
                            .because(Cause::timeout));
    }
  }
  Lookup found = answer.get();
  if (found.code != 0) {
    throw Unreachable("cannot connect",
                      fmt::format("the name '{}' cannot be resolved: {}", host, ::gai_strerror(found.code)),
                      found.code == EAI_AGAIN
                          ? network_hint
                          : "check the spelling of hostname, or give the server's address");
  }
  return std::move(found.addresses);
}

std::string numeric_address(const addrinfo& address) {
  std::array<char, NI_MAXHOST> text{};
  if (::getnameinfo(address.ai_addr, address.ai_addrlen, text.data(), text.size(), nullptr, 0,
                    NI_NUMERICHOST) != 0) {
    return {};
  }
  return text.data();
}

void set_option(int fd, int level, int name, int value) {
  ::setsockopt(fd, level, name, &value, sizeof value);
}

// A connection that is lost without notice (a pulled cable, a lost VPN) is detected within 30 s.
void watch_link(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
#ifdef TCP_KEEPIDLE
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 10);
#elif defined(TCP_KEEPALIVE)
  set_option(fd, IPPROTO_TCP, TCP_KEEPALIVE, 10);
#endif
#ifdef TCP_KEEPINTVL
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
#endif
#ifdef TCP_USER_TIMEOUT
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 25000);
#endif
}

// Returns 0 if connected, otherwise an errno.
int connect_one(const addrinfo& address, const Patience& patience, UniqueFd& fd) {
  fd = stream_socket(address.ai_family);
  if (!fd) {
    return errno;
  }
  ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) {
    return 0;
  }
  if (errno != EINPROGRESS && errno != EINTR) {
    return errno;
  }
  if (!patience.wait(fd.get(), POLLOUT)) {
    return ETIMEDOUT;
  }
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

std::string hint_for(int error, const std::string& where) {
  switch (error) {
    case ECONNREFUSED:
      return "is sshd running there, and on this port? `port` in configs.yaml sets another";
    case ETIMEDOUT:
      return "check that the server is up and that no firewall drops the port; "
             "connect_timeout in configs.yaml allows more time";
    case EHOSTUNREACH:
    case ENETUNREACH:
      return "check this machine's network (a VPN that is off?) and the address of " + where;
    case EMFILE:
    case ENFILE:
      return "this machine allows too few open files: raise `ulimit -n`";
    default:
      return "check the network between this machine and " + where;
  }
}

}  // namespace

UniqueFd stream_socket(int family) {
#ifdef SOCK_CLOEXEC
  return UniqueFd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
#else
  UniqueFd fd(::socket(family, SOCK_STREAM, 0));
  if (fd) {
    ::fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
  }
  return fd;
#endif
}

std::string address_of(const std::string& host, const Patience& patience) {
  return numeric_address(*resolve(host, "22", patience));
}

TcpLink connect_tcp(const std::string& host, int port, const Patience& patience) {
  const std::string where = host_and_port(host, port);
  const Addresses addresses = resolve(host, std::to_string(port), patience);
  int error = EADDRNOTAVAIL;
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    TcpLink link;
    // A first address that drops packets must not use up the time of the others.
    const bool last = address->ai_next == nullptr;
    const Patience part(last ? patience.left() : patience.left() / 2, patience.cancel());
    link.address = numeric_address(*address);
    const int result = connect_one(*address, part, link.fd);
    log_debug("", "{} at {}: {}", where, link.address, std::generic_category().message(result));
    if (result == 0) {
      watch_link(link.fd.get());
      return link;
    }
    error = result;
  }
  const std::string reason = error == ETIMEDOUT
                                 ? fmt::format("{} did not answer within {}", where, patience.text())
                                 : fmt::format("{}: {}", where, std::generic_category().message(error));
  throw Unreachable(Error("cannot connect", reason, hint_for(error, where)).because(cause_of(error)));
}

}  // namespace remote::ssh
