#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <remote/error.hpp>
#include <remote/gpu.hpp>
#include <remote/job.hpp>
#include <remote/lease.hpp>

// How servers and their jobs are at a moment, again and again: Project::watch().

namespace remote {

// A project of the same user whose jobs run on a server, and which is not this one.
struct OtherProject {
  std::string folder;  // "~/name"; foreign text
  int jobs = 0;
};

// What a Linux server says of itself in /proc. Absent: it does not tell.
struct ServerLoad {
  int cpus = 1;                 // processors that are online
  double load = 0;              // of the last minute; /proc/loadavg
  std::optional<double> cpu{};  // percent of all processors that were busy since the last sample
  std::optional<std::uint64_t> memory_total{};      // bytes; MemTotal
  std::optional<std::uint64_t> memory_available{};  // bytes; MemAvailable: what programs could still get
  // Bytes of the file system that holds the project's folder (or its home), and those that this user may
  // fill.
  std::optional<std::uint64_t> disk_total{};
  std::optional<std::uint64_t> disk_free{};
  std::vector<OtherProject> others{};  // by folder
  std::size_t unrecorded = 0;          // jobs that run in this project's folder and have no record here
  std::vector<Lease> leases{};         // of all users, in the order of their arrival
};

struct JobSample {
  Job job;
  // The last line of the stream that was written to last, 400 bytes at most. Foreign bytes: show them through
  // something like visible_line().
  std::string last_line{};
};

struct ServerSample {
  std::string server;
  // It was not reached, or does not answer; everything else is what it said last, if it ever did.
  std::optional<Error> error{};
  std::optional<Instant> heard_at{};  // when it answered last
  ServerLoad load{};
  GpuFacts gpus{};                // in brief: no topology, no errors of the driver
  std::vector<JobSample> jobs{};  // of this project that have not ended, by key
  // The keys of other jobs of this project that hold GPU memory, by id: they have ended, or are on another
  // server of the same machine.
  std::map<std::string, int> other_keys{};
};

struct WatchRequest {
  std::vector<std::string> servers{};  // names or globs; none: all
  std::chrono::milliseconds interval{2000};
  bool once = false;  // one sample of each server, then the call ends
  // A sample of a server, by its index in the list that the call is about. On the calling thread.
  std::function<void(std::size_t, const ServerSample&)> on_sample{};
  // Descriptors to wait for, too. When one of them can be read, and whenever an interval is over, on_wake is
  // called on the calling thread; false ends the call, whatever the servers are doing.
  std::vector<int> inputs{};
  std::function<bool()> on_wake{};
};

}  // namespace remote
