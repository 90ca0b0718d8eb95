#include "agent/network/talks.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "agent/network/socket_address.hpp"

namespace remote::agent {
namespace {

constexpr std::size_t max_greeting = 200;

void set_option(const Descriptor& socket, int level, int name, int value) {
  ::setsockopt(socket.get(), level, name, &value, sizeof value);
}

}  // namespace

pollfd Talk::prepare() const {
  const bool writes = is_connecting_ || is_sending();
  return {socket_.get(), static_cast<short>(writes ? POLLOUT : POLLIN), 0};
}

void Talk::step(short events, std::vector<char>& buffer) {
  if (events == 0) {
    if (Clock::now() >= deadline_) {
      stop(time_is_up);
    }
  } else if (is_connecting_) {
    is_connecting_ = false;
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    connected(error);
  } else if (is_sending()) {
    send_more();
  } else {
    const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (count > 0) {
      take(std::string_view(buffer.data(), static_cast<std::size_t>(count)));
    } else if (count == 0) {
      stop(closed);
    } else if (errno != EAGAIN && errno != EINTR) {
      stop(errno);
    }
  }
}

void Talk::connect(const IpAddress& address, int port, int max_packet) {
  const bool is_four = address.family() == AF_INET;
  const SocketAddress place = make_socket_address(address, port);
  socket_ = open_tcp_socket(address.family());
  if (!socket_) {
    connected(errno);
    return;
  }
  if (max_packet > 0) {
    set_option(socket_, IPPROTO_TCP, TCP_MAXSEG, max_packet - (is_four ? 40 : 60));
  }
  // Keeps the ICMP message that explains a failure.
  set_option(socket_, is_four ? IPPROTO_IP : IPPROTO_IPV6, is_four ? IP_RECVERR : IPV6_RECVERR, 1);
  set_option(socket_, IPPROTO_TCP, TCP_NODELAY, 1);
  const int error = ::connect(socket_.get(), place.get(), place.size) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    is_connecting_ = true;
    expect(connect_wait);
  } else {
    connected(error);
  }
}

void Talk::send(std::string text, milliseconds answer_wait, milliseconds wait) {
  text_ = std::move(text);
  answer_wait_ = answer_wait;
  send_bytes(text_, wait);
}

void Talk::send_last(std::string text) {
  is_last_ = true;
  send(std::move(text), {});
}

void Talk::send_bytes(std::string_view bytes, milliseconds wait) {
  unsent_ = bytes;
  send_wait_ = wait;
  expect(wait);
}

void Talk::send_more() {
  const ssize_t count = ::send(socket_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
  if (count < 0) {
    if (errno != EAGAIN && errno != EINTR) {
      stop(errno);
    }
    return;
  }
  unsent_.remove_prefix(static_cast<std::size_t>(count));
  expect(is_sending() ? send_wait_ : answer_wait_);
  is_over_ = is_last_ && !is_sending();
  sent(static_cast<std::size_t>(count));
}

void Caller::connected(int error) {
  if (error != 0) {
    fail(error);
    return;
  }
  step_ = Step::greeting;
  expect(talk_wait);
}

void Caller::take(std::string_view data) {
  if (step_ == Step::talking) {
    answer(data);
    return;
  }
  greeting_ += data.substr(0, max_greeting + 1);
  if (greeting_.find('\n') != std::string::npos || greeting_.size() > max_greeting) {
    step_ = Step::talking;
    greet(greeting_);
  }
}

void Caller::stop(int why) {
  if (step_ == Step::connecting) {
    fail(why);
  } else if (step_ == Step::greeting) {
    step_ = Step::talking;
    greet(greeting_);
  } else {
    lose(why);
  }
}

void Talks::add(std::unique_ptr<Talk> talk) {
  talk->begin();
  talks_.push_back(std::move(talk));
}

void Talks::turn(std::vector<pollfd>& others, milliseconds limit) {
  const std::size_t first = others.size();
  Talk::Clock::time_point end = Talk::Clock::now() + limit;
  for (const auto& talk : talks_) {
    others.push_back(talk->prepare());
    end = std::min(end, talk->is_over() ? Talk::Clock::time_point{} : talk->deadline());
  }
  const auto left = std::chrono::ceil<milliseconds>(end - Talk::Clock::now());
  const int wait = static_cast<int>(std::max<milliseconds::rep>(left.count(), 0));
  if (::poll(others.data(), others.size(), wait) < 0) {
    std::ranges::for_each(others, [](pollfd& each) { each.revents = 0; });
  }
  std::size_t at = first;
  for (const auto& talk : talks_) {
    if (!talk->is_over()) {
      talk->step(others[at].revents, buffer_);
    }
    ++at;
  }
  talks_.remove_if([](const auto& talk) { return talk->is_over(); });
}

}  // namespace remote::agent
