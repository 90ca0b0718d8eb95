#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rules/launch_policy.hpp"
#include "rules/members.hpp"

// The decisions of a supervisor in a launch with restarts (docs/resilience.md).
//
// Only the coordinator, which is also a member, decides about attempts. A member runs ranks only while it
// holds a lease. It asks for one repeatedly, and an answer is valid for `timeout` from the time of the
// question. The coordinator measures the time from its answer. It starts the next attempt when each member
// has reported that no process of the last one is alive, or when its lease and the longest kill are over. So
// two attempts never run at the same time, whatever is delayed or lost. Until the coordinator has reported
// that no other attempt follows, the ends of jobs are not final. After that, the launch is like any other.

namespace remote::rules {

struct RestartSetup {
  int most = 0;   // maximum number of restarts
  int least = 1;  // minimum number of servers in an attempt
  // Failures that allow another attempt.
  struct Kinds {
    bool any = false;
    bool exit = false;
    bool signal = false;
    bool out_of_memory = false;
    bool gone = false;
    bool lost = false;
    bool hang = false;
  } kinds;
  std::set<int> final_codes;  // exit codes that prevent another attempt
  std::vector<int> ranks;     // number of ranks on each server of the launch
  std::size_t spares = 0;     // number of spares, which are the last servers of the launch
};

// The times and rules of the protocol. Tests shorten the times, and the simulation disables each rule to
// prove that it is necessary.
struct RestartTimes {
  Seconds longest_kill{15};  // TERM, the grace, KILL, and a last check
  Seconds longest_pause{60};
  bool lease_counts_from_question = true;  // not from the answer, which may be late
  bool waits_for_silent_leases = true;     // before the next attempt begins
  bool revived_coordinator_waits = true;   // until all leases granted by its predecessor are over
};

// The state that an earlier supervisor of this server has recorded, if it died.
struct Revived {
  Seconds lease_until{0};
  Seconds attempt_began{0};
};

class RestartActs : public LaunchActs {
 public:
  // Starts the ranks of an attempt. Returns false on failure.
  virtual bool start(int attempt, const wire::Shape& shape) = 0;
  // Lets this server's ranks live until this time.
  virtual void renew_lease(Seconds until) = 0;
  // The ends of jobs are final now. `ended`: jobs that this supervisor stopped for `over.reason`.
  virtual void release(const wire::AttemptsOver& over, const std::vector<std::string>& ended) = 0;
  // How a job of the current attempt failed, according to its files.
  virtual wire::RankFailure describe_failure(const LaunchJob& job) = 0;
  // The complete checkpoints, newest first.
  virtual std::vector<std::string> checkpoints() = 0;
  // A free port for rank 0.
  virtual int choose_port() = 0;
  // `without`: members that do not take part in the next attempt; `sick`: one of them is left out because it
  // is sick.
  virtual void record_attempt(int attempt, Seconds began, Seconds failed, Seconds next,
                              const wire::Cause& cause, const std::vector<std::string>& without,
                              bool sick) = 0;
  // The coordinator named a checkpoint that this server did not offer.
  virtual void refuse_checkpoint() = 0;
  virtual void mark_sick(const std::string& mark) = 0;
};

class RestartPolicy final : public LaunchPolicy {
 public:
  // `attempt`: the one recorded on this server; 0 for a spare without one. `first_question`: a number that no
  // earlier supervisor of this launch has used. `revived`: set if an earlier supervisor died.
  RestartPolicy(LaunchSetup setup, RestartSetup restarts, std::vector<LaunchJob> jobs, int attempt,
                std::uint64_t first_question, const std::optional<Revived>& revived, Seconds now,
                RestartActs& acts, RestartTimes times = {});

  void tick(Seconds now);
  // A kill requested by jobs_to_kill() is done; `clean`: no process is left.
  void note_killed(bool clean, Seconds now) {
    cleaned_ = clean;
    cleaned_at_ = now;
  }
  bool is_released() const { return released_; }
  const Members& members() const { return members_; }
  int granted() const { return granted_; }
  bool is_ending() const { return ending_; }

