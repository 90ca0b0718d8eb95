#include "ssh/tcp.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.hpp"
#include "ssh/errors.hpp"

namespace remote::ssh {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

int look_up(const std::string& host, const std::string& port, int flags, Addresses& result) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags;
  addrinfo* list = nullptr;
  const int code = ::getaddrinfo(host.c_str(), port.c_str(), &wanted, &list);
  result.reset(list);
  return code;
}

// getaddrinfo(3) cannot be interrupted and takes as long as it likes, so it runs on a thread of its own that
// is left behind when nobody waits any more.
struct Lookup {
  std::mutex mutex;
  Addresses addresses;
  int code = 0;
  UniqueFd write_end;
};

Addresses resolve(const std::string& host, const std::string& port, const Patience& patience) {
  Addresses numeric;
  if (look_up(host, port, AI_NUMERICHOST, numeric) == 0) {
    return numeric;
  }
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) {
    throw Error("cannot resolve " + host, std::strerror(errno));
  }
  const UniqueFd read_end(ends[0]);
  auto lookup = std::make_shared<Lookup>();
  lookup->write_end.reset(ends[1]);
  ::fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  ::fcntl(ends[1], F_SETFD, FD_CLOEXEC);
  std::thread([lookup, host, port] {
    Addresses found;
    const int code = look_up(host, port, AI_ADDRCONFIG, found);
    const std::lock_guard lock(lookup->mutex);
    lookup->addresses = std::move(found);
    lookup->code = code;
    lookup->write_end.reset();  // wakes who waits
  }).detach();
  if (!patience.wait(read_end.get(), POLLIN)) {
    throw Unreachable("cannot connect",
                      fmt::format("the name '{}' was not resolved within {:.3g} s", host,
                                  static_cast<double>(patience.time().count()) / 1000.0),
                      "check this machine's network and its name servers");
  }
  const std::lock_guard lock(lookup->mutex);
  if (lookup->code != 0) {
    const bool later = lookup->code == EAI_AGAIN;
    throw Unreachable("cannot connect",
                      fmt::format("the name '{}' cannot be resolved: {}", host, ::gai_strerror(lookup->code)),
                      later ? "check this machine's network and its name servers"
                            : "check the spelling of hostname, or give the server's address");
  }
  return std::move(lookup->addresses);
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

// A link that dies without a word (a pulled cable, a lost VPN) is noticed within 30 s.
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

// 0 when connected, else an errno.
int connect_one(const addrinfo& address, const Patience& patience, UniqueFd& fd) {
  fd.reset(::socket(address.ai_family, SOCK_STREAM, 0));
  if (!fd) {
    return errno;
  }
  ::fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
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

std::string host_and_port(const std::string& host, int port) {
  return host.find(':') != std::string::npos ? fmt::format("[{}]:{}", host, port)
                                             : fmt::format("{}:{}", host, port);
}

TcpLink connect_tcp(const std::string& host, int port, const Patience& patience) {
  const std::string where = host_and_port(host, port);
  const Addresses addresses = resolve(host, std::to_string(port), patience);
  int error = EADDRNOTAVAIL;
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    TcpLink link;
    // A first address that swallows packets must not use up the time of the others.
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
                                 ? fmt::format("{} did not answer within {:.3g} s", where,
                                               static_cast<double>(patience.time().count()) / 1000.0)
                                 : fmt::format("{}: {}", where, std::generic_category().message(error));
  throw Unreachable("cannot connect", reason, hint_for(error, where));
}

}  // namespace remote::ssh
