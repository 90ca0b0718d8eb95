#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

#include <remote/cancel.hpp>

#include "base/files.hpp"

namespace remote::test {

// A TCP relay on 127.0.0.1 whose links can be cut, for faults that lie below SSH. Its members may be called
// from any thread. The destructor cuts what is left.
class CutProxy {
 public:
  // Relays to this port of 127.0.0.1.
  explicit CutProxy(int target_port);
  ~CutProxy();
  CutProxy(const CutProxy&) = delete;
  CutProxy& operator=(const CutProxy&) = delete;

  int port() const { return port_; }
  // Every time that so many bytes in all have come from the target, all links are cut: the rest of what came
  // last is dropped, and the two ends see a reset or an end of the stream, in turn. Rising; call it before
  // the first connection.
  void cut_at(std::vector<std::uint64_t> totals);
  // Cuts all links now.
  void cut();
  int cuts() const;         // how often links were cut
  int connections() const;  // how many were taken
  std::uint64_t from_target() const;

 private:
  // What was read from one end and is not yet with the other.
  struct Half {
    std::string waiting;
    bool ended = false;   // nothing more comes
    bool closed = false;  // and the other end was told
  };
  struct Link {
    UniqueFd client;
    UniqueFd target;
    Half to_target;
    Half to_client;
    bool dead = false;
  };

  void relay_loop();
  void take_link();
  void read_from(Link& link, bool from_target);
  static void write_to(Link& link, bool to_client);
  void cut_all();

  const int target_port_;
  int port_ = 0;
  UniqueFd listener_;
  Cancel stop_;
  UniqueFd poke_read_;
  UniqueFd poke_write_;
  mutable std::mutex mutex_;
  std::deque<std::uint64_t> cut_at_;
  bool cut_now_ = false;
  int cuts_ = 0;
  int connections_ = 0;
  std::uint64_t from_target_ = 0;
  std::list<Link> links_;  // the relay thread's own
  std::thread relaying_;
};

}  // namespace remote::test