  void restore(const wire::LaunchEntry& entry, Seconds now) override;
  void hear(const std::string& server, const wire::LinkMessage& message, Seconds now) override;
  std::vector<wire::LinkMessage> welcome(const std::string& server) override;
  void notice_silence(Seconds now) override;
  void note_end(std::size_t job, const std::optional<wire::RankFailure>& failure, Seconds now) override;
  void note_failed_rank(std::size_t job, const wire::RankFailure& failure, Seconds now) override;
  std::vector<std::string> jobs_to_kill(Seconds now) override;
  void end_hung(const wire::Hang& hang, bool restart, Seconds now) override;
  void end_lost(const std::string& server, Seconds now) override {
    finish(wire::ServerLoss{server}, NoRestart::unreached, now);
  }
  bool should_watch() const override;
  std::vector<std::string> present() const override;
  bool takes_orders(const std::string& server) const override;
  std::set<std::string> ended_there(Seconds now) const override;
  bool try_to_leave(Seconds now, bool listening) override;

 private:
  // A final end that came before the release.
  struct KeptEnd {
    std::size_t job;
    std::optional<wire::RankFailure> failure;
  };

  // This server's ranks.
  bool is_resting() const { return ended_ >= attempt_; }
  bool is_round_over(const LaunchJob& job) const { return job.round && job.round->attempt == attempt_; }
  wire::Outcome failed_for_good(int rank) const;
  void notice_ends(Seconds now);
  void begin(int attempt, const wire::Shape& shape, Seconds until);
  void ask(Seconds now);
  void take_grant(const wire::GrantLease& grant, Seconds now);
  void keep_lease(Seconds now);
  // Used on the coordinator.
  wire::LinkMessage answer(const std::string& server, const wire::AskLease& question, Seconds now);
  void fail(const wire::Cause& cause, Seconds now);
  void end_for_good(Seconds now);
  void decide(Seconds now);
  // Whether the server takes part in no further attempt.
  bool is_dropped(const std::string& server) const {
    return !members_.is_member(server) || gone_.contains(server);
  }
  bool is_wanted(const wire::Cause& cause) const;
  bool may_give_way(Seconds now) const;
  void lead(Seconds now);
  void begin_next(Seconds now);
  // No other attempt follows.
  void finish(const std::optional<wire::EndReason>& reason, std::optional<NoRestart> why, Seconds now);

  RestartSetup restarts_;
  RestartTimes times_;
  RestartActs& restart_acts_;
  bool released_ = false;
  std::vector<KeptEnd> kept_ends_;

  int attempt_;
  int ended_;  // the newest attempt without processes on this server
  bool killing_ = false;
  bool cleaned_ = false;
  Seconds cleaned_at_{0};
  std::set<std::string>
      own_ends_;  // jobs that ended before this supervisor started to stop those of this attempt
  Seconds until_;
  std::map<std::uint64_t, Seconds> asked_;
  std::uint64_t question_;
  Seconds next_question_;
  std::set<std::string>
      offered_;  // the checkpoints that this server has offered, which are the only ones it resumes from
  wire::Outcome outcome_;

  Members members_;
  int granted_;
  bool ending_ = false;
  std::optional<wire::Cause> failure_;
  Seconds quiet_until_;
  std::set<std::string> known_;                    // servers that have asked, so their leases are known
  std::map<std::string, Seconds> answered_;        // member -> time of the last answer
  std::map<std::string, wire::Outcome> outcomes_;  // of this attempt
  std::map<std::string, int> has_;                 // member -> the attempt that it reported
  std::map<std::string, std::vector<std::string>>
      acked_;                   // members without ranks of this attempt -> their checkpoints
  std::set<std::string> gone_;  // members whose processes and guards were all killed
  Seconds begun_;
  Seconds failed_at_;
  bool decided_ = false;
  std::optional<Seconds> begin_at_;  // when the next attempt starts
  int shorts_ = 0;
  // The last exit and the checkpoint of its attempt. If both repeat, the launch ends.
  std::optional<std::pair<wire::Cause, std::string>> place_;
  int port_ = 0;
  std::string resume_from_;
  std::optional<wire::Cause> why_;
};

}  // namespace remote::rules
