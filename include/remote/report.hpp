#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <remote/error.hpp>
#include <remote/job.hpp>
#include <remote/launch.hpp>

// What there is to tell about a launch, as data for a page.

namespace remote {

// Numbers of one name that a rank has printed: "loss 0.31", "loss=0.31", or JSON lines.
struct Curve {
  std::string name;            // in lower case, of letters, digits and _ . / -
  std::optional<int> rank;     // nullopt: of a job without one
  int key = 0;                 // of the job
  std::string over;            // what `at` counts: "step", "epoch" …; "": the values as they came
  std::vector<double> at;      // ascending
  std::vector<double> values;  // as many; all finite
  bool thinned = false;        // there were more: every so many-th is here
};

// The end of what a rank wrote. Foreign text.
struct Tail {
  std::optional<int> rank;
  int key = 0;
  std::vector<std::string> out;
  std::vector<std::string> err;
};

struct ReportRequest {
  std::vector<Job> jobs;  // of one launch, or one job
  bool fetch = true;      // bring their output first; else what is here
  int tail_lines = 50;
};

struct Report {
  std::vector<Job> jobs;           // by rank, as they are now
  std::optional<Verdict> verdict;  // of a launch that has ended
  std::vector<Curve> curves;       // by name, then by rank
  std::vector<Tail> tails;         // by rank
  std::vector<Error> errors;       // what could not be asked or brought
  std::int64_t made_at = 0;        // seconds since the epoch
};

}  // namespace remote
