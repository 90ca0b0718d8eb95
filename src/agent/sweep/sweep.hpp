#pragma once

#include "agent/host/host.hpp"
#include "agent/serve/stream.hpp"
#include "wire/sweep_request.hpp"

// A sweep on one of its servers (docs/sweep.md). Its supervisor is a process that runs points; on the sweep's
// first server, it also distributes them.

namespace remote::agent {

inline constexpr const char* sweep_supervisor_name = "remote-sweep";  // the process name

// These throw std::runtime_error, which the client receives as a Refusal.

// Starts the supervisor. Finishes even if the client disconnects.
wire::BeginSweepReply begin_sweep(const Host& host, const wire::SweepToBegin& sweep);
void answer_sweep(const Host& host, const wire::SweepRequest& request, Stream& stream);

// `remote-agent supervise-sweep JOBS_FOLDER PROGRAM LAUNCH`: runs the supervisor in a child process with a
// separate session. The child writes "ok" to stdout, or why it cannot run, and closes it. Returns the exit
// status.
int run_supervise_sweep(int count, char** words);

}  // namespace remote::agent
