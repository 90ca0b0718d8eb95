#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <remote/report.hpp>

#include "jobs/store.hpp"

namespace remote::project {

// Events from the records of the jobs: failures, requested stops, losses.
std::vector<Moment> moments_of(const std::vector<Job>& jobs);

// The restart in a line of a job's stderr: the agent of torchrun and the batch script of Slurm write such
// lines, with the time of the server's clock (docs/protocol.md). nullopt: any other line. A job can fake such
// a line, but this only results in a wrong mark in the report.
std::optional<Moment> moment_in(std::string_view line);

// Records when the first output of a job was received, for jobs that are followed from their start (others
// are ignored). Not thread-safe. Write errors are ignored.
class FirstOutputs {
 public:
  // `jobs` must outlive it.
  FirstOutputs(const jobs::Store& store, const std::vector<Job>& jobs);
  // Writes the recorded times.
  ~FirstOutputs();
  FirstOutputs(const FirstOutputs&) = delete;
  FirstOutputs& operator=(const FirstOutputs&) = delete;

  // Output of the job with this index in `jobs` was received. Ignores other indices.
  void note(std::size_t index);

 private:
  const jobs::Store& store_;
  const std::vector<Job>& jobs_;
  struct First {
    bool fresh = true;                 // false: it may have had output before
    std::optional<ExactInstant> at{};  // nullopt: no output yet
  };
  std::vector<First> firsts_;  // by index
};

// The recorded times for these jobs.
std::vector<Moment> first_outputs(const jobs::Store& store, const std::vector<Job>& jobs);

}  // namespace remote::project
