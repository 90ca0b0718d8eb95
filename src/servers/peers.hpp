#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <remote/cancel.hpp>

#include "config/config.hpp"
#include "servers/project_tree.hpp"
#include "servers/sync.hpp"
#include "ssh/agent.hpp"
#include "ssh/connection.hpp"

// `rsync --fan-out peers`: a large project leaves the laptop once, and the servers bring it to each other.
// What a server got so is only a head start: its files are compared with the laptop's digests, and then the
// ordinary sync runs from here, which finds little to do. So the result is that of the ordinary sync,
// whatever happens.

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

class Peers {
 public:
  explicit Peers(const config::Config& config) : config_(config), tree_(config) {}
  ~Peers();

  // One server's part. take() comes first, then the ordinary sync, then pass_on(); one that is not passed on
  // has failed.
  class Part {
   public:
    Part(Peers& peers, ssh::Connection& connection, const config::Server& server);
    ~Part();
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

    // Waits for a server that has the project, and brings it from there; comes back at once for the server
    // that gets it from the laptop first. Where it cannot be brought, `why` says so. Throws Error where the
    // own link breaks, and Interrupted.
    void take(const SyncOptions& options, const std::function<void(const std::string&)>& on_step,
              const Cancel& cancel);
    // The server has the project, but for the files that were `newer` there: others may take it from it.
    void pass_on(const std::vector<std::string>& newer);

    std::string from;         // the server it came from; empty: from the laptop
    std::string why;          // it did not come from another server
    SyncReport files;         // what came so
    bool unverified = false;  // it could not be compared there: the ordinary sync must look at contents

   private:
    void pull(const PeerSource& source, bool probe, const SyncOptions& options, const Cancel& cancel);
    void verify(const std::function<void(const std::string&)>& on_step, const Cancel& cancel);

    Peers& peers_;
    ssh::Connection& connection_;
    const config::Server& server_;
    PeerSource self_;
    bool under_way_ = false;
  };

 private:
  // The agent to forward for a login at this source; empty when there is none.
  std::filesystem::path agent_for(const PeerSource& source, const Cancel& cancel);

  const config::Config& config_;
  PeerPool pool_;
  ProjectTree tree_;
  std::mutex keys_mutex_;
  std::unique_ptr<ssh::KeyAgent> keys_;
  bool no_agent_ = false;
  std::set<std::filesystem::path> tried_;
  std::set<std::filesystem::path> held_;
};

}  // namespace remote::servers
