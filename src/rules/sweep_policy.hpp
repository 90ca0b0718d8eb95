#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rules/launch_policy.hpp"
#include "wire/sweep.hpp"

// Decides which server of a sweep runs which point, and when (docs/sweep.md).
//
// Only the first server's supervisor, the giver, distributes points. Each is given once, and to another
// server only after the first one has reported that it could not be started there. A point is on the giver's
// disk before a server receives it, and on that server's disk before it starts. So a supervisor that dies
// forgets nothing, and no point runs twice.

namespace remote::rules {

// The entries that a giver or taker writes to disk before it acts. A write returns false if the entry is not
// on disk.
class SweepJournal {
 public:
  virtual ~SweepJournal() = default;
  virtual bool write(const wire::SweepEntry& entry) = 0;
};

class SweepGiver {
 public:
  // `send(server, message)`
  using Send = std::function<void(const std::string&, const wire::SweepMessage&)>;

  SweepGiver(const std::vector<std::string>& points, SweepJournal& journal)
      : left_(points.begin(), points.end()), journal_(journal) {}
  // Replays an entry of an earlier giver.
  void restore(const wire::SweepEntry& entry);
  void hear(const std::string& server, const wire::SweepMessage& message, const Send& send);
  // The link to a server broke, so its report about its points will start again.
  void forget(const std::string& server) { known_.erase(server); }
  // Whether all points have ended, except those on silent servers.
  bool is_over(const std::set<std::string>& silent) const;
  std::size_t left() const { return left_.size(); }

 private:
  std::optional<std::string> give_next(const std::string& server);

  std::deque<std::string> left_;
  std::vector<std::pair<std::string, std::string>>
      given_;  // (point, server), in the order in which they were given
  std::set<std::string> ended_;
  std::map<std::string, std::set<std::string>> known_;  // server that is still reporting -> its points
  SweepJournal& journal_;
};

enum class PointStart {
  started,
  exists,  // a job with its id already exists
  failed,  // it will never run here
};

class SweepTakerActs {
 public:
  virtual ~SweepTakerActs() = default;
  // Leases the resources for a point; nullopt if they are not available. The number identifies the lease.
  virtual std::optional<int> take_lease() = 0;
  virtual void give_back(int lease) = 0;
  virtual PointStart start(const std::string& point, int lease) = 0;
  // Sends to the giver, if there is a link to it.
  virtual void tell(const wire::SweepMessage& message) = 0;
};

// The part of one server.
class SweepTaker {
 public:
  // `begun`: points that started here before; `running`: those of them that are still running, with their
  // leases.
  SweepTaker(std::set<std::string> begun, std::map<std::string, int> running, SweepJournal& journal,
             SweepTakerActs& acts);

  // The link to the giver is open, so this reports all points known here.
  void link();
  void unlink();
  void hear(const wire::SweepMessage& message, Seconds now);
  void tick(Seconds now);
  void note_end(const std::string& point);
  // A point whose start took a long time was not started after all.
  void note_failed(const std::string& point, Seconds now);
  bool is_idle() const { return running_.empty() && owed_.empty(); }
  bool is_over() const { return over_; }
  // The number of consecutive points that could not be started.
  int troubles() const { return troubles_; }

 private:
  void begin(const std::string& point, Seconds now);
  void forget(const std::string& point, Seconds now);
  void refuse(const std::string& point, Seconds now);
  void give_back_lease();

  std::set<std::string> begun_;
  std::map<std::string, int> running_;
  std::set<std::string> ended_;
  std::deque<std::string> owed_;  // points that were given but have not started
  std::optional<int> lease_;
  bool linked_ = false;
  bool asked_ = false;
  Seconds ask_at_{0};
  int troubles_ = 0;
  bool over_ = false;
  SweepJournal& journal_;
  SweepTakerActs& acts_;
};

}  // namespace remote::rules
