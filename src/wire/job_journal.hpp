#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "wire/jobs.hpp"

// The journal of a job (`journal.jsonl` in its folder), with one entry per line. Several processes append to
// it. rules/job_history.hpp derives the job's state from it.

namespace remote::wire {

// The start was requested or, for a job that waits for its lease, its ranks were started.
struct JobStarted {
  static constexpr std::string_view kind = "started";
  Moment at{};
  static constexpr auto fields() { return field_list(field("at", &JobStarted::at, moment_limit)); }
  friend bool operator==(const JobStarted&, const JobStarted&) = default;
};

// The command runs again: the next attempt of a launch, a retry of a sweep point, or a requeued Slurm job.
struct JobRestarted {
  static constexpr std::string_view kind = "restarted";
  Moment at{};
  static constexpr auto fields() { return field_list(field("at", &JobRestarted::at, moment_limit)); }
  friend bool operator==(const JobRestarted&, const JobRestarted&) = default;
};

// An attempt of a launch with restarts has ended, and another one may follow.
struct AttemptEnded {
  static constexpr std::string_view kind = "attempt_ended";
  int attempt = 1;
  JobEnd end;
  static constexpr auto fields() {
    return field_list(field("attempt", &AttemptEnded::attempt, in_range(0, 1 << 30)),
                      field("end", &AttemptEnded::end));
  }
  friend bool operator==(const AttemptEnded&, const AttemptEnded&) = default;
};

// Written by the first job on the server that decided that no other attempt starts, although restarts were
// left.
struct RestartRefused {
  static constexpr std::string_view kind = "restart_refused";
  NoRestart why{};
  static constexpr auto fields() { return field_list(field("why", &RestartRefused::why)); }
  friend bool operator==(const RestartRefused&, const RestartRefused&) = default;
};

// The kernel's out-of-memory killer was active while the job ran.
struct OutOfMemory {
  static constexpr std::string_view kind = "out_of_memory";
  Moment at{};
  static constexpr auto fields() { return field_list(field("at", &OutOfMemory::at, moment_limit)); }
  friend bool operator==(const OutOfMemory&, const OutOfMemory&) = default;
};

// When the command had failed, files could no longer be written to its folder, so its last output may be
// missing.
struct DiskRefused {
  static constexpr std::string_view kind = "disk_refused";
  Moment at{};
  FolderFlaw flaw = FolderFlaw::none;
  static constexpr auto fields() {
    return field_list(field("at", &DiskRefused::at, moment_limit), field("flaw", &DiskRefused::flaw));
  }
  friend bool operator==(const DiskRefused&, const DiskRefused&) = default;
};

// Written by the process that waited for the job.
struct JobEnded {
  static constexpr std::string_view kind = "ended";
  JobEnd end;
  static constexpr auto fields() { return field_list(field("end", &JobEnded::end)); }
  friend bool operator==(const JobEnded&, const JobEnded&) = default;
};

// Written by a process that found that the job had ended, because no other process could record its end.
struct JobFoundEnded {
  static constexpr std::string_view kind = "found_ended";
  JobEnd end;
  static constexpr auto fields() { return field_list(field("end", &JobFoundEnded::end)); }
  friend bool operator==(const JobFoundEnded&, const JobFoundEnded&) = default;
};

struct JobNeverStarts {
  static constexpr std::string_view kind = "never_starts";
  Moment at{};
  static constexpr auto fields() { return field_list(field("at", &JobNeverStarts::at, moment_limit)); }
  friend bool operator==(const JobNeverStarts&, const JobNeverStarts&) = default;
};

// A process on this machine.
struct RecordedProcess {
  int pid = 0;
  std::uint64_t start = 0;  // field 22 of /proc/PID/stat
  static constexpr auto fields() {
    return field_list(field("pid", &RecordedProcess::pid, in_range(0, 1 << 30)),
                      field("start", &RecordedProcess::start, in_range(0, 1LL << 62)));
  }
  friend bool operator==(const RecordedProcess&, const RecordedProcess&) = default;
};

// The request for a stop, recorded before the first signal.
struct StopRequested {
  static constexpr std::string_view kind = "stop_requested";
  StopRecord stop;
  RecordedProcess stopper;   // the process that stops the job
  bool records_end = false;  // the job's supervisor is dead, so the stopper records the end
  static constexpr auto fields() {
    using S = StopRequested;
    return field_list(field("stop", &S::stop), field("stopper", &S::stopper),
                      field("records_end", &S::records_end));
  }
  friend bool operator==(const StopRequested&, const StopRequested&) = default;
};

// A leftover of a stopped job: a process, a dead process that still holds GPU memory (`start` is 0), or
// something else, such as "container remote-0123…".
struct RecordedSurvivor {
  std::optional<RecordedProcess> process{};
  std::string name{};
  static constexpr auto fields() {
    return field_list(field("process", &RecordedSurvivor::process),
                      field("name", &RecordedSurvivor::name, a_line()));
  }
  friend bool operator==(const RecordedSurvivor&, const RecordedSurvivor&) = default;
};

struct StopFinished {
  static constexpr std::string_view kind = "stop_finished";
  Moment requested_at{};  // together with the stopper, this identifies its request
  RecordedProcess stopper;
  bool had_no_effect = false;  // the job had already ended
  std::vector<RecordedSurvivor> survivors{};
  static constexpr auto fields() {
    using S = StopFinished;
    return field_list(field("requested_at", &S::requested_at, moment_limit), field("stopper", &S::stopper),
                      field("had_no_effect", &S::had_no_effect),
                      field("survivors", &S::survivors, at_most(1000)));
  }
  friend bool operator==(const StopFinished&, const StopFinished&) = default;
};

using JobEntry =
    std::variant<JobStarted, JobRestarted, AttemptEnded, RestartRefused, OutOfMemory, DiskRefused, JobEnded,
                 JobFoundEnded, JobNeverStarts, StopRequested, StopFinished>;

}  // namespace remote::wire
