#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/launch/watched_job.hpp"
#include "rules/restart_policy.hpp"
#include "wire/launch.hpp"

namespace remote::agent {

// The attempts of a launch with restarts on this server: the files of its jobs and the orders to their guards
// (guard.hpp), following the decisions of RestartPolicy. All times are CLOCK_BOOTTIME.
class AttemptsOnServer {
 public:
  // `jobs` must outlive this.
  AttemptsOnServer(const Host& host, const JobsFolder& folder, const wire::LaunchSpec& spec,
                   std::vector<std::unique_ptr<WatchedJob>>& jobs);

  // The recorded attempt; 0 for a spare without one. Call it before start().
  int attempt() const;
  // The state left by an earlier supervisor, if one died.
  std::optional<rules::Revived> find_revived(rules::Seconds now) const;
  // Returns a random number, so that answers to an earlier supervisor's questions do not match.
  static std::uint64_t choose_first_question();

  // Writes the attempt's variables for the jobs and a line to their stderr, and orders the guards to start
  // them. `ranks` receives the jobs' new ranks if this server was a spare. `mpi_hosts` is "HOST:RANKS,…" for
  // mpirun.
  bool start(int attempt, const wire::Shape& shape, const std::string& mpi_hosts, std::vector<int>& ranks);
  void renew_lease(rules::Seconds until);
  // Lets the guards record how their jobs ended. `ended` lists the jobs whose stop record names
  // `over.reason`. The first job's journal records why no other attempt follows.
  void release(const wire::AttemptsOver& over, const std::vector<std::string>& ended);
  // The failure of a job in the current attempt. Its mark is the problem of the machine (rules::sicknesses)
  // or a digest of its last line; without a mark, it is a consequence of a peer's failure.
  wire::RankFailure describe_failure(const rules::LaunchJob& job) const;
  // Complete checkpoints, newest first, as paths relative to the project. At most wire::max_checkpoints, and
  // limited by the size of a message.
  std::vector<std::string> find_checkpoints() const;
  // Appends a line to `attempts` in the first job's folder.
  void record_attempt(int attempt, rules::Seconds began, rules::Seconds failed, rules::Seconds next,
                      const wire::Cause& cause, const std::vector<std::string>& without, bool sick);
  // Call this if the coordinator named a checkpoint that this server did not offer.
  void refuse_checkpoint();
  void mark_sick(const std::string& mark);

 private:
  const WatchedJob& first() const { return *jobs_.front(); }

  const Host& host_;
  JobsFolder folder_;
  const wire::LaunchSpec& spec_;
  std::vector<std::unique_ptr<WatchedJob>>& jobs_;
  bool is_spare_;
};

}  // namespace remote::agent
