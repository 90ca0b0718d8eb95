#include "agent/launch/peers.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <variant>

#include <sys/socket.h>
#include <unistd.h>

#include "agent/host/background.hpp"
#include "agent/host/name_service.hpp"
#include "agent/host/processes.hpp"
#include "agent/host/run.hpp"
#include "agent/launch/clock.hpp"
#include "agent/network/socket_address.hpp"

namespace remote::agent {
namespace {

constexpr Seconds connect_limit{2};
constexpr Seconds last_words_limit{2};
constexpr Seconds deaf_pause{1};
constexpr Seconds lookup_pause{1};  // after a failed resolution
constexpr std::chrono::seconds lookup_limit{10};
constexpr std::chrono::seconds listen_lookup_limit{5};
constexpr int listen_backlog = 128;
constexpr std::string_view unknown_name = "Name or service not known";

std::string_view strip_brackets(std::string_view address) {
  return address.size() > 2 && address.front() == '[' && address.back() == ']'
             ? address.substr(1, address.size() - 2)
             : address;
}

std::vector<IpAddress> resolve_coordinator(const Host& host, const std::string& name,
                                           std::chrono::milliseconds limit) {
  std::vector<IpAddress> found;
  try {
    for (const std::string& text : look_up_name(host, name, limit)) {
      if (auto address = IpAddress::parse(text)) {
        found.push_back(std::move(*address));
      }
    }
  } catch (const CannotStart&) {
  }
  return found;
}

}  // namespace

// Resolves the coordinator's name in a thread.
struct Peers::Lookup {
  Lookup(const Host& real_host, std::string wanted, Seconds now)
      : host(real_host), name(std::move(wanted)), since(now) {
    host.cancelled = std::make_shared<std::atomic<bool>>(false);
    work.emplace([this] {
      found = resolve_coordinator(host, name, lookup_limit);
      is_over = true;
    });
  }
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;
  ~Lookup() { *host.cancelled = true; }

  Host host;
  std::string name;
  Seconds since;
  std::vector<IpAddress> found;
  std::atomic<bool> is_over = false;
  std::optional<BackgroundWork> work;  // must be the last member, because it uses the others
};

Peers::Peers(const Host& host, PeersSetup setup, PeersHandler& handler)
    : host_(host),
      setup_(std::move(setup)),
      number_(
          static_cast<std::size_t>(std::ranges::find(setup_.servers, setup_.own) - setup_.servers.begin())),
      is_coordinator_(setup_.is_coordinator()),
      handler_(handler) {
  setup_.address = strip_brackets(setup_.address);
}

Peers::~Peers() = default;

void Peers::note_refusal(const std::string& text) {
  if (refusal_.empty()) {
    refusal_ = text;
  }
}

void Peers::add_link(Descriptor socket, Seconds now) {
  if (is_coordinator_) {
    const auto find = [this](std::size_t number) { return find_token(number); };
    links_.push_back(std::make_unique<Link>(std::move(socket), find, now));
  } else {
    const std::string token = setup_.tokens.empty() ? "" : setup_.tokens.front();
    links_.push_back(std::make_unique<Link>(std::move(socket), number_, token, now));
  }
}

void Peers::drop(Link& link) {
  const auto place =
      std::find_if(links_.begin(), links_.end(), [&](const auto& each) { return each.get() == &link; });
  if (place == links_.end()) {
    return;
  }
  dropped_.push_back(std::move(*place));
  links_.erase(place);
  link.close();
  handler_.note_drop(link);
}

// ---- the coordinator's side

bool Peers::listen_at(const IpAddress& address) {
  const SocketAddress own = make_socket_address(address, setup_.port);
  const SocketAddress any = make_any_address(address.family(), setup_.port);
  for (const SocketAddress* place : {&own, &any}) {
    Descriptor socket = open_tcp_socket(address.family());
    const int on = 1;
    if (socket && ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        ::bind(socket.get(), place->get(), place->size) == 0 && ::listen(socket.get(), listen_backlog) == 0) {
      listener_ = std::move(socket);
      return true;
    }
    refusal_ = std::strerror(errno);
  }
  return false;
}

void Peers::listen() {
  const std::string before = refusal_;
  std::vector<IpAddress> addresses;
  if (auto address = IpAddress::parse(setup_.address)) {
    addresses.push_back(std::move(*address));
  } else {
    addresses = resolve_coordinator(host_, setup_.address, listen_lookup_limit);
  }
  if (addresses.empty()) {  // the members may still be able to resolve it
    addresses = {IpAddress::parse("::").value(), IpAddress::parse("0.0.0.0").value()};
  }
  for (const IpAddress& address : addresses) {
    if (listen_at(address)) {
      refusal_ = before;
      return;
    }
  }
}

void Peers::stop_listening() {
  listener_.reset();
  is_deaf_ = false;
}

// Accepts many connections at once, so that a member does not wait long behind strangers.
void Peers::accept(Seconds now) {
  for (std::size_t i = 0; i < max_strangers / 4; ++i) {
    Link* oldest = nullptr;
    std::size_t strangers = 0;
    for (const auto& link : links_) {
      if (!link->is_authenticated()) {
        oldest = oldest == nullptr ? link.get() : oldest;
        ++strangers;
      }
    }
    // If no descriptors are free, accept4() fails even if no connection is waiting.
    pollfd waiting{listener_.get(), POLLIN, 0};
    if (::poll(&waiting, 1, 0) <= 0) {
      return;
    }
    Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      const int error = errno;
      if (error != EMFILE && error != ENFILE) {
        return;
      }
      if (oldest != nullptr) {
        drop(*oldest);
        continue;
      }
      // Otherwise poll() would report the listener continuously.
      refusal_ = std::strerror(error);
      is_deaf_ = true;
      deaf_until_ = now + deaf_pause;
      return;
    }
    if (strangers >= max_strangers) {
      drop(*oldest);  // a member authenticates within a round trip
    }
    add_link(std::move(socket), now);
  }
}

