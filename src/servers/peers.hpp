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

// Implements `rsync --fan-out peers`: a large project leaves the laptop once, and the servers send it to each
// other. This is only a head start: the files on a server are compared with the laptop's digests, and then
// the usual sync runs from here and finds little to do. So the result is always the same as that of the usual
// sync.

namespace remote::servers {

// A server that has the project, with the data that another one needs to reach it.
struct PeerSource {
  std::string server;            // its name in configs.yaml
  std::string host;              // internal_address, or else hostname
  std::string path;              // the project's folder there, formatted for rsync
  ssh::LoginFacts login;         // user, port, host key
  std::set<std::string> unlike;  // files that differ from the laptop's, because they are newer there
};

// Decides which server gets the project from which other. The first server gets it from the laptop. Each
// server that has it serves one other at a time, so the number of servers that have it doubles in every
// round. Thread-safe.
class PeerPool {
 public:
  enum class Turn { wait, from_here, from_peer };
  struct Next {
    Turn turn = Turn::wait;
    std::optional<PeerSource>
        source;  // for from_peer; for wait: the server that is receiving it from the laptop
  };

  // What a server without the project should do now. After from_here and from_peer, call finish(); after
  // from_peer, first call release() for the source.
  Next next(const PeerSource& asking);
  // Instead of waiting longer, this server gets it from the laptop as well. Call finish() afterwards.
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

  // One server's part. Call take(), then run the usual sync, then call pass_on(). If pass_on() is not called,
  // the server has failed.
  class Part {
   public:
    Part(Peers& peers, ssh::Connection& connection, const config::Server& server);
    ~Part();
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

    // Waits for a server that has the project, and copies it from there. Returns immediately for the server
    // that gets it from the laptop first. If copying fails, sets `why`. Throws Error if this server's own
    // connection breaks, and Interrupted.
    void take(const SyncOptions& options, const std::function<void(const std::string&)>& on_step,
              const Cancel& cancel);
    // Call this when the server has the project, except for the files that were `newer` there. Other servers
    // may now copy it from this one.
    void pass_on(const std::vector<std::string>& newer);

    std::string from;         // the server that it was copied from; empty: the laptop
    std::string why;          // why it was not copied from another server
    SyncReport files;         // the files that were copied this way
    bool unverified = false;  // they could not be compared there, so the usual sync must compare contents

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
  // The agent to forward for a login to this source; empty if there is none.
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
