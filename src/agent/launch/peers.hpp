#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include <poll.h>

#include "agent/facts/kernel_route.hpp"
#include "agent/host/host.hpp"
#include "agent/launch/link.hpp"
#include "wire/launch.hpp"

namespace remote::agent {

// What happens on the links. It must not destroy the Peers.
class PeersHandler {
 public:
  virtual ~PeersHandler() = default;
  // A member's link to the coordinator has its keys.
  virtual void greet(Link& link) = 0;
  // On the coordinator, the link has its member's name, and its first message is Hello. The handler may close
  // the link: later messages of it are then dropped.
  virtual void take(Link& link, const wire::LinkMessage& message) = 0;
  // The link is closed and not in Peers::links() any more. It is destroyed by a later Peers::step().
  virtual void note_drop(const Link& link) = 0;
};

struct PeersSetup {
  std::string own;                   // this server
  std::vector<std::string> servers;  // the first is the coordinator
  wire::LinkTokens tokens;
  std::string address;  // of the coordinator, a name or an IP address
  int port = 0;

  bool is_coordinator() const { return !servers.empty() && own == servers.front(); }
};

// The connections of one server to the others of its launch: the coordinator listens, and the members connect
// to it. A member has the name that its token proves, whatever it sends. Connections of strangers have a
// limited number of slots, and cannot keep members out. Nothing here blocks, except listen() and say_last(),
// for seconds.
class Peers {
 public:
  static constexpr std::size_t max_strangers = 256;  // connections that are not authenticated

  Peers(const Host& host, PeersSetup setup, PeersHandler& handler);
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  // The coordinator's: at the address, or if it is not this server's own (it is translated on the way) at any
  // address. Sets refusal() on failure. Resolves a name for at most five seconds.
  void listen();
  void stop_listening();
  bool is_listening() const { return static_cast<bool>(listener_); }
  // The limit of open files prevents accepting connections.
  bool is_deaf() const { return is_deaf_; }
  // A member's: connects if it has no link and `pause` has passed since the last try began. Gives up a try
  // after two seconds, and tries the next address. A name is resolved in a thread.
  void keep_connecting(Seconds now, Seconds pause);
  // The system's message about the missing connection; "" if unknown. A member keeps the first one until
  // set_refusal().
  const std::string& refusal() const { return refusal_; }
  void set_refusal(std::string text) { refusal_ = std::move(text); }

  // On the coordinator, the links of members and strangers; on a member, the link to the coordinator.
  // Includes closed ones.
  std::list<std::unique_ptr<Link>>& links() { return links_; }
  // The coordinator's: the open, authenticated link to a member. A member's: to the coordinator. nullptr:
  // none.
  Link* find(const std::string& server);
  bool is_linked() const { return !links_.empty(); }
  // Drops links that are silent: without authentication for longer than `proof`, and on a member for longer
  // than `limit`.
  void drop_silent(Seconds now, Seconds proof, Seconds limit);
  void discount_pause(Seconds pause);

  // To all authenticated members; to the coordinator.
  void broadcast(const wire::LinkMessage& message);
  // Sends all queued messages and this one, for at most two seconds, and closes all links.
  void say_last(const wire::LinkMessage& message);
  // Sends queued messages, and drops links that were closed.
  void flush();

  // Appends the descriptors to wait for. Call step() with the result of poll() before anything else here.
  void prepare(std::vector<pollfd>& fds) const;
  // Handles the results of poll(), the listener last, so that no authenticated peer gives way to a stranger.
  void step(const std::vector<pollfd>& fds, Seconds now);

 private:
  struct Lookup;

  std::string find_token(std::size_t number) const;
  void assign(Link& link);
  void drop(Link& link);
  void serve(Link& link, Seconds now);
  void add_link(Descriptor socket, Seconds now);
  bool listen_at(const IpAddress& address);
  void accept(Seconds now);
  bool find_addresses(Seconds now);
  void begin_connecting(Seconds now);
  void finish_connecting(Seconds now);
  void note_refusal(const std::string& text);

  const Host& host_;
  PeersSetup setup_;
  std::size_t number_;  // of this server in the list
  bool is_coordinator_;
  PeersHandler& handler_;
  std::list<std::unique_ptr<Link>> links_;
  std::vector<std::unique_ptr<Link>> dropped_;  // callers may still refer to them
  std::string refusal_;
  Descriptor listener_;
  bool is_deaf_ = false;
  Seconds deaf_until_{0};
  // A member's.
  std::vector<IpAddress> addresses_;  // of the coordinator, still to be tried
  std::unique_ptr<Lookup> lookup_;
  Descriptor connecting_;
  Seconds connecting_since_{0};
  Seconds next_try_{0};
};

}  // namespace remote::agent
