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
// (guard.hpp), as RestartPolicy decides. All times are of CLOCK_BOOTTIME.
class AttemptsOnServer {
 public:
  // `jobs` must outlive this.
  AttemptsOnServer(const Host& host, const JobsFolder& folder, const wire::LaunchSpec& spec,
                   std::vector<std::unique_ptr<WatchedJob>>& jobs);

  // The attempt on record; 0 for a spare that had none. Call it before start().
  int attempt() const;
  // What an earlier supervisor left, if one died.
  std::optional<rules::Revived> find_revived(rules::Seconds now) const;
  // Random, so that no answer to a question of an earlier supervisor counts.
  static std::uint64_t choose_first_question();

  // Writes the attempt's variables for the jobs, a line in their stderr, and orders the guards to start them.
  // `ranks`: receives the jobs' new ranks if this server was a spare. `mpi_hosts`: "HOST:RANKS,…" for mpirun.
  bool start(int attempt, const wire::Shape& shape, const std::string& mpi_hosts, std::vector<int>& ranks);
  void renew_lease(rules::Seconds until);
  // Lets the guards record how their jobs ended. `ended`: jobs whose stop record names `over.reason`. The
  // first job's journal says why no other attempt follows.
  void release(const wire::AttemptsOver& over, const std::vector<std::string>& ended);
  // The failure of a job in the current attempt, with its mark: the problem of the machine
  // (rules::sicknesses) or a digest of its last line. Without a mark, it follows from a peer's failure.
  wire::RankFailure describe_failure(const rules::LaunchJob& job) const;
  // Complete checkpoints, newest first, as paths relative to the project; at most wire::max_checkpoints, and
  // within the size of a message.
  std::vector<std::string> find_checkpoints() const;
  // Appends a line to `attempts` in the first job's folder.
  void record_attempt(int attempt, rules::Seconds began, rules::Seconds failed, rules::Seconds next,
                      const wire::Cause& cause, const std::vector<std::string>& without, bool sick);
  // The coordinator named a checkpoint that this server did not offer.
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
