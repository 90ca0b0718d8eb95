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

// A TCP relay on 127.0.0.1 whose links can be cut, to test faults below SSH. Members may be called from any
// thread. The destructor cuts the remaining links.
class CutProxy {
 public:
  // Relays to this port on 127.0.0.1.
  explicit CutProxy(int target_port);
  ~CutProxy();
  CutProxy(const CutProxy&) = delete;
  CutProxy& operator=(const CutProxy&) = delete;

  int port() const { return port_; }
  // Cuts all links each time this many bytes in total have come from the target. Drops the rest of the last
  // read; the two ends see a reset or end of file, alternately. Totals must be ascending; call it before the
  // first connection.
  void cut_at(std::vector<std::uint64_t> totals);
  // Cuts all links now.
  void cut();
  int cuts() const;         // how many times links were cut
  int connections() const;  // how many connections were accepted
  std::uint64_t from_target() const;

 private:
  // Data read from one end and not yet written to the other.
  struct Half {
    std::string waiting;
    bool ended = false;   // end of file was read
    bool closed = false;  // and was passed on
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
  std::list<Link> links_;  // used only by the relay thread
  std::thread relaying_;
};

}  // namespace remote::test
