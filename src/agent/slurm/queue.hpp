#pragma once

#include <chrono>
#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "agent/host/path.hpp"
#include "agent/slurm/tools.hpp"

// The user's jobs in Slurm's queue, as listed by squeue. Some sites replace squeue with a wrapper, so every
// word is checked.

namespace remote::agent {

enum class SlurmKind {
  queued,
  running,  // or COMPLETING, because its processes may still be alive
  ended,
};

SlurmKind classify_slurm_state(std::string_view state);

struct SlurmRow {
  std::string number;  // "12", or "12_3" of an array
  std::string state;   // "PENDING"
  std::string nodes;   // "n[1-2]"; "" if there are none yet
  std::string until;   // when it ended or has to end: "2024-05-01T12:00:00", local time
  std::string begin;   // when it started or is expected to start
  std::string reason;  // "Resources"; "" if there is none

  SlurmKind kind() const { return classify_slurm_state(state); }
};

// "12" or "12_3" from the file `slurm` in a job's folder; "" if it does not have one yet.
std::string read_slurm_number(const Path& folder);

// Not thread-safe.
class SlurmQueue {
 public:
  SlurmQueue(const Host& host, SlurmTools& tools) : host_(host), tools_(tools) {}

  // Queries Slurm unless the last answer is at most this old.
  void ask(std::chrono::milliseconds age);
  // Why the last ask() failed; "" if it did not.
  const std::string& trouble() const { return trouble_; }
  // Whether the last answer may be older than this file, by their times in seconds.
  bool may_be_older_than(const Path& file) const;
  // The job with this number or, without a number, the one that was submitted as "remote-ID". nullptr if
  // Slurm does not know it. Valid until the next ask().
  const SlurmRow* find(const std::string& id, const std::string& number) const;

 private:
  void parse(std::string_view text);

  const Host& host_;
  SlurmTools& tools_;
  std::optional<std::chrono::steady_clock::time_point> asked_at_;
  std::time_t asked_time_ = 0;
  std::string trouble_;
  std::map<std::string, SlurmRow> rows_;        // by number
  std::map<std::string, std::string> numbers_;  // numbers of the jobs named "remote-ID", by name
};

}  // namespace remote::agent
