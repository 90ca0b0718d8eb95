#pragma once

#include <optional>
#include <vector>

#include <remote/events.hpp>
#include <remote/report.hpp>

#include "config/config.hpp"
#include "jobs/store.hpp"
#include "ssh/connection.hpp"

// What was found out when a launch began: launch.json, in the folder of its first job. It goes with that
// job's record.

namespace remote::project {

// Replaces what was there. Throws Error.
void write_launch_record(const jobs::Store& store, const JobId& first, const LaunchRecord& record);

// nullopt: none was written. Throws Error for a file that is no such record.
std::optional<LaunchRecord> read_launch_record(const jobs::Store& store, const std::vector<Job>& jobs);

// The part of a server's setup that needs no look at it: the code that it was sent, and the variables of
// these processes. `changed`: what was told of the code.
ServerSetup planned_setup(const config::Config& config, const config::Server& server,
                          const ssh::LoginFacts& login, const std::vector<PlannedProcess>& processes,
                          const std::vector<CodeChanged>& changed);

// The variables that all of these processes have with the same value, and that do not say who one of them is.
// What looks secret is masked.
Env shared_variables(const std::vector<PlannedProcess>& processes);

}  // namespace remote::project
