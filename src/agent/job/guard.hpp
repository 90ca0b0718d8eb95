#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include <sys/types.h>

#include "agent/facts/project.hpp"
#include "agent/host/host.hpp"
#include "agent/job/oom_kills.hpp"
#include "agent/job/record.hpp"

// A guard is the parent process of one job. It starts the job, waits for its end and records it. For launches
// with restarts and sweep points with retries, it starts the job several times. It ignores common signals,
// and because it is forked, it does not depend on files of the program.

namespace remote::agent {

struct GuardOrder {
  JobsFolder folder;
  mode_t mask = 022;       // the umask of the job
  wire::Moment started{};  // time of the start request
  // Tests replace these.
  std::function<std::optional<std::uint64_t>(const Host&)> count_oom_kills = agent::count_oom_kills;
  std::function<FolderFlaw(const Path&)> find_full_disk = agent::find_full_disk;
};

// Forks a guard for the job in a new session. The guard writes one line to `report` and closes it:
//
//   ID PID       the job is running
//   ID spare     the job waits to replace a server
//   ID ! REASON  the job was not started, for example because it was started or claimed before
//
// Returns false if no process can be started.
bool start_guard(const Host& host, const GuardOrder& order, const std::string& id, int report);

// `remote-agent supervise JOBS_FOLDER UMASK ID...`: starts guards for these jobs, whose folders must be
// complete. The guards keep stdout open until they have written their reports. Descriptor 7, if open, is the
// lease; jobs with a file `devices` inherit it. Returns the exit status.
int run_supervise(int count, char** words);

}  // namespace remote::agent
