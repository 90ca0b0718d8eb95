#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "random.hpp"
#include "rules/restart_policy.hpp"

// The servers of a launch with restarts, in one process on a virtual clock. Each has a policy and one job
// whose ranks are running, being stopped, or dead. Messages are delayed, lost or reordered, supervisors die
// and are restarted, and clocks drift.

namespace remote::simulation {

using rules::Seconds;

struct WorldOptions {
  int servers = 3;
  int spares = 0;
  int most = 20;  // restarts
  int least = 1;  // servers
  Seconds grace{1};
  rules::RestartSetup::Kinds kinds{.any = true};
  std::set<int> final_codes = {};
  rules::RestartTimes times{.longest_kill = Seconds(3), .longest_pause = Seconds(1)};
  bool kills_guards = false;                  // among the trouble
  std::optional<Seconds> longest_delay = {};  // of a message; nullopt: from the seed
};

// An attempt that was followed by another one.
struct RecordedAttempt {
  int attempt;
  Seconds began;
  Seconds failed;
  wire::Cause cause;
  std::vector<std::string> without;
  bool sick;
};

class SimulatedServer;

class RestartWorld {
 public:
  RestartWorld(std::uint64_t seed, WorldOptions options);
  ~RestartWorld();

  // Advances by half a second.
  void step();
  // Cuts, deaths and failures, each with its own probability.
  void make_trouble();
  void post(const std::string& from, const std::string& to, const wire::LinkMessage& message);

  SimulatedServer& server(std::size_t number) { return *servers_.at(number); }
  std::set<int> living_attempts() const;
  // Whether exactly these servers have ranks of this attempt.
  bool lives(int attempt, const std::set<std::string>& names) const;
  // From now on every message to and from this server is lost.
  void lose(const std::string& name);
  void drop_mail() { mail_.clear(); }
  void mend() { cut_.clear(); }

  const WorldOptions options;
  Random random;
  Seconds now{0};
  int restarts = 0;
  std::vector<RecordedAttempt> attempts;
  std::set<std::string> sick;
  std::optional<std::string> checkpoint;  // nullopt: a new one every ten seconds
  std::vector<std::string> names;

 private:
  struct Letter {
    Seconds when;
    std::string from;
    std::string to;
    wire::LinkMessage message;
  };

  std::vector<Letter> mail_;
  std::set<std::pair<std::string, std::string>> cut_;
  bool cut_loses_all_ = false;
  Seconds delay_{0};
  std::vector<std::unique_ptr<SimulatedServer>> servers_;
};

class SimulatedServer final : public rules::RestartActs {
 public:
  SimulatedServer(RestartWorld& world, std::string name);

  void hear(const std::string& from, const wire::LinkMessage& message);
  void pass_time();
  void work();
  // Kills and restarts the supervisor.
  void revive();
  // Its ranks fail.
  void fail(wire::Ending ending);
  void end_round(wire::Ending ending);
  // One of its ranks fails, and mpirun hangs.
  void fail_a_rank(wire::Ending ending) { failed_rank_ = ending; }
  // A user stops its job.
  void stop();
  // Its ranks and the guard that could start others are killed.
  void lose_guard();
  Seconds clock() const { return world_.now * drift_; }

  bool lives = true;
  bool is_stubborn = false;  // nothing stops its ranks
  int attempt = 1;
  bool released = false;
  std::optional<NoRestart> no_restart;
  std::optional<std::string> mark;  // of its failures; nullopt: random
  bool after_peer = false;
  std::vector<wire::Shape> starts;
  std::unique_ptr<rules::RestartPolicy> policy;
  std::set<std::string> refused;
  std::uint64_t last_question = 0;

  // Actions of the policy.
  void broadcast(const wire::LinkMessage& message) override;
  void record(const wire::LaunchEntry& entry) override { journal_.push_back(entry); }
  void tell(const std::string& server, const wire::LinkMessage& message) override;
  bool start(int number, const wire::Shape& shape) override;
  void renew_lease(Seconds until) override { lease_until_ = until; }
  void release(const wire::AttemptsOver& over, const std::vector<std::string>& ended) override;
  wire::RankFailure describe_failure(const rules::LaunchJob& job) override;
  std::vector<std::string> checkpoints() override;
  int choose_port() override { return 1000 + world_.restarts; }
  void record_attempt(int number, Seconds began, Seconds failed, Seconds next, const wire::Cause& cause,
                      const std::vector<std::string>& without, bool sick) override;
  void refuse_checkpoint() override { refused.insert(name_); }
  void mark_sick(const std::string& mark) override;

 private:
  void make();
  bool is_coordinator() const { return name_ == world_.names.front(); }

  RestartWorld& world_;
  bool has_guard_ = true;
  std::optional<wire::Ending> failed_rank_;
  std::string name_;
  double drift_;
  std::optional<Seconds> dies_at_;
  std::optional<rules::Round> round_;
  bool ended_ = false;
  std::vector<wire::LaunchEntry> journal_;
  std::optional<Seconds> revived_;
  Seconds began_{0};
  Seconds lease_until_{0};
  std::optional<Seconds> kill_done_at_;
  std::uint64_t question_ = 0;
};

}  // namespace remote::simulation
