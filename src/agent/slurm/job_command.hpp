#pragma once

#include <string>
#include <vector>

#include "agent/host/host.hpp"
#include "agent/job/exec_job.hpp"
#include "wire/jobs.hpp"

// Runs the command of a Slurm job on a node. The working directory is the job's folder.

namespace remote::agent {

// Makes this process survive the signals that Slurm and users send to all processes of a job. Programs that
// it starts get the default actions.
void survive_signals();
// The first of TERM, INT and HUP that has arrived; 0 if none has.
int find_end_signal();

// Starts a program with the environment of this process, and waits until it ends. If it cannot be started,
// prints the reason and returns the code 127.
wire::ProcessEnd run_in_foreground(const Host& host, std::vector<std::string> argv);

// Runs the command of the job with this folder, which must be the working directory, and waits until it ends.
// Uses a container if the folder has the file `container`.
wire::ProcessEnd run_job_command(const Host& host, const Path& folder, const RankFiles& files = {});

}  // namespace remote::agent
