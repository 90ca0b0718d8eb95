#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <remote/error.hpp>
#include <remote/events.hpp>

#include "config/config.hpp"

// Several servers may have one project folder between them: a home on NFS, a remote_path on a common disk,
// one machine under two names. What is done there is done once. The servers say so themselves: each tries to
// put a link with the call's token and its own name into the folder, and answers whose link stands there
// (agent/provision/prepared.cpp).

namespace remote::servers {

// What the first server did, for those that share its folder.
struct SharedWork {
  PrepareReport report;
  std::vector<std::string> removable;  // names that --delete was to remove
};

// Who works and who waits, among the servers of one call. Any thread.
class SharedFolders {
 public:
  SharedFolders();
  const std::string& token() const { return token_; }

  // One server's part, which lives as long as its work. Until done() it counts as failed.
  class Part {
   public:
    Part(SharedFolders& folders, std::string server);
    ~Part();
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

    // `first` is the server whose link stands in the folder. Whether this one is to wait for it; a server
    // that does not wait does the work itself.
    bool waits_for(const std::string& first);
    // What that server did; nullopt: it is still at it. A server that lost its link is replaced by one of
    // those that wait for it: then waits() is false from now on. Throws Error where it failed.
    std::optional<SharedWork> look();
    bool waits() const { return !first_.empty(); }
    const std::string& first() const { return first_; }

    void done(SharedWork work);
    // It cannot be done on any of them, or (`lost`) not by way of this server.
    void failed(bool lost);

   private:
    SharedFolders& folders_;
    std::string server_;
    std::string first_;
  };

 private:
  struct Entry {
    bool waits = false;
    bool waited_for = false;
    bool ended = false;
    bool lost = true;  // when it has ended without work: whether another may try
    std::optional<SharedWork> work = {};
    std::string successor = {};
  };

  const std::string token_;
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;  // those that have begun
};

// Which servers shared a folder when it was last seen, kept in .remote/sent/.shared: what --delete removed by
// way of one of them is gone for the others, too, also where a call does not name them.
class SharedRecord {
 public:
  explicit SharedRecord(const config::Config& config) : config_(config) {}
  // The others that share this server's folder.
  std::vector<std::string> others(const std::string& server) const;
  // `groups`: of the servers that were asked together, those with one folder. Throws Error where it cannot be
  // written.
  void update(const std::vector<std::string>& asked,
              const std::vector<std::vector<std::string>>& groups) const;

 private:
  std::vector<std::vector<std::string>> read() const;

  const config::Config& config_;
};

}  // namespace remote::servers
