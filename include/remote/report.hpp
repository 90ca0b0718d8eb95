#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <remote/error.hpp>
#include <remote/instant.hpp>
#include <remote/job.hpp>
#include <remote/launch.hpp>
#include <remote/network.hpp>

// The data of a report about a launch.

namespace remote {

// A series of numbers with one name that a rank has printed: "loss 0.31", "loss=0.31", or JSON lines.
struct Curve {
  std::string name;            // lowercase; letters, digits and _ . / -
  std::optional<int> rank;     // nullopt: a job without ranks
  int key = 0;                 // of the job
  std::string over;            // the unit of `at`: "step", "epoch" …; "": consecutive numbers
  std::vector<double> at;      // ascending
  std::vector<double> values;  // same size as `at`; all finite
  bool thinned = false;        // only every nth value is included
};

// The last lines of a rank's output. Untrusted text.
struct Tail {
  std::optional<int> rank;
  int key = 0;
  std::vector<std::string> out;
  std::vector<std::string> err;
};

// Facts about a server when a launch started, as reported by the server: untrusted text. Unknown facts are
// absent.
struct ServerSetup {
  std::string server;
  // By name: "os", "kernel", "driver", "GPUs", "cores", "python", "torch", "cuda", "hip", "interface" (on the
  // route to the first server), "container", "code" (the digest of the project state that was sent), "changed
  // there" (number of files changed on the server), "changed here" (number of files changed on this machine
  // since).
  std::vector<std::pair<std::string, std::string>> facts;
  // Variables with the same value in all of its processes, except those that identify a process. Values that
  // look secret are masked.
  Env env{};
  // How far its clock was ahead of this machine's clock; 0 if the difference is within the measurement error.
  std::chrono::duration<double> clock_ahead{0};
};

// A step of a launch, on one server or, if `server` is empty, on all.
struct LaunchStep {
  std::string name;  // "connect", "look", "container", "start"
  std::string server;
  ExactInstant from;
  ExactInstant to;
};

// Facts and times recorded when a launch started. Stored next to the record of its first job.
struct LaunchRecord {
  Launcher launcher = Launcher::ranks;
  std::vector<ServerSetup> servers;  // in launch order
  std::vector<LaunchStep> steps;     // by start time
};

struct Moment {
  enum class Kind {
    first_output,  // its first line of output was received here, while it was followed
    restarted,     // an agent of torchrun restarted its workers
    requeued,      // Slurm restarted it
    failed,        // a rank failed
    killed,        // it was stopped on request
    lost           // its outcome will never be known
  };
  Kind kind = Kind::failed;
  ExactInstant at{};
  bool exact = false;  // accurate to the millisecond; otherwise to the second
  int key = 0;         // of the job
  std::optional<int> rank;
  std::string server;
  std::string text;  // for the user; untrusted text
};

// Samples of a GPU over time, whenever a command took one. Values that its driver does not report are NaN.
struct GpuCurve {
  std::string server;
  int index = 0;                   // the vendor's numbering
  std::string name;                // untrusted text
  std::vector<Instant> at;         // ascending
  std::vector<double> use;         // percent
  std::vector<double> memory;      // bytes in use
  std::uint64_t memory_total = 0;  // bytes; 0: unknown
};

// The latest result of `check --bandwidth`.
struct MeasuredBandwidth {
  Instant at;
  Network network;  // includes `bandwidth`; of the servers only the names
};

struct ReportRequest {
  std::vector<Job> jobs;  // all of one launch, or a single job
  bool fetch = true;      // copy their output to this machine first; otherwise use the existing copies
  int tail_lines = 50;
  bool sample = false;  // also sample the GPUs of the servers where jobs are running, and store the samples
};

struct Report {
  std::vector<Job> jobs;               // by rank, in their current state
  std::optional<Verdict> verdict;      // for a launch that has ended
  std::optional<LaunchRecord> record;  // for a launch whose start was recorded
  std::vector<Moment> moments;         // by time
  std::vector<GpuCurve> gpus;          // of the launch's servers, during the launch; by server, then by index
  std::optional<MeasuredBandwidth> bandwidth;  // if all servers of the launch took part
  std::vector<Curve> curves;                   // by name, then by rank
  std::vector<Tail> tails;                     // by rank
  std::vector<Error> errors;                   // failed queries and copies
  Instant made_at;
};

}  // namespace remote
