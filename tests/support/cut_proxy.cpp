#include "support/cut_proxy.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>
#include <string>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace remote::test {
namespace {

constexpr std::size_t piece_size = 65536;

sockaddr_in local_address(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

void make_ready(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::fcntl(fd, F_SETFL, O_NONBLOCK);
}

bool would_block() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

}  // namespace

CutProxy::CutProxy(int target_port)
    : target_port_(target_port), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = local_address(0);
  socklen_t size = sizeof address;
  std::array<int, 2> pipe{};
  if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener_.get(), 128) != 0 ||
      ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      ::pipe2(pipe.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    throw std::runtime_error("the proxy cannot listen");
  }
  poke_read_ = UniqueFd(pipe[0]);
  poke_write_ = UniqueFd(pipe[1]);
  port_ = ntohs(address.sin_port);
  relaying_ = std::thread([this] { relay_loop(); });
}

CutProxy::~CutProxy() {
  stop_.cancel();
  relaying_.join();
}

void CutProxy::cut_at(std::vector<std::uint64_t> totals) {
  const std::lock_guard lock(mutex_);
  cut_at_.assign(totals.begin(), totals.end());
}

void CutProxy::cut() {
  const std::lock_guard lock(mutex_);
  cut_now_ = true;
  [[maybe_unused]] const auto written = ::write(poke_write_.get(), "x", 1);
}

int CutProxy::cuts() const {
  const std::lock_guard lock(mutex_);
  return cuts_;
}

int CutProxy::connections() const {
  const std::lock_guard lock(mutex_);
  return connections_;
}

std::uint64_t CutProxy::from_target() const {
  const std::lock_guard lock(mutex_);
  return from_target_;
}

void CutProxy::cut_all() {
  const std::lock_guard lock(mutex_);
  cut_now_ = false;
  ++cuts_;
  if (cuts_ % 2 == 0) {
    // close(2) then sends a reset and drops unsent data.
    const linger reset{1, 0};
    for (const Link& link : links_) {
      ::setsockopt(link.client.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
      ::setsockopt(link.target.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    }
  }
  links_.clear();
}

void CutProxy::take_link() {
  Link link;
  link.client = UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!link.client) {
    return;
  }
  link.target = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = local_address(target_port_);
  if (::connect(link.target.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return;  // the client sees its connection closed
  }
  make_ready(link.client.get());
  make_ready(link.target.get());
  const std::lock_guard lock(mutex_);
  ++connections_;
  links_.push_back(std::move(link));
}

void CutProxy::read_from(Link& link, bool from_target) {
  Half& half = from_target ? link.to_client : link.to_target;
  std::array<char, piece_size> piece{};
  std::size_t room = piece.size();
  if (from_target) {
    const std::lock_guard lock(mutex_);
    if (!cut_at_.empty()) {  // not a byte more than requested
      room = std::min<std::uint64_t>(room, cut_at_.front() - std::min(cut_at_.front(), from_target_));
    }
  }
  const ssize_t count = ::recv(from_target ? link.target.get() : link.client.get(), piece.data(), room, 0);
  if (count > 0) {
    half.waiting.assign(piece.data(), static_cast<std::size_t>(count));
    if (from_target) {
      const std::lock_guard lock(mutex_);
      from_target_ += static_cast<std::uint64_t>(count);
      if (!cut_at_.empty() && from_target_ >= cut_at_.front()) {
        cut_at_.pop_front();
        cut_now_ = true;
      }
    }
  } else if (count == 0) {
    half.ended = true;
  } else if (!would_block()) {
    link.dead = true;
  }
}

void CutProxy::write_to(Link& link, bool to_client) {
  Half& half = to_client ? link.to_client : link.to_target;
  const int fd = to_client ? link.client.get() : link.target.get();
  if (!half.waiting.empty()) {
    const ssize_t count = ::send(fd, half.waiting.data(), half.waiting.size(), MSG_NOSIGNAL);
    if (count > 0) {
      half.waiting.erase(0, static_cast<std::size_t>(count));
    } else if (count < 0 && !would_block()) {
      link.dead = true;
    }
  }
  if (half.waiting.empty() && half.ended && !half.closed) {
    ::shutdown(fd, SHUT_WR);
    half.closed = true;
  }
}

void CutProxy::relay_loop() {
  while (!stop_.cancelled()) {
    std::vector<pollfd> slots{
        {stop_.fd(), POLLIN, 0}, {poke_read_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    const auto wanted = [](const Half& in, const Half& out) {
      return static_cast<short>((in.waiting.empty() && !in.ended ? POLLIN : 0) |
                                (out.waiting.empty() ? 0 : POLLOUT));
    };
    for (const Link& link : links_) {
      const short client = wanted(link.to_target, link.to_client);
      const short target = wanted(link.to_client, link.to_target);
      // An end with no wanted events is skipped: its hang-up would wake poll() forever.
      slots.push_back({client != 0 ? link.client.get() : -1, client, 0});
      slots.push_back({target != 0 ? link.target.get() : -1, target, 0});
    }
    if (::poll(slots.data(), slots.size(), -1) < 0) {
      continue;
    }
    std::array<char, 64> pokes{};
    [[maybe_unused]] const auto dropped = ::read(poke_read_.get(), pokes.data(), pokes.size());
    std::size_t slot = 3;
    bool cutting = false;
    for (Link& link : links_) {
      const short client = slots[slot++].revents;
      const short target = slots[slot++].revents;
      if (cutting) {
        continue;
      }
      if (client != 0 && link.to_target.waiting.empty() && !link.to_target.ended) {
        read_from(link, false);
      }
      if (target != 0 && link.to_client.waiting.empty() && !link.to_client.ended) {
        read_from(link, true);
      }
      write_to(link, false);
      write_to(link, true);
      const std::lock_guard lock(mutex_);
      cutting = cut_now_;
    }
    {
      const std::lock_guard lock(mutex_);
      cutting = cut_now_;
    }
    if (cutting) {
      cut_all();
    }
    links_.remove_if(
        [](const Link& link) { return link.dead || (link.to_client.closed && link.to_target.closed); });
    if ((slots[2].revents & POLLIN) != 0) {
      take_link();
    }
  }
}

}  // namespace remote::test