// The first server has no token, because it is the coordinator itself.
std::string Peers::find_token(std::size_t number) const {
  const bool is_member = number > 0 && number < setup_.servers.size() && number <= setup_.tokens.size();
  return is_member ? setup_.tokens[number - 1] : "";
}

// Assigns the link to the member whose token it has proved. Drops the member's older links.
void Peers::assign(Link& link) {
  const std::string& server = setup_.servers[link.number()];
  std::vector<Link*> older;
  for (const auto& each : links_) {
    if (each.get() != &link && each->server() == server) {
      older.push_back(each.get());
    }
  }
  for (Link* each : older) {
    drop(*each);
  }
  link.set_server(server);
}

// ---- a member's side

void Peers::keep_connecting(Seconds now, Seconds pause) {
  if (!links_.empty()) {
    return;
  }
  if (connecting_) {
    if (now - connecting_since_ >= connect_limit) {
      finish_connecting(now);
    }
  } else if (lookup_ || now >= next_try_) {
    if (!lookup_) {
      next_try_ = now + pause;
    }
    if (find_addresses(now)) {
      begin_connecting(now);
    }
  }
}

// Returns false if there are no addresses yet.
bool Peers::find_addresses(Seconds now) {
  if (!addresses_.empty()) {
    return true;
  }
  if (auto address = IpAddress::parse(setup_.address)) {
    addresses_.push_back(std::move(*address));
    return true;
  }
  if (!lookup_) {
    lookup_ = std::make_unique<Lookup>(host_, setup_.address, now);
  }
  if (!lookup_->is_over && now - lookup_->since <= Seconds(lookup_limit) + lookup_pause) {
    return false;
  }
  lookup_->work->wait();  // if no thread could be started, the work runs here
  addresses_ = std::move(lookup_->found);
  lookup_.reset();
  if (addresses_.empty()) {
    note_refusal(std::string(unknown_name));
    next_try_ = std::max(next_try_, now + lookup_pause);
  }
  return !addresses_.empty();
}

void Peers::begin_connecting(Seconds now) {
  const IpAddress address = std::move(addresses_.front());
  addresses_.erase(addresses_.begin());
  const SocketAddress place = make_socket_address(address, setup_.port);
  connecting_ = open_tcp_socket(address.family());
  connecting_since_ = now;
  if (connecting_ && (::connect(connecting_.get(), place.get(), place.size) == 0 || errno == EINPROGRESS ||
                      errno == EINTR)) {
    return;
  }
  note_refusal(std::strerror(errno));
  connecting_.reset();
  if (!addresses_.empty()) {
    next_try_ = now;
  }
}

// Does nothing while the attempt may still succeed.
void Peers::finish_connecting(Seconds now) {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(connecting_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
    error = errno;
  }
  pollfd ready{connecting_.get(), POLLOUT, 0};
  if (error == 0 && ::poll(&ready, 1, 0) <= 0) {
    if (now - connecting_since_ < connect_limit) {
      return;
    }
    error = ETIMEDOUT;
  }
  Descriptor socket = std::move(connecting_);
  if (error == 0) {
    addresses_.clear();
    add_link(std::move(socket), now);
    return;
  }
  note_refusal(std::strerror(error));
  if (!addresses_.empty()) {
    next_try_ = now;
  }
}

