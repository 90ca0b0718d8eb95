#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ssh/connection.hpp"

namespace remote::servers {

// A server that has the project, as another one reaches it.
struct PeerSource {
  std::string server;            // its name in configs.yaml
  std::string host;              // internal_address, else hostname
  std::string path;              // the project's folder there, as rsync takes it
  ssh::LoginFacts login;         // user, port, host key
  std::set<std::string> unlike;  // files that are not as the laptop's: newer there
};

// Who is to get the project from whom. The first server gets it from the laptop; each that has it serves one
// other at a time, so that after every round twice as many have it. Any thread.
class PeerPool {
 public:
  enum class Turn { wait, from_here, from_peer };
  struct Next {
    Turn turn = Turn::wait;
    std::optional<PeerSource> source;  // from_peer; with wait: the server that gets it from the laptop now
  };

  // What a server that lacks the project does now. After from_here and from_peer, finish() must follow; after
  // from_peer release() of the source, before it.
  Next next(const PeerSource& asking);
  // Instead of waiting on: this one gets it from the laptop, too. finish() must follow.
  void begin_from_here();
  void release(const std::string& source);
  // The server has the project now and can pass it on; nullopt: it failed.
  void finish(std::optional<PeerSource> source);

 private:
  struct Entry {
    PeerSource source;
    bool busy = false;
  };
  std::mutex mutex_;
  std::vector<Entry> sources_;
  std::size_t under_way_ = 0;
  std::optional<PeerSource> first_;
};

}  // namespace remote::servers
