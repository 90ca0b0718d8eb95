#pragma once

#include <remote/job.hpp>

#include "jobs/any_agent.hpp"
#include "wire/start.hpp"

namespace remote::jobs {

// The server's program of this client. Another build has another digest, also if only its agents differ.
wire::ServerProgram server_program();

// Ensures that both are in .bin of the jobs' folder, from where jobs, sweeps and Slurm steps run. Throws
// servers::Refused if that fails, and Interrupted.
void keep_program(const AnyAgent& agent, const RemoteFolder& folder);
// Sends the program at once, to a server that lacks it. Throws as keep_program().
void send_program(const AnyAgent& agent, const RemoteFolder& folder);

}  // namespace remote::jobs
