#pragma once

#include <remote/job.hpp>

#include "jobs/any_agent.hpp"
#include "wire/start.hpp"

namespace remote::jobs {

// This client's program for servers. Every build has a different digest, even if only its agents differ.
wire::ServerProgram server_program();

// Ensures that the program and its agent are in .bin of the jobs folder, where jobs, sweeps and Slurm steps
// run them. Throws servers::Refused if that fails, and Interrupted.
void keep_program(const AnyAgent& agent, const RemoteFolder& folder);
// Sends the program without asking first, to a server that lacks it. Throws like keep_program().
void send_program(const AnyAgent& agent, const RemoteFolder& folder);

}  // namespace remote::jobs
