#pragma once

#include "agent/host/host.hpp"
#include "agent/job/record.hpp"
#include "agent/serve/stream.hpp"
#include "wire/jobs.hpp"
#include "wire/start.hpp"

// Handlers of the requests about jobs. Each may run in its own thread.

namespace remote::agent {

void answer_state(const Host& host, const wire::StateRequest& request, Stream& stream);
wire::WorkersReply read_workers(const Host& host, const wire::WorkersRequest& request);
wire::LinesReply read_last_lines(const Host& host, const wire::LinesRequest& request);
void answer_stop(const Host& host, const wire::StopRequest& request, Stream& stream);
wire::CleanReply clean(const Host& host, const wire::CleanRequest& request);
// keep_program() and start_jobs() throw std::runtime_error, which the client receives as a Refusal. They
// finish even if the client disconnects.
wire::KeepProgramReply keep_program(const Host& host, const wire::KeepProgramRequest& request,
                                    const std::string& archive);
// `lease`: an open descriptor other than lease_fd that the jobs inherit as that, if they have a file
// `devices`; -1: none.
wire::StartJobsReply start_jobs(const Host& host, const wire::JobsToStart& jobs, int lease = -1);

// `remote-agent stop JOBS_FOLDER [SIGNAL GRACE_S BY ID...]`, for a launch's processes on this server. If
// the optional arguments are missing, it reads them from stdin, one per line, up to an empty line. This lets
// callers start the process in advance. BY is a stop word, or "again" if another attempt follows: then
// nothing is recorded, and supervisors keep running. Returns the exit status: 0 if no process is left.
int run_stop(int count, char** words);
// Runs run_stop() for one job, with TERM and 5 s of grace. It uses a separate process and session, so that
// the caller does not count as a process of the job. Returns whether no process is left.
bool stop_apart(const JobsFolder& folder, const std::string& id, const std::string& by);

}  // namespace remote::agent
