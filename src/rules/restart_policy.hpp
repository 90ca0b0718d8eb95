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
// Only the coordinator decides about attempts; it is a member too. A member runs ranks only while it holds a
// lease. It asks again and again, and an answer is worth `timeout` from the moment it asked. The coordinator
// counts from the moment it answered, and begins the next attempt when each member has said that nothing of
// the last one lives, or when its lease and the longest kill have passed. So two attempts never live at once,
// whatever is delayed or lost. Until the coordinator has said that no other attempt comes, the ends of jobs
// are not final; after that the launch is like any other.

namespace remote::rules {

struct RestartSetup {
  int most = 0;   // restarts
  int least = 1;  // servers of an attempt
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
  std::set<int> final_codes;  // exit codes that allow no other attempt
  std::vector<int> ranks;     // of each server of the launch
  std::size_t spares = 0;     // the last servers of the launch
};

// The times of the protocol, which tests shorten, and its rules. The simulation turns off each rule to prove
// that it is needed.
struct RestartTimes {
  Seconds longest_kill{15};  // TERM, the grace, KILL, and a last look
  Seconds longest_pause{60};
  bool lease_counts_from_question = true;  // not from the answer, which may be late
  bool waits_for_silent_leases = true;     // before the next attempt begins
  bool revived_coordinator_waits = true;   // until all leases that its predecessor granted are over
};

// What this server's earlier supervisor left on record, if it died.
struct Revived {
  Seconds lease_until{0};
  Seconds attempt_began{0};
};

class RestartActs : public LaunchActs {
 public:
  // Begins the ranks of an attempt. Returns whether it could.
  virtual bool start(int attempt, const wire::Shape& shape) = 0;
  // This server's ranks may live until then.
  virtual void renew_lease(Seconds until) = 0;
  // The ends of jobs are final now. `ended`: jobs that this supervisor ended, for `over.reason`.
  virtual void release(const wire::AttemptsOver& over, const std::vector<std::string>& ended) = 0;
  // How a job of the current attempt failed, from its files.
  virtual wire::RankFailure describe_failure(const LaunchJob& job) = 0;
  // The complete checkpoints, newest first.
  virtual std::vector<std::string> checkpoints() = 0;
  // A free port for rank 0.
  virtual int choose_port() = 0;
  // `without`: members that take no part in the next attempt; `sick`: one of them because it is sick.
  virtual void record_attempt(int attempt, Seconds began, Seconds failed, Seconds next,
                              const wire::Cause& cause, const std::vector<std::string>& without,
                              bool sick) = 0;
  // The coordinator named a checkpoint that this server did not offer.
  virtual void refuse_checkpoint() = 0;
  virtual void mark_sick(const std::string& mark) = 0;
};

class RestartPolicy final : public LaunchPolicy {
 public:
  // `attempt`: on record on this server; 0 for a spare that had none. `first_question`: a number that no
  // earlier supervisor of this launch used. `revived`: an earlier one died.
  RestartPolicy(LaunchSetup setup, RestartSetup restarts, std::vector<LaunchJob> jobs, int attempt,
                std::uint64_t first_question, const std::optional<Revived>& revived, Seconds now,
                RestartActs& acts, RestartTimes times = {});

  void tick(Seconds now);
  // A kill of jobs_to_kill() is done; `clean`: nothing is left.
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
  // An end for good that came before the release.
  struct KeptEnd {
    std::size_t job;
    std::optional<wire::RankFailure> failure;
  };

  // This server's ranks.
  bool is_resting() const { return ended_ >= attempt_; }
  bool is_round_over(const LaunchJob& job) const { return job.round && job.round->attempt == attempt_; }
  void notice_ends(Seconds now);
  void begin(int attempt, const wire::Shape& shape, Seconds until);
  void ask(Seconds now);
  void take_grant(const wire::GrantLease& grant, Seconds now);
  void keep_lease(Seconds now);
  // The coordinator's.
  wire::LinkMessage answer(const std::string& server, const wire::AskLease& question, Seconds now);
  void fail(const wire::Cause& cause, Seconds now);
  void end_for_good(Seconds now);
  void decide(Seconds now);
  bool is_wanted(const wire::Cause& cause) const;
  bool may_give_way(Seconds now) const;
  void lead(Seconds now);
  void begin_next(Seconds now);
  // No other attempt comes.
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
      own_ends_;  // jobs that ended before this supervisor began to end those of this attempt
  Seconds until_;
  std::map<std::uint64_t, Seconds> asked_;
  std::uint64_t question_;
  Seconds next_question_;
  std::set<std::string> offered_;  // checkpoints that this server has named: it resumes from no other
  wire::Outcome outcome_;

  Members members_;
  int granted_;
  bool ending_ = false;
  std::optional<wire::Cause> failure_;
  Seconds quiet_until_;
  std::set<std::string> known_;                    // servers that asked: their leases are known
  std::map<std::string, Seconds> answered_;        // member -> the last answer
  std::map<std::string, wire::Outcome> outcomes_;  // of this attempt
  std::map<std::string, int> has_;                 // member -> the attempt that it reported
  std::map<std::string, std::vector<std::string>>
      acked_;  // member without ranks of this attempt -> its checkpoints
  Seconds begun_;
  Seconds failed_at_;
  bool decided_ = false;
  std::optional<Seconds> begin_at_;  // the next attempt
  int shorts_ = 0;
  // The last exit and the checkpoint of its attempt: twice the same ends the launch.
  std::optional<std::pair<wire::Cause, std::string>> place_;
  int port_ = 0;
  std::string resume_from_;
  std::optional<wire::Cause> why_;
};

}  // namespace remote::rules
