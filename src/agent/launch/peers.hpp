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

// Receives the events of the links. It must not destroy the Peers.
class PeersHandler {
 public:
  virtual ~PeersHandler() = default;
  // A member's link to the coordinator now has its keys.
  virtual void greet(Link& link) = 0;
  // On the coordinator, the link has its member's name, and its first message is Hello. If the handler closes
  // the link, its later messages are dropped.
  virtual void take(Link& link, const wire::LinkMessage& message) = 0;
  // The link is closed and no longer in Peers::links(). A later Peers::step() destroys it.
  virtual void note_drop(const Link& link) = 0;
};

struct PeersSetup {
  std::string own;                   // the name of this server
  std::vector<std::string> servers;  // the first is the coordinator
  wire::LinkTokens tokens;
  std::string address;  // the coordinator's name or IP address
  int port = 0;

  bool is_coordinator() const { return !servers.empty() && own == servers.front(); }
};

// The connections of one server to the others of its launch: the coordinator listens, and the members connect
// to it. A member's name is the one that its token proves, whatever it sends. Unauthenticated connections
// have a limited number of slots and cannot keep members out. Nothing here blocks, except listen() and
// say_last(), which can take seconds.
class Peers {
 public:
  static constexpr std::size_t max_strangers = 256;  // unauthenticated connections

  Peers(const Host& host, PeersSetup setup, PeersHandler& handler);
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  // On the coordinator: listens at the address or, if it does not belong to this server because it is
  // translated (NAT), at any address. Sets refusal() on failure. Resolves a name for at most five seconds.
  void listen();
  void stop_listening();
  bool is_listening() const { return static_cast<bool>(listener_); }
  // Whether the limit of open files prevents accepting connections.
  bool is_deaf() const { return is_deaf_; }
  // On a member: connects if it has no link and `pause` has passed since the last attempt began. Gives up an
  // attempt after two seconds, then tries the next address. A name is resolved in a thread.
  void keep_connecting(Seconds now, Seconds pause);
  // The system's error message about the missing connection; "" if unknown. A member keeps the first one
  // until set_refusal().
  const std::string& refusal() const { return refusal_; }
  void set_refusal(std::string text) { refusal_ = std::move(text); }

  // On the coordinator, the links of members and strangers; on a member, the link to the coordinator.
  // Includes closed links.
  std::list<std::unique_ptr<Link>>& links() { return links_; }
  // On the coordinator: the open, authenticated link to a member. On a member: the link to the coordinator.
  // nullptr if there is none.
  Link* find(const std::string& server);
  bool is_linked() const { return !links_.empty(); }
  // Drops silent links: unauthenticated ones after `proof` and, on a member, any link after `limit`.
  void drop_silent(Seconds now, Seconds proof, Seconds limit);
  void discount_pause(Seconds pause);

  // Sends to all authenticated members or, on a member, to the coordinator.
  void broadcast(const wire::LinkMessage& message);
  // Sends all queued messages and then this one, for at most two seconds, and closes all links.
  void say_last(const wire::LinkMessage& message);
  // Sends queued messages, and drops closed links.
  void flush();

  // Appends the descriptors to wait for. Call step() with the result of poll() before any other function
  // here.
  void prepare(std::vector<pollfd>& fds) const;
  // Handles the results of poll(). The listener comes last, so that no authenticated peer is dropped in favor
  // of a stranger.
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
  std::size_t number_;  // this server's index in the list
  bool is_coordinator_;
  PeersHandler& handler_;
  std::list<std::unique_ptr<Link>> links_;
  std::vector<std::unique_ptr<Link>> dropped_;  // callers may still refer to these
  std::string refusal_;
  Descriptor listener_;
  bool is_deaf_ = false;
  Seconds deaf_until_{0};
  // Only used on a member.
  std::vector<IpAddress> addresses_;  // addresses of the coordinator, still to be tried
  std::unique_ptr<Lookup> lookup_;
  Descriptor connecting_;
  Seconds connecting_since_{0};
  Seconds next_try_{0};
};

}  // namespace remote::agent
