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

// Several servers may share one project folder: a home directory on NFS, a remote_path on a common disk, or
// one machine with two names. The work in such a folder is done only once. The servers detect this
// themselves: each tries to create a link in the folder, with the call's token and its own name, and reports
// whose link is there (agent/provision/prepared.cpp).

namespace remote::servers {

// The work of the first server, for those that share its folder.
struct SharedWork {
  PrepareReport report;
  std::vector<std::string> removable;  // names to be removed by --delete
};

// Decides which of a call's servers work and which wait. Thread-safe.
class SharedFolders {
 public:
  SharedFolders();
  const std::string& token() const { return token_; }

  // One server's part, which exists during its work. Until done(), it counts as failed.
  class Part {
   public:
    Part(SharedFolders& folders, std::string server);
    ~Part();
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

    // `first` is the server whose link is in the folder. Returns whether this server should wait for it; a
    // server that does not wait does the work itself.
    bool waits_for(const std::string& first);
    // The other server's work; nullopt: not done yet. If that server loses its connection, one of the waiting
    // servers replaces it; for that one, waits() becomes false. Throws Error if the work failed.
    std::optional<SharedWork> look();
    bool waits() const { return !first_.empty(); }
    const std::string& first() const { return first_; }

    void done(SharedWork work);
    // The work cannot be done on any of the servers or, if `lost`, not through this one.
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
    bool lost = true;  // if it ended without doing the work: whether another server may try
    std::optional<SharedWork> work = {};
    std::string successor = {};
  };

  const std::string token_;
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;  // of the servers that have started
};

// Records in .remote/sent/.shared which servers shared a folder when last seen. If --delete removes a file
// through one of them, it is gone for the others as well, even if a call does not name them.
class SharedRecord {
 public:
  explicit SharedRecord(const config::Config& config) : config_(config) {}
  // The other servers that share this server's folder.
  std::vector<std::string> others(const std::string& server) const;
  // `asked` are the servers that were asked together, `groups` those of them that share a folder. Throws
  // Error if it cannot be written.
  void update(const std::vector<std::string>& asked,
              const std::vector<std::vector<std::string>>& groups) const;

 private:
  std::vector<std::vector<std::string>> read() const;

  const config::Config& config_;
};

}  // namespace remote::servers
