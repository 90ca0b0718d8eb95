#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "wire/launch_journal.hpp"
#include "wire/link.hpp"

// The decisions of a launch's supervisor on one server, based on the states of its jobs and the reports of
// the other servers. It has no side effects, and the time is an argument.

namespace remote::rules {

// Time since boot, including suspend (CLOCK_BOOTTIME), and durations of it.
using Seconds = std::chrono::duration<double>;

struct LaunchSetup {
  std::string own;                   // this server
  std::vector<std::string> servers;  // of the launch; the first is the coordinator
  Seconds grace{0};                  // between the failure of a rank and stopping the others
  Seconds timeout{0};                // a server that is silent for longer is lost
  int needed = 0;           // the number of servers that an elastic launch needs; 0: all, and none may fail
  bool ends_alone = false;  // no job is stopped because of another one
};

// How a job's last recorded attempt ended.
struct Round {
  int attempt = 0;
  wire::Ending ending;
};

struct LaunchJob {
  std::string id = {};
  int rank = 0;
  bool ended = false;
  bool failed = false;
  std::optional<Seconds> stopped_for = {};  // if a user stopped it: the time from the stop until it ended
  std::optional<Round> round = {};          // only in a launch with restarts
};

// The actions that a policy requests.
class LaunchActs {
 public:
  virtual ~LaunchActs() = default;
  // Sends to all other servers with a link to this one.
  virtual void broadcast(const wire::LinkMessage& message) = 0;
  // Sends to one server, if it has a link to this one.
  virtual void tell(const std::string& server, const wire::LinkMessage& message) = 0;
  // Appends to the launch's journal.
  virtual void record(const wire::LaunchEntry& entry) = 0;
};

// A stop by a user, with the times of the stop and of its effect.
struct UserStop {
  int rank = 0;
  std::string server;
  Seconds began{0};
  Seconds ended{0};
};

// A failure, and when this server was notified of it.
struct HeardFailure {
  wire::RankFailure failure;
  Seconds heard{0};
};

// How a launch ended, for the notification.
enum class LaunchEnd { succeeded, failed, killed, lost, hung, unknown };
struct LaunchVerdict {
  LaunchEnd end = LaunchEnd::unknown;
  // For `failed`: the rank of the first failure. For `killed`: the rank that a user stopped; nullopt if all
  // were stopped.
  std::optional<int> rank;
  std::string server;  // the server of that rank, or the lost server
  std::optional<wire::Ending> ending;
  int seconds = 0;                   // for `hung`
  std::vector<std::string> unheard;  // for `unknown`: servers that never reported
  bool is_cut_off = false;           // for `lost`: this server lost all others
  friend bool operator==(const LaunchVerdict&, const LaunchVerdict&) = default;
};

// The recorded end of a job on this server, for LaunchPolicy::verdict().
struct JobResult {
  bool succeeded = false;
  std::optional<wire::EndReason> ended_because;  // set if the launch's supervisor stopped it
};

class LaunchPolicy {
 public:
  LaunchPolicy(LaunchSetup setup, std::vector<LaunchJob> jobs, Seconds now, LaunchActs& acts);
  virtual ~LaunchPolicy() = default;
  LaunchPolicy(const LaunchPolicy&) = delete;
  LaunchPolicy& operator=(const LaunchPolicy&) = delete;

  bool is_coordinator() const { return setup_.own == coordinator(); }
  const std::string& coordinator() const { return setup_.servers.front(); }
  const std::vector<std::string>& others() const { return others_; }
  // The time within which servers have to connect at first.
  Seconds time_to_come() const { return time_to_come_; }
  const std::vector<LaunchJob>& jobs() const { return jobs_; }
  LaunchJob& job(std::size_t index) { return jobs_.at(index); }
  bool jobs_have_ended() const;

  // Takes over from a supervisor that died, by replaying one entry of its journal. The silence of the servers
  // in it is measured from now, and decisions remain valid.
  virtual void restore(const wire::LaunchEntry& entry, Seconds now);
  // A member's messages that the coordinator must receive. They are sent again over each new link.
  const std::vector<wire::LinkMessage>& reports() const { return reports_; }
  // The time between two beats.
  Seconds beat() const { return beat_; }
  // Whether another server considers this one lost if it is silent.
  bool is_watched() const;

  // Handles a message from an authenticated peer, whose name is `server`.
  virtual void hear(const std::string& server, const wire::LinkMessage& message, Seconds now);
  // The coordinator's reply to a member's Hello.
  virtual std::vector<wire::LinkMessage> welcome(const std::string& server);
  // Detects servers that have been silent for too long.
  virtual void notice_silence(Seconds now);
  // Call this if this process was paused for `pause`, so that the pause does not count as silence of any
  // server.
  void discount_pause(Seconds pause);