// ---- the links

Link* Peers::find(const std::string& server) {
  for (const auto& link : links_) {
    if (link->is_open() && (!is_coordinator_ || (!server.empty() && link->server() == server))) {
      return link.get();
    }
  }
  return nullptr;
}

void Peers::drop_silent(Seconds now, Seconds proof, Seconds limit) {
  std::vector<Link*> silent;
  for (const auto& link : links_) {
    const Seconds silence = now - link->heard();
    if ((!link->is_authenticated() && silence > proof) || (!is_coordinator_ && silence > limit)) {
      silent.push_back(link.get());
    }
  }
  for (Link* link : silent) {
    drop(*link);
  }
}

void Peers::discount_pause(Seconds pause) {
  for (const auto& link : links_) {
    link->discount_pause(pause);
  }
}

void Peers::broadcast(const wire::LinkMessage& message) {
  for (const auto& link : links_) {
    if (!is_coordinator_ || link->is_authenticated()) {
      link->send(message);
    }
  }
}

void Peers::say_last(const wire::LinkMessage& message) {
  broadcast(message);
  const Seconds end = read_clock() + last_words_limit;
  std::array<char, 16384> unread;
  for (const auto& link : links_) {
    while (link->has_unsent() && read_clock() < end) {
      pollfd ready{link->fd(), POLLOUT, 0};
      ::poll(&ready, 1, 20);
      link->flush();
    }
    // Closing a socket with unread data would discard sent data that the peer has not acknowledged yet.
    for (int i = 0;
         i < 64 && link->is_open() && ::recv(link->fd(), unread.data(), unread.size(), MSG_DONTWAIT) > 0;
         ++i) {
    }
    link->close();
  }
}

void Peers::flush() {
  std::vector<Link*> closed;
  for (const auto& link : links_) {
    link->flush();
    if (!link->is_open()) {
      closed.push_back(link.get());
    }
  }
  for (Link* link : closed) {
    drop(*link);
  }
}

void Peers::prepare(std::vector<pollfd>& fds) const {
  if (listener_ && !is_deaf_) {
    fds.push_back({listener_.get(), POLLIN, 0});
  }
  if (connecting_) {
    fds.push_back({connecting_.get(), POLLOUT, 0});
  }
  for (const auto& link : links_) {
    if (link->is_open()) {
      fds.push_back({link->fd(), static_cast<short>(link->has_unsent() ? POLLIN | POLLOUT : POLLIN), 0});
    }
  }
}

void Peers::step(const std::vector<pollfd>& fds, Seconds now) {
  dropped_.clear();
  std::vector<int> ready;
  for (const pollfd& each : fds) {
    if (each.revents != 0) {
      ready.push_back(each.fd);
    }
  }
  std::sort(ready.begin(), ready.end());
  const auto is_ready = [&](int fd) { return std::binary_search(ready.begin(), ready.end(), fd); };
  const bool has_deaf_pause_ended = is_deaf_ && now >= deaf_until_;
  is_deaf_ = is_deaf_ && !has_deaf_pause_ended;
  const bool can_accept = listener_ && (has_deaf_pause_ended || is_ready(listener_.get()));
  std::vector<Link*> to_serve;  // serving one link may drop others, which dropped_ keeps
  for (const auto& link : links_) {
    if (!link->is_open() || is_ready(link->fd())) {
      to_serve.push_back(link.get());
    }
  }
  if (connecting_ && is_ready(connecting_.get())) {
    finish_connecting(now);
  }
  for (Link* link : to_serve) {
    serve(*link, now);
  }
  if (can_accept && listener_) {
    accept(now);
  }
}

void Peers::serve(Link& link, Seconds now) {
  const bool had_keys = link.has_keys();
  const std::vector<wire::LinkMessage> messages = link.receive(now);
  // Messages that precede an invalid one count, unless the handler itself closes the link.
  const bool was_open = link.is_open();
  if (was_open && !is_coordinator_ && !had_keys && link.has_keys()) {
    handler_.greet(link);
  }
  if (is_coordinator_ && link.server().empty() && !messages.empty()) {
    if (!std::holds_alternative<wire::Hello>(messages.front())) {
      drop(link);
      return;
    }
    assign(link);
  }
  for (const wire::LinkMessage& message : messages) {
    handler_.take(link, message);
    if (was_open && !link.is_open()) {
      break;
    }
  }
  link.flush();
  if (!link.is_open()) {
    drop(link);
  }
}

}  // namespace remote::agent
