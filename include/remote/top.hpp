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

// Repeated samples of servers and their jobs: Project::watch().

namespace remote {

// Another project of the same user with running jobs on a server.
struct OtherProject {
  std::string folder;  // "~/name"; untrusted text
  int jobs = 0;
};

// Load figures of a Linux server, from /proc. Absent: not reported.
struct ServerLoad {
  int cpus = 1;                 // processors that are online
  double load = 0;              // of the last minute; /proc/loadavg
  std::optional<double> cpu{};  // percent of all processors that were busy since the last sample
  std::optional<std::uint64_t> memory_total{};      // bytes; MemTotal
  std::optional<std::uint64_t> memory_available{};  // bytes; MemAvailable: what programs could still allocate
  // Bytes of the file system with the project's folder (or its home), and those available to this user.
  std::optional<std::uint64_t> disk_total{};
  std::optional<std::uint64_t> disk_free{};
  std::vector<OtherProject> others{};  // by folder
  std::size_t unrecorded = 0;          // running jobs in this project's folder that have no record here
  std::vector<Lease> leases{};         // of all users, in the order of arrival
};

struct JobSample {
  Job job;
  // The last line of the stream that was written to last, at most 400 bytes. Untrusted bytes: display them
  // through something like visible_line().
  std::string last_line{};
};

struct ServerSample {
  std::string server;
  // Not reached, or not answering. The other fields are then from its last answer, if there was one.
  std::optional<Error> error{};
  std::optional<Instant> heard_at{};  // time of its last answer
  ServerLoad load{};
  GpuFacts gpus{};                // brief: without topology and driver errors
  std::vector<JobSample> jobs{};  // unfinished jobs of this project, by key
  // Keys of other jobs of this project that use GPU memory, by id: jobs that have ended, or that are on
  // another server of the same machine.
  std::map<std::string, int> other_keys{};
};

struct WatchRequest {
  std::vector<std::string> servers{};  // names or globs; none: all
  std::chrono::milliseconds interval{2000};
  bool once = false;  // take one sample of each server, then return
  // Receives a sample of a server, by the server's index in the call's list. Runs on the calling thread.
  std::function<void(std::size_t, const ServerSample&)> on_sample{};
  // More file descriptors to wait for. on_wake is called on the calling thread whenever one of them is
  // readable or an interval has passed; if it returns false, the call ends, even while servers are being
  // sampled.
  std::vector<int> inputs{};
  std::function<bool()> on_wake{};
};

}  // namespace remote
