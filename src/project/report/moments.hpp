#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <remote/report.hpp>

#include "jobs/store.hpp"

namespace remote::project {

// What happened to the jobs, and when, as their records say it: failures, ends that somebody asked for,
// losses.
std::vector<Moment> moments_of(const std::vector<Job>& jobs);

// What a line of a job's stderr says about a beginning anew: the agent of torchrun and the batch script of
// Slurm write such lines, with the time of the server's clock (docs/protocol.md). nullopt: it is another
// line. A job may write the same; then its mark is wrong, and no more.
std::optional<Moment> moment_in(std::string_view line);

// Notes when the first output of jobs came here, for those that are followed from their start (others are
// passed by). One thread at a time. What cannot be written is not kept.
class FirstOutputs {
 public:
  // The jobs outlive this.
  FirstOutputs(const jobs::Store& store, const std::vector<Job>& jobs);
  // Writes what it knows.
  ~FirstOutputs();
  FirstOutputs(const FirstOutputs&) = delete;
  FirstOutputs& operator=(const FirstOutputs&) = delete;

  // Some came of this job, by index; of one that was not given nothing is noted.
  void note(std::size_t index);

 private:
  const jobs::Store& store_;
  const std::vector<Job>& jobs_;
  struct First {
    bool fresh = true;                 // else it may have come before this
    std::optional<ExactInstant> at{};  // nullopt: none yet
  };
  std::vector<First> firsts_;  // by index
};

// What it has written about these jobs.
std::vector<Moment> first_outputs(const jobs::Store& store, const std::vector<Job>& jobs);

}  // namespace remote::project
