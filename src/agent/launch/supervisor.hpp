#pragma once

#include <string>

#include "agent/host/host.hpp"
#include "agent/job/record.hpp"

// The supervisor of a launch: one process on each of its servers, which users know as the lifeline. It
// watches the jobs there and is linked to the other servers (peers.hpp). It stops the jobs if the launch
// fails elsewhere, starts the attempts of a launch with restarts, watches for a hang, and notifies. The
// decisions are made in rules/.

namespace remote::agent {

inline constexpr const char* supervisor_name = "remote-launch";  // the process name

// Starts the supervisor of a launch in a new session. The folders of its jobs must contain the spec
// (launch_files.hpp). `agent` is the executable, `program` the folder of the server program in .bin. Returns
// false if no process can be started.
bool start_launch_supervisor(const Host& host, const JobsFolder& folder, const Path& agent,
                             const Path& program, const std::string& job);

// `remote-agent supervise-launch JOBS_FOLDER PROGRAM JOB`: runs the supervisor in this process. Returns the
// exit status.
int run_supervise_launch(int count, char** words);

}  // namespace remote::agent
