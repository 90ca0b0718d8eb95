#pragma once

#include <string>
#include <vector>

#include "agent/host/host.hpp"
#include "agent/job/exec_job.hpp"
#include "wire/jobs.hpp"

// Runs the command of a Slurm job on a node, from the job's folder, which is the working directory.

namespace remote::agent {

// Makes this process survive the signals that Slurm and users send to all processes of a job. The programs
// that it starts get the default actions.
void survive_signals();
// The first of TERM, INT and HUP that has arrived; 0 if none has.
int find_end_signal();

// Starts the program with the environment of this process, and waits for its end. If it cannot be started,
// prints the reason; the code is 127.
wire::ProcessEnd run_in_foreground(const Host& host, std::vector<std::string> argv);

// Runs the command of the job with this folder, which is the working directory, and waits for its end; in a
// container if the folder has the file `container`.
wire::ProcessEnd run_job_command(const Host& host, const Path& folder, const RankFiles& files = {});

}  // namespace remote::agent
