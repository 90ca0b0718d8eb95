#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/host/path.hpp"
#include "wire/launch.hpp"
#include "wire/launch_journal.hpp"

// The files of a launch's supervisor, in the folder of each of its jobs on this server:
//
//   lifeline.json     its wire::LaunchSpec; removed when it ends
//   lifeline.pid      its process: PID START BOOT
//   lifeline          its state, shown to users: "ok", or the problem
//   lifeline.journal  one wire::LaunchEntry per line; only in the first folder
//   notify…           files of the notification

namespace remote::agent {

// Reads a job's copy of the spec; nullopt if it is missing or invalid. A valid spec has at least one job, and
// its server is one of the launch's.
std::optional<wire::LaunchSpec> read_launch_spec(const Path& job_folder);
// Reads the digest of the launch's ServerProgram from a job's copy of the spec; nullopt if it is missing or
// invalid. Reads only this field, because another build may have written the spec.
std::optional<std::string> read_launch_program(const Path& job_folder);
bool write_launch_spec(const Path& job_folder, const wire::LaunchSpec& spec);

// Returns the valid entries of the journal. Reads at most 1 MiB of it.
std::vector<wire::LaunchEntry> read_launch_journal(const Path& job_folder);
// Returns false on failure.
bool append_to_launch_journal(const Path& job_folder, const wire::LaunchEntry& entry);

// Removes the spec, the journal and the record of the process, so that the supervisor is not started again.
void remove_launch_files(const Path& job_folder);

}  // namespace remote::agent