  // A job of this server has ended, with its failure if it failed.
  virtual void note_end(std::size_t job, const std::optional<wire::RankFailure>& failure, Seconds now);
  // A rank has failed while its job, which is mpirun or one of its daemons, is still running. mpirun stops
  // the other ranks; if the job is still running after the grace and launcher_time, this ends the launch.
  virtual void note_failed_rank(std::size_t job, const wire::RankFailure& failure, Seconds now);
  // The ids of the jobs to stop now: running ones, and failed ones that may still have processes.
  virtual std::vector<std::string> jobs_to_kill(Seconds now);
  // The launch hangs, and has to be stopped or, if `restart`, started again.
  virtual void end_hung(const wire::Hang& hang, bool restart, Seconds now);
  // A server that this launch requires never connected.
  virtual void end_lost(const std::string& server, Seconds now) { end(wire::ServerLoss{server}, now); }
  // Whether hang detection applies, because nothing is ending the launch.
  virtual bool should_watch() const { return !reason_; }
  // The servers that take part and have not left.
  virtual std::vector<std::string> present() const;

  // Whether an order of mpirun may be sent to a server now.
  virtual bool takes_orders(const std::string& /*server*/) const { return true; }
  // On the coordinator: servers that mpirun does not have to wait for.
  virtual std::set<std::string> ended_there(Seconds now) const;
  // On the coordinator: members that did not connect in time.
  std::vector<std::string> silent(Seconds now) const;

  // Whether the supervisor can exit. A member first says bye and waits for the answer. Otherwise, a
  // coordinator that missed it, because it was just being replaced, would consider the member lost.
  virtual bool try_to_leave(Seconds now, bool listening);

  // Why this launch is being stopped; nullopt if it is not.
  const std::optional<wire::EndReason>& reason() const { return reason_; }
  // Why the elastic launch continues without this server; nullopt if it does not.
  const std::optional<wire::EndReason>& left_because() const { return own_left_; }
  const std::map<std::string, Seconds>& last_heard() const { return last_heard_; }

  // The failure that caused the others (rules::find_first_failure); nullptr if there are no failures.
  const HeardFailure* first_failure() const;
  // The first stop by a user, if `failure` is null or a consequence of it.
  const UserStop* first_stop(const HeardFailure* failure) const;
  // How the launch ended. A restarted coordinator only knows about the others what is in `results`.
  LaunchVerdict verdict(const std::vector<JobResult>& results) const;

 protected:
  void end(const wire::EndReason& reason, Seconds now);
  // Whether mpirun has had enough time to stop the ranks, measured from the first call.
  bool has_launcher_failed(Seconds now);
  bool is_late(Seconds now) const { return now - start_ > time_to_come_; }
  void mark_gone(const std::string& server, wire::GoneHow how);
  // Records that a server has sent a message.
  void mark_heard(const std::string& server, Seconds now);
  bool is_gone(const std::string& server) const;

  LaunchSetup setup_;
  std::vector<std::string> others_;
  std::vector<LaunchJob> jobs_;
  LaunchActs& acts_;
  Seconds start_;
  Seconds beat_;
  Seconds end_at_{0};
  int kills_ = 0;
  std::optional<Seconds> rank_failed_at_;  // in this attempt, of a job that is still running
  std::map<std::string, Seconds> last_heard_;
  std::optional<wire::EndReason> reason_;

 private:
  void leave_out(const std::string& server, const wire::EndReason& reason, Seconds now);
  void report(const wire::LinkMessage& message);

  Seconds time_to_come_;
  std::map<std::string, wire::GoneHow> gone_;  // servers that have said bye, were lost or have left
  Seconds next_silence_ = Seconds::max();      // until then, no server has been silent for too long
  std::vector<HeardFailure> failures_;         // in the order of arrival
  std::vector<UserStop> stops_;
  std::vector<std::string>
      lost_;  // servers that were silent for too long, in that order, whether or not they reconnected
  bool has_said_bye_ = false;
  bool is_bye_noted_ = false;
  bool lost_at_end_ = false;  // when that happened, the jobs here had ended, and all other servers had left
  std::vector<wire::LinkMessage> reports_;
  std::set<std::string> failed_there_;  // on the coordinator: servers where a job failed
  std::set<std::string> left_;  // on the coordinator: servers that an elastic launch continues without
  std::optional<wire::EndReason> own_left_;
};

// The time for mpirun to stop the ranks after the failure of one, in addition to the grace.
constexpr Seconds launcher_time{30};

// The maximum number of times that a launch's jobs are killed; processes that are still alive then are only
// reported.
constexpr int kill_rounds = 3;

}  // namespace remote::rules
