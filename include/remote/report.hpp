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

// What a server was when a launch began, as it said itself: foreign text. What is not known is not there.
struct ServerSetup {
  std::string server;
  // By name: "os", "kernel", "driver", "GPUs", "cores", "python", "torch", "cuda", "hip", "interface" (that
  // leads to the first server), "container", "code" (the digest of the project's state that was sent),
  // "changed there" (how many files were changed on the server), "changed here" (how many files were changed
  // on this machine since).
  std::vector<std::pair<std::string, std::string>> facts;
  // Variables that all its processes got with the same value, but for those that say who a process is. What
  // looks secret is masked.
  Env env{};
  // That its clock was ahead of this machine's; 0 where they may agree.
  std::chrono::duration<double> clock_ahead{0};
};

// A step of a launch, on one server or (where that is empty) on all.
struct LaunchStep {
  std::string name;  // "connect", "look", "container", "start"
  std::string server;
  ExactInstant from;
  ExactInstant to;
};

// What was found out when a launch began, and when. It is kept beside the record of its first job.
struct LaunchRecord {
  Launcher launcher = Launcher::ranks;
  std::vector<ServerSetup> servers;  // in the order of the launch
  std::vector<LaunchStep> steps;     // by their beginning
};

// What happened to a job, and when.
struct Moment {
  enum class Kind {
    first_output,  // its first line came here, while it was followed
    restarted,     // an agent of torchrun began its workers anew
    requeued,      // Slurm began it anew
    failed,        // a rank ended badly
    killed,        // it was told to end, and ended
    lost           // nothing will be heard of it any more
  };
  Kind kind = Kind::failed;
  ExactInstant at{};
  bool exact = false;  // to the millisecond; else to the second
  int key = 0;         // of the job
  std::optional<int> rank;
  std::string server;
  std::string text;  // for people; foreign text
};

// A GPU over time, as it was seen when somebody looked. Values that its driver does not tell are not
// numbers (NaN).
struct GpuCurve {
  std::string server;
  int index = 0;                   // as the vendor's program counts
  std::string name;                // foreign text
  std::vector<Instant> at;         // ascending
  std::vector<double> use;         // percent
  std::vector<double> memory;      // bytes in use
  std::uint64_t memory_total = 0;  // bytes; 0: not known
};

// What `check --bandwidth` found last.
struct MeasuredBandwidth {
  Instant at;
  Network network;  // with `bandwidth`, and of the servers only their names
};

struct ReportRequest {
  std::vector<Job> jobs;  // of one launch, or one job
  bool fetch = true;      // bring their output first; else what is here
  int tail_lines = 50;
  bool sample = false;  // look at the GPUs of the servers where jobs run, too, and keep what is seen
};

struct Report {
  std::vector<Job> jobs;               // by rank, as they are now
  std::optional<Verdict> verdict;      // of a launch that has ended
  std::optional<LaunchRecord> record;  // of a launch whose beginning was recorded
  std::vector<Moment> moments;         // by time
  std::vector<GpuCurve> gpus;          // of the launch's servers, while it ran; by server, then by index
  std::optional<MeasuredBandwidth> bandwidth;  // where all servers of the launch took part
  std::vector<Curve> curves;                   // by name, then by rank
  std::vector<Tail> tails;                     // by rank
  std::vector<Error> errors;                   // what could not be asked or brought
  Instant made_at;
};

}  // namespace remote
